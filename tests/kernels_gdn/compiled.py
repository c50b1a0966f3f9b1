"""Compiles what a launcher would launch, for a card that need not be there: call :func:`prepare` before vLLM is imported.

Triton's compiler and ptxas run anywhere; only the driver is missing.  A driver that stands in says which card it is, every
launch becomes a compilation, and what came out is kept in ``kernels``.
"""

from __future__ import annotations

import hashlib
import os
import re
import types
from typing import Any

kernels: dict[str, Any] = {}

# Bytes of shared memory a block may have, as the driver reports them.
SHARED = {80: 166912, 86: 101376, 89: 101376, 90: 232448}


def prepare(capability: int, label: list[str]) -> None:
    """Stand in for a card of this capability (90 for sm90); each kernel is kept under ``label[0]`` and its name."""
    os.environ.pop("TRITON_INTERPRET", None)
    import torch
    import triton
    import vllm.platforms
    from triton.backends.compiler import GPUTarget
    from triton.runtime.errors import OutOfResources
    from triton.runtime.jit import JITFunction

    class Driver:
        utils = types.SimpleNamespace(
            get_device_properties=lambda _: {
                "max_shared_mem": SHARED[capability],
                "multiprocessor_count": 82,
                "warpSize": 32,
            }
        )

        def get_current_target(self) -> GPUTarget:
            return GPUTarget("cuda", capability, 32)

        def get_active_torch_device(self) -> Any:
            return torch.device("cpu")

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, _: Any = None) -> int:
            return 0

        @staticmethod
        def is_active() -> bool:
            return True

    triton.runtime.driver.set_active(Driver())
    torch.cuda.get_device_name = lambda _=None: "NVIDIA H200" if capability == 90 else "NVIDIA GeForce RTX 3090"
    torch.cuda.get_device_capability = lambda _=None: divmod(capability, 10)
    run = JITFunction.run

    def compile_only(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        compiled = run(self, *args, grid=grid, warmup=True, **kwargs)
        kernels[f"{label[0]}: {self.__name__}"] = {
            "ptx": hashlib.sha256(plain(compiled.asm["ptx"]).encode()).hexdigest(),
            "cubin": len(compiled.asm["cubin"]),
            "shared": compiled.metadata.shared,
            "dependents": "griddepcontrol.launch_dependents" in compiled.asm["ptx"],
            "waits": "griddepcontrol.wait" in compiled.asm["ptx"],
        }
        if compiled.metadata.shared > SHARED[capability]:
            # As a launch does, which comes before anything runs.
            raise OutOfResources(compiled.metadata.shared, SHARED[capability], "shared memory")
        return compiled

    JITFunction.run = compile_only
    platform = type(vllm.platforms.current_platform)
    platform.is_cpu = lambda _: False
    platform.is_arch_support_pdl = classmethod(lambda _: capability >= 90)


def plain(ptx: str) -> str:
    """The program without what names source files and lines."""
    kept = [line for line in ptx.splitlines() if not re.match(r"\s*(\.loc|\.file|//|\$L__tmp)", line)]
    return re.sub(r"\.section\s+\.debug.*", "", "\n".join(kept), flags=re.S)
