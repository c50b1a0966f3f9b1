"""Speculative decoding in the whole engine, with the second model runner: greedy text is the same with drafts as without."""

from __future__ import annotations

from typing import Any

Seen = dict[str, dict[str, Any]]


def varied(tokens: list[list[int]]) -> bool:
    """Whether a wrong token would show: a model that says one thing over and over hides it."""
    return len({token for answer in tokens for token in answer}) > 12


def test_without_knobs_drafts_and_text_are_upstream_s(seen: Seen) -> None:
    assert seen["dflash, no knobs"] == seen["dflash, pristine"]
    assert seen["dflash, no knobs"]["tokens"] == seen["plain, pristine"]["tokens"]
    assert varied(seen["plain, pristine"]["tokens"])


def test_lookup_drafts_are_accepted_and_change_nothing(seen: Seen) -> None:
    plain, drafted, looked_up = (seen[name] for name in ("plain, pristine", "dflash, no knobs", "lookup"))
    assert looked_up["tokens"] == plain["tokens"]
    # What was said before is looked up, past the block of three that the drafter was trained for.
    assert looked_up["accepted_tokens"] > drafted["accepted_tokens"] + 10
    assert looked_up["drafts"] < drafted["drafts"]
    assert min(looked_up["accepted_tokens_per_pos"]) > 0


def test_the_verify_attention_over_int8_changes_nothing(seen: Seen) -> None:
    plain, drafted = seen["int8"], seen["int8, lookup"]
    assert drafted["tokens"] == plain["tokens"] and varied(plain["tokens"])
    assert drafted["accepted_tokens"] > 10
    # Without a match for long the block is the drafter's own, which is half as long.
    assert 3 * drafted["drafts"] < drafted["draft_tokens"] < 6 * drafted["drafts"]
    # Every verify batch of both layers, and no other.
    assert drafted["verify launches"] > 2 * 10 and plain["verify launches"] == 0


def test_the_hybrid_says_the_same_with_drafts(seen: Seen) -> None:
    """That drafting goes through: so small a model says the same from a neighbouring state; kernels_gdn has the states."""
    plain, drafted = seen["hybrid"], seen["hybrid, mtp"]
    assert drafted["tokens"] == plain["tokens"] and varied(plain["tokens"])
    # Some steps accept all, some a part, some nothing.
    first, _, last = drafted["accepted_tokens_per_pos"]
    assert drafted["drafts"] > first > last > 0
