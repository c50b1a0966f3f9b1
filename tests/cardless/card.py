"""A card that is not there: vLLM's engine takes its CUDA paths on CPU tensors, and Triton's interpreter runs its kernels.

Call :func:`prepare` before vLLM is imported.  The platform says CUDA and sm86; memory, streams and clocks of the device are those of
the CPU or nothing; the extension modules are not loaded, and of their operators the few that the models here call directly are
written in torch.  So the second model runner, both Triton attention kernels and the recurrent layers run as they do on a card,
one program after another: no race shows, and no time means anything.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

CAPABILITY = (8, 6)
SHARED_MEMORY, MULTIPROCESSORS = 101376, 8
ENVIRONMENT = {
    "VLLM_TARGET_DEVICE": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "TRITON_INTERPRET": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_USE_FLASHINFER_SAMPLER": "0",
    "VLLM_GDN_DECODE_KERNEL": "triton",
    "VLLM_LOGGING_LEVEL": "ERROR",
}


def prepare() -> None:
    """Set the environment, and put what stands in for the card in place of it."""
    os.environ.update(ENVIRONMENT)
    for folder in ("kernels", "kernels_gdn"):
        sys.path.insert(0, str(Path(__file__).parents[1] / folder))
    import interpreted
    import interpreter  # noqa: F401 - repairs arithmetic on bfloat16

    interpreted.mend_aliases()
    interpreted.mend_loops()
    interpreted.mend_library()
    interpreted.mend_grids()
    drive_triton()
    stub_device()
    operators()
    become_cuda()
    keep_weights()


def drive_triton() -> None:
    """Triton asks its driver which card it has, even in the interpreter."""
    import torch
    import triton
    from triton.backends.compiler import GPUTarget

    class Driver:
        utils = types.SimpleNamespace(
            get_device_properties=lambda _: {
                "max_shared_mem": SHARED_MEMORY,
                "multiprocessor_count": MULTIPROCESSORS,
                "warpSize": 32,
            }
        )
        launcher_cls = None

        def get_current_target(self) -> GPUTarget:
            return GPUTarget("cuda", CAPABILITY[0] * 10 + CAPABILITY[1], 32)

        def get_active_torch_device(self) -> Any:
            return torch.device("cpu")

        def get_device_interface(self) -> Any:
            return torch.cpu

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, _: Any = None) -> int:
            return 0

        def get_benchmarker(self) -> Callable[..., list[float]]:
            return lambda *_, **__: [1.0, 1.0, 1.0]  # whatever is tuned takes its first configuration

        @staticmethod
        def is_active() -> bool:
            return True

    triton.runtime.driver.set_active(Driver())


def stub_device() -> None:
    """What torch is asked about the device."""
    import torch
    import torch.accelerator.memory

    torch.cuda.get_device_name = lambda _=None: "NVIDIA GeForce RTX 3090"
    torch.cuda.get_device_capability = lambda _=None: CAPABILITY
    torch.cuda.memory.get_allocator_backend = lambda: "native"
    answers = {
        **dict.fromkeys(("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"), 0),
        **dict.fromkeys(
            ("reset_peak_memory_stats", "empty_cache", "empty_host_cache", "synchronize", "set_device_index")
        ),
        "memory_stats": {},
        "current_device_index": 0,
    }
    for module in (torch.accelerator, torch.accelerator.memory):
        for name, answer in answers.items():
            if hasattr(module, name):
                setattr(module, name, lambda *_, answer=answer: answer)
    allocator = types.ModuleType("vllm.device_allocator.cumem")
    allocator.cumem_available = False  # type: ignore[attr-defined]
    allocator.CuMemAllocator = type("CuMemAllocator", (), {"instance": None})  # type: ignore[attr-defined]
    sys.modules[allocator.__name__] = allocator
    # Without one of its extension modules the package that has FlashAttention cannot be imported.
    attention = "vllm.vllm_flash_attn._vllm_fa2_C"
    sys.modules[attention] = types.ModuleType(attention)


def operators() -> None:
    """Operators of the extension modules, as the models here call them."""
    import torch

    library = torch.library.Library("_C", "FRAGMENT")
    sys.modules["_operators_kept"] = types.SimpleNamespace(library=library)  # type: ignore[assignment]

    def define(schema: str, operator: Callable[..., Any]) -> None:
        library.define(schema)
        library.impl(schema.partition("(")[0], operator, "CompositeExplicitAutograd")

    def rms_norm(out: Any, x: Any, weight: Any, epsilon: float) -> None:
        """Over the last dimension; a weight of two dimensions has a row for each entry of the first of ``x``."""
        normed = (x.double() * (x.double().square().mean(-1, keepdim=True) + epsilon).rsqrt()).to(x.dtype)
        if weight is not None and weight.ndim == 2:
            weight = weight.unflatten(0, (-1, *[1] * (x.ndim - 2)))
        out.copy_(normed if weight is None else normed * weight)

    def silu_and_mul(out: Any, x: Any) -> None:
        gate, up = x.chunk(2, -1)
        out.copy_(torch.nn.functional.silu(gate) * up)

    def rotary_embedding(
        positions: Any, query: Any, key: Any, size: int, table: Any, neox: bool, offset: int = 0, inverse: bool = False
    ) -> None:
        """Halves of each head, where ``neox``, or its even and odd elements, turned by the table's angles."""
        if offset or inverse or not neox:
            raise NotImplementedError("the models here do without")
        cos, sin = table[positions.flatten()].unsqueeze(1).chunk(2, -1)
        for tensor in (query, key):
            if tensor is not None:
                turned = tensor.view(positions.numel(), -1, size)[..., : table.shape[-1]]
                one, two = turned.chunk(2, -1)
                turned.copy_(torch.cat([one * cos - two * sin, two * cos + one * sin], -1))

    define("rms_norm(Tensor! result, Tensor input, Tensor? weight, float epsilon) -> ()", rms_norm)
    define("silu_and_mul(Tensor! result, Tensor input) -> ()", silu_and_mul)
    define(
        "rotary_embedding(Tensor positions, Tensor! query, Tensor!? key, int size, Tensor table, bool neox,"
        " int offset=0, bool inverse=False) -> ()",
        rotary_embedding,
    )
    define("init_cpu_memory_env(int[] nodes) -> ()", lambda _: None)
    for name in (
        "scaled_mm_supports_fp8",
        "scaled_mm_supports_block_fp8",
        "scaled_mm_supports_fp4",
        "group_gemm_supported",
    ):
        define(f"cutlass_{name}(int capability) -> bool", lambda _: False)
    for name, overload in sorted(named_by_passes()):
        if not hasattr(torch.ops._C, name) or overload not in getattr(torch.ops._C, name).overloads():
            # Looked up when the passes are imported, never called.
            library.define(f"{name}{'' if overload == 'default' else '.' + overload}() -> ()")


def named_by_passes() -> set[tuple[str, str]]:
    """The operators, and which overload, that the modules of the compiler's passes name, from their text."""
    package = importlib.util.find_spec("vllm")
    if package is None or package.origin is None:
        raise RuntimeError("there is no vllm on the path")
    passes = Path(package.origin).parent / "compilation" / "passes"
    texts = (path.read_text() for path in passes.rglob("*.py"))
    return {found for text in texts for found in re.findall(r"torch\.ops\._C\.(\w+)\.(\w+)", text)}


def become_cuda() -> None:
    """A platform that says CUDA, on the CPU's worker."""
    import torch
    import vllm.platforms
    import vllm.utils.torch_utils
    from vllm.platforms.cpu import CpuPlatform
    from vllm.platforms.interface import DeviceCapability, PlatformEnum

    class Cardless(CpuPlatform):
        _enum = PlatformEnum.CUDA
        dispatch_key = "CPU"

        @classmethod
        def get_device_capability(cls, device_id: int = 0) -> DeviceCapability:
            return DeviceCapability(*CAPABILITY)

        @classmethod
        def get_attn_backend_cls(cls, *_: Any, **__: Any) -> str:
            return "vllm.v1.attention.backends.triton_attn.TritonAttentionBackend"

        @classmethod
        def check_and_update_config(cls, vllm_config: Any) -> None:
            super().check_and_update_config(vllm_config)
            vllm_config.parallel_config.worker_cls = "vllm.v1.worker.cpu_worker.CPUWorker"
            vllm_config.compilation_config.custom_ops = ["none"]

        import_kernels = classmethod(lambda _: None)
        is_pin_memory_available = classmethod(lambda _: False)
        is_arch_support_pdl = classmethod(lambda _: False)
        num_compute_units = classmethod(lambda *_: MULTIPROCESSORS)
        get_cuda_runtime_major = classmethod(lambda _: 13)
        fp8_dtype = classmethod(lambda _: torch.float8_e4m3fn)

    vllm.platforms._current_platform = Cardless()
    vllm.utils.torch_utils.PIN_MEMORY = False


def keep_weights() -> None:
    """Linear layers keep their weights: the CPU's worker packs them, and DFlash reads them where they were.

    And the recurrent layers decode by the Triton kernels, not by an operator of the extension modules.
    """
    layers = importlib.import_module("vllm.model_executor.layers.utils")
    dispatch = layers.dispatch_cpu_unquantized_gemm
    layers.dispatch_cpu_unquantized_gemm = lambda layer, remove_weight: dispatch(layer, False)
    recurrent = importlib.import_module("vllm.model_executor.layers.mamba.gdn.qwen_gdn_linear_attn")
    for found in vars(recurrent).values():
        if isinstance(found, type) and hasattr(found, "_can_use_fused_gdn_mtp_decode"):
            found._can_use_fused_gdn_mtp_decode = lambda *_, **__: False  # type: ignore[attr-defined]


def verify_launches() -> list[int]:
    """A counter of the verify attention's launches; its buffers are put where the tensors are.  A tree without it stays at 0."""
    import torch

    count = [0]
    try:
        ops = importlib.import_module("vllm.v1.attention.ops.spec_decode_attn")
    except ModuleNotFoundError:
        return count
    make, launch = ops.SpecDecodeAttention.__init__, ops.SpecDecodeAttention.__call__

    def make_here(self: Any, heads: int, kv_heads: int, size: int, longest: int, _: Any, **more: Any) -> None:
        make(self, heads, kv_heads, size, longest, torch.device("cpu"), **more)

    def counted(self: Any, *tensors: Any) -> None:
        count[0] += 1
        launch(self, *tensors)

    ops.SpecDecodeAttention.__init__, ops.SpecDecodeAttention.__call__ = make_here, counted
    return count
