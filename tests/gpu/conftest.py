"""Tests on an NVIDIA GPU of sm90: VERIFY_TREE names a patched tree, VERIFY_LIBRARY the built library.

python -m vllm.v1.attention.ops.spec_decode_attn_cuda.build DIRECTORY
VERIFY_TREE=... VERIFY_LIBRARY=DIRECTORY/verify_attention.abi3.so pytest tests/gpu
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def ops() -> ModuleType:
    import torch
    from alone import load

    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("there is no GPU of sm90")
    return load(Path(os.environ["VERIFY_TREE"]), Path(os.environ["VERIFY_LIBRARY"]))
