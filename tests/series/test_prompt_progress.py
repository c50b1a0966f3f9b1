"""Whoever asks sees the prefill grow to its end; everybody else sees what pristine sends."""

from __future__ import annotations

from typing import Any

import pytest
from seen import Seen

ROUTES = ["completion", "chat", "two prompts"]


def progress(seen: Seen) -> Any:
    return seen.patched["progress"]


def reports(answer: Any) -> list[list[int]]:
    found = [chunk["prompt_progress"] for chunk in answer["chunks"] if "prompt_progress" in chunk]
    return [[report[key] for key in ("total", "cache", "processed", "time_ms")] for report in found]


def by_choice(answer: Any) -> list[Any]:
    """The chunks with choices: prompt by prompt, because which of two prompts comes first is a matter of chance."""
    return sorted((c for c in answer["chunks"] if c["choices"]), key=lambda chunk: chunk["choices"][0]["index"])


def test_the_scheduler_reports_every_chunk_and_the_end(seen: Seen) -> None:
    assert progress(seen)["scheduler"]["asked"]["first"] == [
        ["a", [], [200, 0, 64]],
        ["a", [], [200, 0, 128]],
        ["a", [], [200, 0, 192]],
        ["a", [7], [200, 0, 200]],
        ["a", [7], None],
        ["a", [7], None],
    ]


def test_a_prefix_hit_counts_as_processed_and_is_told(seen: Seen) -> None:
    assert progress(seen)["scheduler"]["asked"]["again"][0] == ["b", [7], [200, 192, 200]]


def test_chunks_in_flight_do_not_count_yet(seen: Seen) -> None:
    assert progress(seen)["scheduler"]["two in flight"] == [["a", [], [200, 0, 64]], ["a", [], [200, 0, 128]]]


def test_a_prompt_of_one_chunk_gets_one_report(seen: Seen) -> None:
    assert progress(seen)["scheduler"]["one chunk"] == [["a", [7], [20, 0, 20]], ["a", [7], None]]


def test_it_never_falls_after_a_preemption(seen: Seen) -> None:
    assert progress(seen)["scheduler"]["preempted"] == [64, 128, None, None, None, 192]


def test_the_engine_of_a_request_that_did_not_ask_says_what_it_said(seen: Seen) -> None:
    found = progress(seen)["scheduler"]["not asked"]
    assert found == seen.pristine["progress"]["scheduler"]["not asked"]
    assert found["first"] == [["a", [7], None]] * 3


def test_a_report_survives_the_wire(seen: Seen) -> None:
    assert progress(seen)["wire"]["back"] == ["PromptProgress", 9, 1, 4, 7]


def test_an_output_without_one_is_a_byte_longer_on_the_wire(seen: Seen) -> None:
    before, after = (bytes.fromhex(tree["progress"]["wire"]["plain"][0]) for tree in (seen.pristine, seen.patched))
    assert len(after) - len(before) == 1


def test_what_a_stream_gets_when_it_is_slow(seen: Seen) -> None:
    # Id from outside, tokens by sequence, progress, cached tokens: reports nobody fetched are gone.
    assert progress(seen)["processor"]["on"]["taken"] == [
        ["outside", [], [9, 2, 4], None],
        ["outside", [[0, [7]]], [9, 2, 9], 2],
        ["outside", [[0, [8]]], None, 2],
    ]


def test_of_several_sequences_the_first_speaks(seen: Seen) -> None:
    taken = progress(seen)["processor"]["three"]["taken"]
    assert [line[2] for line in taken] == [[9, 2, 4], [9, 2, 8], [9, 2, 9], None]
    # A token that waits to be fetched is not lost when a report comes after it.
    assert taken[1][1] == [[1, [6]]]
    assert taken[2][1] == [[0, [7]], [1, [7]], [2, [7]]]


def test_statistics_see_no_report(seen: Seen) -> None:
    # First tokens timed, tokens generated, prompt tokens counted, by iteration.
    off, on = (progress(seen)["processor"][name]["counted"] for name in ("off", "on"))
    assert off == [[1, 1, 9], [0, 1, 0]]
    assert on == [[0, 0, 0]] * 3 + off


def test_the_processor_without_reports_is_as_it_was(seen: Seen) -> None:
    assert progress(seen)["processor"]["off"] == seen.pristine["progress"]["processor"]["off"]


@pytest.mark.parametrize("route", ["completion", "chat"])
def test_a_stream_that_asks_gets_reports_before_anything_else(seen: Seen, route: str) -> None:
    answer = progress(seen)["streams"]["plain"][f"{route} asked"]
    total = answer["chunks"][0]["prompt_progress"]["total"]
    assert reports(answer) == [[total, 0, 1, 5], [total, 0, 2, 5], [total, 0, total, 5]]
    assert [chunk["choices"] for chunk in answer["chunks"][:3]] == [[], [], []]
    assert answer["done"]


def test_several_prompts_are_added_up(seen: Seen) -> None:
    found = reports(progress(seen)["streams"]["plain"]["two prompts asked"])
    assert {total for total, *_ in found} == {5}
    done = [processed for _, _, processed, _ in found]
    assert done == sorted(done) and done[-1] == 5


@pytest.mark.parametrize(("route", "cached"), [("completion", 1), ("chat", 1), ("two prompts", 2)])
def test_the_cache_is_told_where_usage_details_are(seen: Seen, route: str, cached: int) -> None:
    answer = progress(seen)["streams"]["detailed"][f"{route} asked"]
    assert reports(answer)[-1][1] == cached


@pytest.mark.parametrize("route", ROUTES)
def test_beside_the_reports_the_stream_is_the_same(seen: Seen, route: str) -> None:
    streams = progress(seen)["streams"]["plain"]
    asked, not_asked = streams[f"{route} asked"], streams[f"{route} not asked"]
    assert by_choice(asked) == by_choice(not_asked)
    assert len(asked["chunks"]) == len(not_asked["chunks"]) + len(reports(asked))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("flag", ["declined", "not asked", "without a stream"])
@pytest.mark.parametrize("server", ["plain", "detailed"])
def test_who_did_not_ask_gets_what_pristine_sends(seen: Seen, route: str, flag: str, server: str) -> None:
    key = f"{route} {flag}"
    answer = progress(seen)["streams"][server][key]
    before = seen.pristine["progress"]["streams"][server][key]
    assert by_choice(answer) == by_choice(before)
    assert {**answer, "chunks": len(answer["chunks"])} == {**before, "chunks": len(before["chunks"])}
    assert answer["status"] == 200
    assert not any(answer["engine asked"])


@pytest.mark.parametrize("route", ROUTES)
def test_pristine_knows_nothing_of_it(seen: Seen, route: str) -> None:
    assert reports(seen.pristine["progress"]["streams"]["plain"][f"{route} asked"]) == []


@pytest.mark.parametrize("route", ROUTES)
def test_nonsense_is_a_400(seen: Seen, route: str) -> None:
    assert progress(seen)["streams"]["plain"][f"{route} nonsense"]["status"] == 400
