"""The verify attention of a patched tree without the engine around it: its modules import little of vLLM.

``load(tree, library)`` puts bare packages where vLLM's own would import the engine, and loads the kernel's library.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import torch
import triton
import triton.language as tl


def stand_in(tree: Path) -> None:
    """Bare packages in place of vLLM's own."""
    name, place = "vllm", tree / "vllm"
    for part in ("", "v1", "attention", "ops"):
        if part:
            name, place = f"{name}.{part}", place / part
        package = ModuleType(name)
        package.__path__ = [str(place)]
        sys.modules[name] = package
    tools = ModuleType("vllm.triton_utils")
    tools.tl, tools.triton = tl, triton  # type: ignore[attr-defined]
    sys.modules["vllm.triton_utils"] = tools


def load(tree: Path, library: Path) -> ModuleType:
    """The module spec_decode_attn of ``tree``, which holds vllm/."""
    stand_in(tree)
    torch.ops.load_library(str(library))
    return importlib.import_module("vllm.v1.attention.ops.spec_decode_attn")


def load_library_module(tree: Path) -> ModuleType:
    """The module of ``tree`` that knows how the library is built."""
    stand_in(tree)
    return importlib.import_module("vllm.v1.attention.ops.spec_decode_attn_cuda.library")
