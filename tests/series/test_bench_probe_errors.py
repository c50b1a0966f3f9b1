"""The benchmark's own requests carry what the measured ones carry, and a failed probe says why."""

from __future__ import annotations

import pytest
from seen import Seen

PROMPTS = ["a b c", "d e f g", "h i"]
OLD = "WARNING: /tokenize unavailable, skipping alignment.\n"
KEY_HINT = "set OPENAI_API_KEY or pass --header"
REASONS = {
    "no route": "HTTP 404; not found: the route or the model name; Not Found",
    "no model": "HTTP 404; not found: the route or the model name; The model `m` does not exist.",
    "no key": f"HTTP 401; unauthorized: {KEY_HINT}; Unauthorized",
    "other status": "HTTP 502",
    "odd error": 'HTTP 500; ["no", "object"]',
    "timed out": "timed out",
    "not what was asked for": None,
    "no JSON": None,
    "dropped": None,
    "unreachable": None,
    "forbidden": None,
}
STARTS = {
    "dropped": "unreachable: ",
    "unreachable": "unreachable: ",
    "no JSON": "ContentTypeError: ",
    "not what was asked for": "ContentTypeError: ",
    "forbidden": f"HTTP 403; forbidden: {KEY_HINT}; tenant [31m is not allowed xxx",
}


def reason(text: str) -> str:
    assert text.startswith("WARNING: /tokenize unavailable (")
    assert text.endswith("), skipping alignment.\n")
    return text[len("WARNING: /tokenize unavailable (") : -len("), skipping alignment.\n")]


@pytest.mark.parametrize("case", REASONS)
def test_a_failed_probe_says_why_and_is_not_fatal(seen: Seen, case: str) -> None:
    prompts, text = seen.patched["probe failures"][case]
    assert prompts == PROMPTS[: len(prompts)] and prompts
    if REASONS[case] is not None:
        assert reason(text) == REASONS[case]
    else:
        assert reason(text).startswith(STARTS[case])


@pytest.mark.parametrize("case", REASONS)
def test_pristine_says_the_same_of_everything(seen: Seen, case: str) -> None:
    assert seen.pristine["probe failures"][case][1] == OLD


def test_what_the_server_says_is_cut_and_printable(seen: Seen) -> None:
    text = reason(seen.patched["probe failures"]["forbidden"][1])
    assert text.isprintable()
    assert len(text) < 400


@pytest.mark.parametrize("path", ["/tokenize", "/detokenize", "/metrics"])
@pytest.mark.parametrize(
    ("case", "headers"),
    [
        ("nothing", {}),
        ("key", {"authorization": "Bearer sek"}),
        ("headers", {"x-tenant": "blue"}),
        ("both", {"authorization": "Bearer sek", "x-tenant": "blue"}),
        ("own key", {"authorization": "Bearer mine", "x-tenant": "blue"}),
    ],
)
def test_every_request_of_its_own_carries_the_headers(
    seen: Seen, path: str, case: str, headers: dict[str, str]
) -> None:
    assert seen.patched["probe headers"][case]["sent"][path] == headers
    assert seen.pristine["probe headers"][case]["sent"][path] == {}


def test_the_figures_are_as_they_were(seen: Seen) -> None:
    for case in ("nothing", "key", "both"):
        for what in ("aligned", "metrics"):
            assert seen.patched["probe headers"][case][what] == seen.pristine["probe headers"][case][what]
    assert "num_drafts=3" in seen.patched["probe headers"]["both"]["metrics"][0]
    assert "num_denoising_steps=5" in seen.patched["probe headers"]["both"]["metrics"][1]
    for case in ("probe aligned", "probe agreed"):
        assert seen.patched[case] == seen.pristine[case]
    assert seen.patched["probe aligned"][0] == ["0 1 2", "0 1", "0 1"]


def test_prompts_that_could_not_be_aligned_are_counted(seen: Seen) -> None:
    prompts, text = seen.patched["probe half"]
    assert prompts == seen.pristine["probe half"][0] == PROMPTS
    assert text.endswith("WARNING: 3 of 3 prompts could not be re-aligned (HTTP 503; busy).\n")
    assert "could not" not in seen.pristine["probe half"][1]
