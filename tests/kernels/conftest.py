"""Kernels of the patched tree, run by Triton's interpreter on a CPU.

Triton reads TRITON_INTERPRET when a kernel is decorated, and vLLM keeps the real Triton on a machine without a GPU only where
CUDA_VISIBLE_DEVICES is set and empty, so both are set before anything is imported. ``nox -s kernels`` makes the tree.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
os.environ.update(CUDA_VISIBLE_DEVICES="", VLLM_TARGET_DEVICE="cpu", VLLM_NO_USAGE_STATS="1", HF_HUB_OFFLINE="1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

TREE = os.environ.get("PATCHFORGE_PATCHED_TREE")
if not TREE:
    raise SystemExit("PATCHFORGE_PATCHED_TREE is not set: run 'nox -s kernels', which makes the patched tree")
sys.path.insert(0, TREE)
runpy.run_path(str(Path(__file__).parents[1] / "series" / "site" / "sitecustomize.py"))

import interpreter  # noqa: E402, F401 - repairs the interpreter
