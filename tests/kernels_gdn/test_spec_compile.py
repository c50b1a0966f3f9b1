"""The kernels of speculative decoding compile for real cards, in what a card has."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="module")
def seen(driven: Any) -> dict[int, dict[str, Any]]:
    return driven("spec_compile.py").patched


@pytest.mark.parametrize("capability", [80, 86, 89, 90])
def test_every_kernel_compiles(seen: dict[int, dict[str, Any]], capability: int) -> None:
    kernels = {name: kernel for name, kernel in seen[capability].items() if ":" in name and "_verify" not in name}
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


# What a card has for a block, and what it runs where that is less than an H200 has: query rows and type of the cache, then
# positions of a tile and stages of its loop.
CARDS = [
    (80, 166912, {}),
    (86, 101376, {"128 torch.bfloat16": (16, 4), "128 torch.int8": (16, 5)}),
    (89, 101376, {"128 torch.bfloat16": (16, 4), "128 torch.int8": (16, 5)}),
    (90, 232448, {}),
]


@pytest.mark.parametrize(("capability", "shared", "smaller"), CARDS, ids=[f"sm{card[0]}" for card in CARDS])
def test_verify_attention_takes_a_tiling_that_fits(
    seen: dict[int, dict[str, Any]], capability: int, shared: int, smaller: dict[str, tuple[int, int]]
) -> None:
    kernels = {name: kernel for name, kernel in seen[capability].items() if "_verify" in name}
    assert len(kernels) == 2 * 3 * 2  # over bfloat16 and int8, with 2, 5 and 16 query tokens, both kernels
    for name, kernel in kernels.items():
        assert kernel["cubin"] > 0 and kernel["shared"] <= shared, name
        # Only there may the second kernel's launch overlap the first.
        assert kernel["dependents"] == (capability == 90 and "_verify_partial" in name), name
        assert kernel["waits"] == (capability == 90 and "_verify_combine" in name), name
    first = {f"{rows} {dtype}": (32, 5) for rows in (16, 32, 128) for dtype in ("torch.bfloat16", "torch.int8")}
    assert seen[capability]["tilings"] == first | smaller
