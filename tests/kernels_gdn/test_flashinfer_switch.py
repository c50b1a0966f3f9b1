"""FlashInfer's switch governs the top-k over the vocabulary that picks a drafter's candidates."""

from __future__ import annotations

from typing import Any

import pytest

FLASHINFER = [[-7] * 3] * 2
TORCH = [[1, 3, 2], [0, 2, 3]]


@pytest.fixture(scope="module")
def seen(driven: Any) -> Any:
    return driven("cases_drive.py", "switch_cases")


def ids(found: dict[str, Any]) -> dict[str, list[list[int]]]:
    return {name: case["ids"].tolist() for name, case in found.items()}


def test_pristine_asks_flashinfer_whatever_the_switch_says(seen: Any) -> None:
    assert ids(seen.pristine) == {
        "unset": FLASHINFER,
        "1": FLASHINFER,
        "0": FLASHINFER,
        "0, not CUDA": TORCH,
        "0, not installed": TORCH,
        "unset, not installed": TORCH,
    }


def test_the_switch_is_honoured_and_unset_nothing_differs(seen: Any) -> None:
    assert ids(seen.patched) == {**ids(seen.pristine), "0": TORCH}
    for name in ("unset", "1", "0, not CUDA", "unset, not installed"):
        assert seen.patched[name]["said"] == seen.pristine[name]["said"]


def test_the_candidates_have_the_largest_values(seen: Any) -> None:
    assert seen.patched["0"]["values"].tolist() == [[5, 4, 3], [9, 8, 7]]


def test_one_line_says_so(seen: Any) -> None:
    (line,) = seen.patched["0"]["said"]
    assert "VLLM_USE_FLASHINFER_SAMPLER=0" in line and "torch.topk" in line
    assert seen.pristine["0"]["said"] == []
