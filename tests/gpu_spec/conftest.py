"""Sampling and lookup drafting on a CUDA device: the cases of tests/kernels_gdn at real sizes, compiled instead of interpreted.

Run where torch sees a card, with the patched tree named: ``PATCHFORGE_PATCHED_TREE=DIR python -m pytest tests/gpu_spec``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

TREE = os.environ.get("PATCHFORGE_PATCHED_TREE")
if not TREE or not torch.cuda.is_available():
    raise SystemExit("tests/gpu_spec needs PATCHFORGE_PATCHED_TREE and a CUDA device")
os.environ.update(VLLM_NO_USAGE_STATS="1", HF_HUB_OFFLINE="1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
sys.path[:0] = [TREE, str(Path(__file__).parents[1] / "kernels_gdn")]
