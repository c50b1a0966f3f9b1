"""Makes vLLM's Triton kernels run in Triton's interpreter on a CPU: call :func:`prepare` before vLLM is imported.

Five gaps of the interpreter matter here.  A kernel's module may have taken an alias of one of Triton's functions (``exp =
tl.exp``); the interpreter replaces ``tl.exp`` while a kernel runs, so the alias must be looked up again.  A loop's variable is a
plain int, which has no ``to``.  Functions of the device's library are stubs.  A function that
makes the grid gets addresses for tensors.  And memory that nobody wrote must not be lucky:
what ``new_empty`` and its kin return is filled with NaN.

Everything here is for 32-bit floats: the interpreter's arithmetic on bfloat16 is wrong, and these kernels are not the place
to mend it.
"""

from __future__ import annotations

import os
from typing import Any


def prepare() -> None:
    """Set the environment, mend the interpreter, poison fresh memory, and keep vLLM from swapping in its CPU operators."""
    os.environ["TRITON_INTERPRET"] = "1"
    mend_aliases()
    mend_loops()
    mend_library()
    poison_fresh_memory()
    import vllm.platforms

    # The CPU platform replaces these kernels with C++ when their modules are imported; they are what is tested.
    type(vllm.platforms.current_platform).is_cpu = lambda _: False


def mend_aliases() -> None:
    """Have globals of a kernel's module that are Triton's own functions looked up at each call."""
    import triton.language as tl
    from triton.language import math
    from triton.runtime import interpreter

    names = {
        function: (module, name)
        for module in (math, tl)
        for name, function in vars(module).items()
        if getattr(function, "__triton_builtin__", False)
    }
    rewrite = interpreter.InterpretedFunction.rewrite

    def late(module: Any, name: str) -> Any:
        def call(
            *args: Any, **kwargs: Any
        ) -> Any:  # looked up at the call: the interpreter swaps it for a kernel's run
            return getattr(module, name)(*args, **kwargs)

        return call

    def rewrite_late(self: Any) -> Any:
        scope = self.fn.__globals__
        for name, value in list(scope.items()):
            if callable(value) and getattr(value, "__hash__", None) and value in names:
                scope[name] = late(*names[value])
        return rewrite(self)

    interpreter.InterpretedFunction.rewrite = rewrite_late


class LoopInt(int):
    """A loop variable: an int that can be cast as Triton's values can."""

    def to(self, dtype: Any, *_: Any, **__: Any) -> Any:
        """The value as a scalar of Triton's."""
        from triton.runtime import interpreter

        return interpreter.interpreter_semantic.to_tensor(int(self), False).to(dtype)


def loop(*bounds: Any, **_: Any) -> Any:
    """``range`` for kernels: bounds may be Triton's scalars, and so may, nearly, the variable."""
    plain = [
        int(bound.handle.data.item()) if hasattr(bound, "handle") else int(getattr(bound, "value", bound))
        for bound in bounds
    ]
    return (LoopInt(number) for number in range(*plain))


def mend_loops() -> None:
    """Loop variables, of ``range`` and of ``tl.range``, that have ``to``."""
    from triton.runtime import interpreter

    rewrite, patch = interpreter.InterpretedFunction.rewrite, interpreter._patch_lang_core

    def rewrite_loops(self: Any) -> Any:
        self.fn.__globals__.setdefault("range", loop)
        return rewrite(self)

    def patch_loops(lang: Any, scope: Any) -> None:
        patch(lang, scope)
        scope.set_attr(lang, "range", loop)

    interpreter.InterpretedFunction.rewrite = rewrite_loops
    interpreter._patch_lang_core = patch_loops


def mend_grids() -> None:
    """A grid that is a function gets the tensors of the launch: the interpreter would hand it their addresses."""
    import inspect

    from triton.runtime import interpreter

    launch = interpreter.GridExecutor.__call__

    def launch_on(self: Any, *args: Any, **kwargs: Any) -> Any:
        if callable(self.grid):
            known = inspect.getfullargspec(self.fn).args
            named = {name: value for name, value in kwargs.items() if name in known}
            self.grid = self.grid(inspect.getcallargs(self.fn, *args, **named))
        return launch(self, *args, **kwargs)

    interpreter.GridExecutor.__call__ = launch_on


def mend_library() -> None:
    """``log1p`` of the device's library, which verification uses, computed by numpy."""
    import numpy as np
    import triton.language as tl
    from triton.language.extra import libdevice
    from triton.runtime import interpreter

    def log1p(arg: Any) -> Any:
        return tl.core.tensor(interpreter.TensorHandle(np.log1p(arg.handle.data), arg.handle.dtype), arg.type)

    libdevice.log1p = log1p


def poison_fresh_memory() -> None:
    """Fill what torch hands out uninitialised: floats with NaN."""
    import torch

    def poisoned(make: Any) -> Any:
        def made(*args: Any, **kwargs: Any) -> Any:
            tensor = make(*args, **kwargs)
            return tensor.fill_(float("nan")) if tensor.is_floating_point() else tensor

        return made

    torch.empty_like = poisoned(torch.empty_like)
    torch.Tensor.new_empty = poisoned(torch.Tensor.new_empty)
