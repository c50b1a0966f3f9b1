"""Lookup drafting: what is found, how it is fused with the drafter's tokens, and that verification stays exact."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from chance import pearson
from lookup_cases import histories
from lookup_chance_cases import REQUESTS, TARGET
from lookup_oracle import Rules, fuse, search


@pytest.fixture(scope="module")
def seen(driven: Any) -> dict[str, Any]:
    return driven("cases_drive.py", "lookup_cases").patched


@pytest.fixture(scope="module")
def chance(driven: Any) -> dict[str, Any]:
    return driven("cases_drive.py", "lookup_chance_cases").patched


def check(step: dict[str, Any]) -> list[tuple[int, bool]]:
    """Each row of a step against the oracle; returns the match and whether a looked-up token was taken."""
    rules, found = Rules(**step["rules"]), []
    for row, history in enumerate(step["histories"]):
        drafted, drafts = step["drafted"][row].tolist(), step["drafts"][row].tolist()
        if history is None:
            assert (drafts, int(step["length"][row]), int(step["wanted"][row])) == (drafted, 0, 1)
            continue
        match = search(history, rules.shortest, step["longest"], step["back"])
        fused = fuse(drafted, match, step["block"], rules)
        assert int(step["length"][row]) == match.length, history
        assert drafts == fused.drafts, (history, match)
        assert bool(step["wanted"][row]) == fused.wanted, (history, match)
        found.append((match.length, drafts[: step["block"]] != drafted[: step["block"]]))
    return found


def test_the_search_is_the_brute_force_search(seen: dict[str, Any]) -> None:
    found = [row for step in seen["searched"] for row in check(step)]
    assert len(found) == 4 * len(histories())
    assert sum(length > 0 for length, _ in found) > 40 and sum(length == 0 for length, _ in found) > 10


def test_a_document_that_is_repeated_fills_the_block_and_random_text_nothing(seen: dict[str, Any]) -> None:
    named = histories()
    repeated = random_text = 0
    for step in seen["searched"]:
        for row, history in enumerate(step["histories"]):
            if history == named["a document again"] and step["back"] > 300:
                assert step["drafts"][row].tolist() == named["a document again"][180 : 180 + step["drafts"].shape[1]]
                repeated += 1
            if history == named["wide"] and step["rules"]["shortest"] == 3:
                width = step["block"]
                assert torch.equal(step["drafts"][row, :width], step["drafted"][row, :width])
                assert not step["length"][row] and not step["wanted"][row] and not step["drafts"][row, width:].any()
                random_text += 1
    assert (repeated, random_text) == (3, 3)


def test_drafts_are_fused_as_the_rules_say(seen: dict[str, Any]) -> None:
    found = [row for step in seen["fused"] for row in check(step)]
    assert len(found) == 96 and 10 < sum(taken for _, taken in found) < 86


def test_requests_grow_and_follow_each_other(seen: dict[str, Any]) -> None:
    assert len(seen["steps"]) == 12
    assert sum(length > 0 for step in seen["steps"] for length, _ in check(step)) > 10


def test_finite_draft_logits_are_those_of_the_cached_candidates(seen: dict[str, Any]) -> None:
    kept = seen["kept"]
    assert kept["finite entries are the cached ones"] and kept["used ones have one token"] and kept["used"] > 30


def test_what_is_not_in_the_vocabulary_ends_the_proposal(seen: dict[str, Any]) -> None:
    assert len(seen["outside"]) == 6
    for name, found in seen["outside"].items():
        assert found == {"drafts": [7, 8, 8, 0, 0], "behind": True, "wanted": 0, "length": 6}, name


def likely(found: dict[str, Any]) -> list[float]:
    """For each position, how likely what was emitted there is under the target's distribution."""
    return [pearson(counts, row.double()) for counts, row in zip(found["emitted"], TARGET, strict=True)]


@pytest.mark.parametrize("case", ["strong", "agreed", "no match"])
def test_what_is_emitted_has_the_targets_distribution(chance: dict[str, Any], case: str) -> None:
    found = chance[case]
    assert found["emitted"][0].sum() == REQUESTS and found["emitted"][1].sum() > 50
    assert min(likely(found)) > 1e-4


def test_the_cases_are_what_they_say(chance: dict[str, Any]) -> None:
    assert (chance["strong"]["drafts"] == torch.tensor([2, 1, 3])).all()
    agreed, drew = chance["agreed"], chance["agreed"]["before"][:, 0] == 2
    assert 80 < drew.sum() < 160
    assert (agreed["drafts"][drew] == torch.tensor([2, 1, 3])).all()
    assert torch.equal(agreed["drafts"][~drew, :2], agreed["before"][~drew, :2])
    assert not agreed["drafts"][~drew & (agreed["before"][:, :2] != torch.tensor([2, 1])).any(1), 2].any()
    assert chance["no match"]["changed"] == 0 and not chance["no match"]["drafts"][:, 2].any()


@pytest.mark.parametrize("case", ["drafter's", "certain"])
def test_and_a_wrong_draft_distribution_shows(chance: dict[str, Any], case: str) -> None:
    assert likely(chance[case])[0] < 1e-6
