"""Top-k/top-p for small k: what is kept, what is drawn, what is verified, and nothing without the knob."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from chance import of_support, pearson, truncated
from sampler_cases import SMALL, VERIFIED, VOCAB

INF = float("inf")
# Rows that upstream's search leaves as they are, or cuts one short of the mass; the reference says so too.
UPSTREAM_IS_OFF = {("cut", 3), ("cut, p", 3), ("most [0.999, 0.01]", 0)}


@pytest.fixture(scope="module")
def seen(driven: Any) -> Any:
    return driven("cases_drive.py", "sampler_cases")


@pytest.mark.parametrize("what", ["tokens", "constrained", "drafts", "probs"])
def test_without_the_knob_nothing_differs(seen: Any, what: str) -> None:
    pristine, patched = seen.pristine["unchanged"][what], seen.patched["unchanged"][what]
    assert pristine.dtype == patched.dtype and torch.equal(pristine, patched)


def test_a_batch_with_k_of_the_vocabulary_is_cut_as_before(seen: Any) -> None:
    assert torch.equal(seen.pristine["no small k"], seen.patched["no small k"])
    assert seen.patched["no small k"][1].isfinite().all()


def test_the_knob_takes_0_and_1(seen: Any) -> None:
    found = seen.patched["settings"]
    assert [found[value] for value in ("None", "0", "1")] == [False, False, True]
    for value in ("", "true", "2"):
        assert f"'{value}' for {SMALL}" in found[value]
    assert "has no attribute" in seen.pristine["settings"]["1"]


def test_the_host_knows_the_largest_k(seen: Any) -> None:
    assert seen.patched["bounds"] == {
        "[20, 5] 0": [None, None],
        "[20, 5] 1": [20, 20],
        "[20, 0] 0": [None, None],
        "[20, 0] 1": [VOCAB, VOCAB],
        "[0, 0] 0": [None, None],
        "[0, 0] 1": [None, VOCAB],  # the first runner asks no further where nobody uses top-k
    }
    assert set(map(tuple, seen.pristine["bounds"].values())) == {("unknown", "unknown")}


def test_only_a_small_k_of_few_rows_takes_the_path(seen: Any) -> None:
    small, general = (
        ["small"] * 3 + ["then", "small"],
        ["all"] * 3 + ["then"],
    )  # a drafter's is cut by the small path only, of however many rows
    assert seen.patched["paths"] == {
        "20 20 32": small,
        "20 20 33": ["all"] * 3 + ["then", "small"],
        "64 64 2": small,
        "65 65 2": general,
        f"20 {VOCAB} 2": general,
        "20 None 2": general,
    }


def kept(row: torch.Tensor, k: int, p: float | None) -> torch.Tensor:
    """Which logits of a row top-k, then top-p, keep: the head of (logit descending, index ascending), in 64-bit floats."""
    proper = torch.where(row.isnan(), -INF, row).double()
    finite = int((proper > -INF).sum())
    if proper.max() == INF or not finite:  # no order, or nothing to keep: the row is left alone
        return torch.ones_like(row, dtype=torch.bool)
    values, order = proper.sort(descending=True, stable=True)
    probs = values[: min(k, finite)].softmax(-1)
    before = probs.cumsum(-1) - probs
    margin = 1e-6
    assert p is None or p >= 1 or ((before - p).abs() > margin).all(), "the case is a matter of rounding"
    count = len(probs) if p is None or p >= 1 else max(1, int((before < p).sum()))
    chosen = torch.zeros_like(row, dtype=torch.bool)
    chosen[order[:count]] = True
    return chosen


def test_it_keeps_what_the_reference_keeps(seen: Any) -> None:
    assert len(seen.patched["cuts"]) == 30 and not seen.pristine.keys() & {"cuts"}
    for name, case in seen.patched["cuts"].items():
        for row, logits in enumerate(case["logits"]):
            chosen = kept(logits, case["k"][row], None if case["p"] is None else case["p"][row])
            small = case["small"][row]
            assert small[~chosen].isneginf().all(), (name, row)
            assert torch.equal(small[chosen].nan_to_num(7), logits[chosen].nan_to_num(7)), (name, row)


def test_and_what_upstream_keeps(seen: Any) -> None:
    off = set()
    for name, case in seen.patched["cuts"].items():
        for row, (small, upstream) in enumerate(zip(case["small"], case["upstream"], strict=True)):
            if not torch.equal(small.nan_to_num(7), upstream.nan_to_num(7)):
                off.add((name, row))
    assert off == UPSTREAM_IS_OFF


def test_ties_dropped_by_others_meanwhile_change_nothing(seen: Any) -> None:
    """A second run sees every earlier tie dropped already, which is as far as a race can go."""
    for name, case in seen.patched["cuts"].items():
        if case["p"] is None:
            assert torch.equal(case["small"].nan_to_num(7), case["twice"].nan_to_num(7)), name


def test_a_row_of_nan_that_hides_the_rest_is_left_alone(seen: Any) -> None:
    found = seen.patched["nearly all NaN"]
    assert torch.equal(found["cut"][0].nan_to_num(7), found["row"][0].nan_to_num(7))
    assert found["cut"][1].isfinite().sum() == 20


def test_the_softmax(seen: Any) -> None:
    for name, (logits, found) in seen.patched["softmax"].items():
        exact = logits.double().softmax(-1)
        broken = exact.isnan().any(1)
        assert torch.equal(found.isnan(), exact.isnan()), name
        assert broken.sum() == (3 if name == "broken" else 0)
        torch.testing.assert_close(found[~broken].double(), exact[~broken], rtol=2e-6, atol=1e-9)
        torch.testing.assert_close(found[~broken], logits[~broken].softmax(-1), rtol=2e-6, atol=1e-9)


@pytest.mark.parametrize("case", ["right", "right, top-k alone"])
def test_draws_are_distributed_as_they_should_be(seen: Any, case: str) -> None:
    assert of_support(seen.patched["draws"][case]) > 1e-3


@pytest.mark.parametrize("bias", ["one fewer", "warm"])
def test_and_the_test_would_notice(seen: Any, bias: str) -> None:
    assert of_support(seen.patched["draws"][bias]) < 1e-6


@pytest.mark.parametrize("case", ["right", "not cut, warmer"])
def test_rejection_sampling_of_drafts_is_exact(seen: Any, case: str) -> None:
    found = seen.patched["drafted"][case]
    assert found["counts"].sum() == VERIFIED
    assert (found["support"] <= found["k"]) == (case == "right")
    # Drafts are accepted as often as the two distributions overlap.
    overlap = torch.minimum(truncated(found["row"], found["k"], found["p"]), found["probs"].double()).sum()
    share = torch.stack([found["accepted"], VERIFIED - found["accepted"]])
    assert 0.1 < overlap < 0.9 and pearson(share, torch.stack([overlap, 1 - overlap])) > 1e-3
    assert of_support(found) > 1e-3


def test_and_a_draft_distribution_that_is_not_the_drafts_shows(seen: Any) -> None:
    assert of_support(seen.patched["drafted"]["biased"]) < 1e-6
