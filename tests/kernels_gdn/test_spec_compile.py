"""The samplers' and lookup drafting's kernels compile for real cards, in what a card has."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="module")
def seen(driven: Any) -> dict[int, dict[str, Any]]:
    return driven("spec_compile.py").patched


@pytest.mark.parametrize("capability", [86, 90])
def test_every_kernel_compiles(seen: dict[int, dict[str, Any]], capability: int) -> None:
    kernels = seen[capability]
    names = {name.rpartition(": ")[2] for name in kernels}
    assert names == {
        "_small_top_k_top_p_kernel",
        "_softmax_chunks_kernel",
        "_softmax_combine_kernel",
        "_append_kernel",
        "_search_kernel",
        "_fuse_kernel",
    }
    assert len(kernels) == 4 + 4 + 6  # top-k and top-p, softmaxes, and lookup with and without draft logits
    for kernel in kernels.values():
        assert kernel["cubin"] > 0 and kernel["shared"] <= 49152
