"""A head cut to a list of tokens: ids mapped both ways, bad lists refused, and upstream's head without any of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from draft_vocab_cases import CUT, FULL, IDS, KNOB, STATES, VOCAB

FILE = "mtp_draft_vocab_ids.pt"


@pytest.fixture(scope="module")
def both(driven: Any) -> Any:
    return driven("cases_drive.py", "draft_vocab_cases")


@pytest.fixture(scope="module")
def seen(both: Any) -> dict[str, Any]:
    return both.patched


def test_without_knob_or_list_the_full_head_scores_as_it_did(both: Any) -> None:
    before = both.pristine["unset, plain"]
    for name in ("unset, plain", "1, plain", "unset, with a cut head", "1, a list and no tensors"):
        after = both.patched[name]
        assert torch.equal(after["logits"], before["logits"]) and torch.equal(after["top"], before["top"]), name
        assert after["loaded"] == before["loaded"]
    torch.testing.assert_close(before["logits"], STATES @ FULL.T)


def test_pristine_refuses_a_checkpoint_with_a_cut_head(both: Any) -> None:
    for name in ("unset, with a cut head", "1, with a cut head"):
        assert "draft_lm_head" in both.pristine[name]["error"]


def test_rows_of_the_head_are_scored_as_their_tokens_and_no_others(seen: dict[str, Any]) -> None:
    found, exact = seen["1, with a cut head"]["logits"], STATES @ CUT.T
    assert found.shape == (len(STATES), VOCAB)
    torch.testing.assert_close(found[:, IDS], exact)
    others = torch.ones(VOCAB, dtype=torch.bool)
    others[IDS] = False
    assert found[:, others].isneginf().all() and others.sum() == VOCAB - len(IDS)


def test_and_tokens_are_found_back_as_the_rows(seen: dict[str, Any]) -> None:
    """The best token, over the vocabulary and by the drafter's own argmax, is that of the best row."""
    found, best = seen["1, with a cut head"], (STATES @ CUT.T).argmax(-1)
    assert len(set(best.tolist())) > 2
    assert [IDS.index(token) for token in found["top"].tolist()] == best.tolist()
    assert torch.equal(found["logits"].argmax(-1), found["top"])


def test_a_list_or_tensors_that_are_missing_are_said(seen: dict[str, Any]) -> None:
    (line,) = [line for line in seen["1, plain"]["said"] if "VLLM" in line]
    assert FILE in line and "full head" in line
    (line,) = seen["1, a list and no tensors"]["said"]
    assert "mtp.draft_lm_head" in line and "full head" in line
    assert seen["1, with a cut head"]["said"] == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a token outside", "ids outside the vocabulary of 100"),
        ("a negative one", "ids outside the vocabulary of 100"),
        ("one twice", "an id twice"),
        ("32 bits", "one-dimensional int64"),
        ("two dimensions", "one-dimensional int64"),
        ("nothing", "one-dimensional int64"),
        ("no tensor", "one-dimensional int64"),
        ("no file of torch's", "not a file torch can load"),
    ],
)
def test_a_bad_list_is_an_error_that_names_it(seen: dict[str, Any], name: str, reason: str) -> None:
    error = seen["bad"][name]["error"]
    assert error.startswith("ValueError: ") and FILE in error and reason in error


def test_the_knob_takes_0_and_1(both: Any) -> None:
    found = both.patched["settings"]
    assert [found[value] for value in ("None", "0", "1")] == [False, False, True]
    assert f"'yes' for {KNOB}" in found["yes"]
    assert "has no attribute" in both.pristine["settings"]["1"]
