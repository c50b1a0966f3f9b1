"""Lookup drafting where it meets the engine, and DFlash2 without it as it was."""

from __future__ import annotations

from typing import Any

import pytest
import torch


@pytest.fixture(scope="module")
def both(driven: Any) -> Any:
    return driven("cases_drive.py", "lookup_plumbing_cases")


@pytest.fixture(scope="module")
def seen(both: Any) -> dict[str, Any]:
    return both.patched


def test_without_the_knob_dflash2_drafts_as_it_did(both: Any) -> None:
    for what, before in both.pristine["walked"].items():
        after = both.patched["walked"][what]
        assert after.dtype == before.dtype and torch.equal(after, before), what
    for kind, before in both.pristine["drafted"].items():
        after = both.patched["drafted"][kind]
        assert torch.equal(after["drafts"], before["drafts"]) and after["block"] == before["block"] == 3
        assert ("logits" in before) == (kind == "True")
        assert "logits" not in before or torch.equal(after["logits"], before["logits"])


def test_the_drafter_keeps_to_its_trained_block(seen: dict[str, Any]) -> None:
    """The block, the short query length of the target's graphs, and that the drafter's graphs have none."""
    assert seen["blocks"] == {
        "unset": [15, None, None],
        "0": [15, None, None],
        "1": [7, 8, None],
        "1, one graph": [7, None, None],
        "1, no longer than trained": [7, None, None],
        "1, one longer": [7, 8, None],
        "1, block unknown": [15, None, None],
        "1, LiLiCorr": [15, None, None],
        "1, DFlash": [15, None, None],
        "1, MTP": [15, None, None],
    }


def test_graphs_are_captured_for_both_lengths(seen: dict[str, Any]) -> None:
    long = [[1, 16], [2, 16], [4, 16]]
    assert seen["graphs"] == {"None": long, "1": sorted([*long, [1, 8], [2, 8], [4, 8]])}


def test_a_long_block_takes_two_steps_in_a_row(seen: dict[str, Any]) -> None:
    assert seen["lengths"] == {
        "one is not enough": [7, 7, 7, 7],
        "two in a row, then it coasts": [7, 15, 15, 15, 7, 7, 7],
        "it stays": [7, 15, 15, 7, 7, 15],
        "several never coast": [7, 15, 7, 7],
        "company ends coasting": [7, 15, 7, 7],
        "short contexts": [15, 7],
    }


def test_the_evidence_is_that_of_the_step_before(seen: dict[str, Any]) -> None:
    assert seen["flags"] == [False, True, False, True, False]


def test_thresholds_that_contradict_each_other_are_refused(seen: dict[str, Any]) -> None:
    for name in ("NMIN", "NSTRONG", "NMIN_TAIL", "LONGMIN"):
        assert seen["settings"][name].startswith(f"VLLM_DFLASH2_LOOKUP_{name}=13 is never reached")
        assert "VLLM_DFLASH2_LOOKUP_NMAX=12" in seen["settings"][name]
    assert seen["settings"]["NMAX"].startswith("VLLM_DFLASH2_LOOKUP_NSTRONG=8 is never reached")
    assert "min_match=6, max_match=12, strong_match=8, agree=2" in seen["settings"]["plain"]


def test_the_scheduler_is_told_as_many_drafts_as_are_to_be_verified(seen: dict[str, Any]) -> None:
    assert seen["reported"] == [[[-1] * 5] * 2, [[-1] * 5] * 2, [[-1] * 3] * 2]


def test_the_speculator_fills_the_block_from_the_context(seen: dict[str, Any]) -> None:
    """Three rows: one that repeats itself, one that does not, and padding."""
    for found in seen["looked up"].values():
        assert found["lookup"] and found["block"] == 3
        assert found["drafts"][0].tolist() == [*range(22, 30)]
        assert found["drafts"][1, 3:].tolist() == [0] * 5 and (found["drafts"][1, :3] > 0).all()
        assert (found["drafts"][2] == -9).all()
    logits = seen["looked up"]["True"]["logits"]
    assert logits[2].isfinite().nonzero()[:, 1].tolist() == [*range(22, 30)]
    assert (logits[0].isfinite().sum(1) == torch.tensor([4] * 3 + [1] * 5)).all() and not logits[1].isfinite().any()


def test_the_block_follows_what_was_emitted(seen: dict[str, Any]) -> None:
    """By the slots that were verified, the fourth step would have had a long block too."""
    for found in seen["looked up"].values():
        assert found["next"] == [3, 3, 3, 3, 3, 3, 8, 3]


def test_off_it_drafts_the_whole_block_and_says_nothing(seen: dict[str, Any]) -> None:
    off = seen["off"]
    assert not off["lookup"] and off["block"] == 8 and off["next"] == [None] * 8
    assert (off["drafts"][0] >= 0).all() and off["logits"][2].isfinite().sum() == 32
