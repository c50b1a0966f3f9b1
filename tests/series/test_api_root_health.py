"""The root and three paths under /api answer without a key, and tell nothing the caller did not send."""

from __future__ import annotations

import json

import pytest
from seen import Seen

KNOWN = [
    *("exact", "lower case", "last component", "colon", "tag cut short", "latest", "another directory"),
    *("size with a point", "adapter", "by name"),
]
UNKNOWN = [
    *("no tag cut short", "tag cut inside a word", "part of a name", "path", "last component of the path", "unknown"),
    *("only a colon", "only a slash", "wildcard", "regular expression", "adapter gone", "only latest"),
]
MALFORMED = ["no JSON", "not UTF-8", "empty", "a list", "no name", "a number", "null", "deep", "long"]


def test_pristine_answers_none_of_it(seen: Seen) -> None:
    assert {status for status, _ in seen.pristine["root"].values()} == {404}
    assert {status for status, _ in seen.pristine["root shown"].values()} == {404}


def test_the_paths_answer(seen: Seen) -> None:
    root = seen.patched["root"]
    assert root["GET /"] == root["HEAD /"] == [200, ""]
    assert json.loads(root["GET /api/status"][1]) == {"status": "ok"}
    assert json.loads(root["GET /api/experimental/model-recommendations"][1]) == {"models": []}
    assert root["POST /"][0] == root["DELETE /"][0] == root["GET /api/show"][0] == root["POST /api/status"][0] == 405


@pytest.mark.parametrize("case", KNOWN)
def test_a_served_model_is_found(seen: Seen, case: str) -> None:
    status, text = seen.patched["root shown"][case]
    assert status == 200
    assert json.loads(text)["model_info"] == {"general.context_length": 256}


@pytest.mark.parametrize("case", UNKNOWN)
def test_an_unknown_model_is_a_404_that_names_only_what_was_asked(seen: Seen, case: str) -> None:
    status, text = seen.patched["root shown"][case]
    assert status == 404
    assert json.loads(text).keys() == {"error"}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_body_is_a_400(seen: Seen, case: str) -> None:
    assert seen.patched["root shown"][case][0] == 400


def test_nothing_served_is_told(seen: Seen) -> None:
    path, basename = seen.patched["root model"]
    answers = {**seen.patched["root shown"], **seen.patched["root"]}
    for case, (_, text) in answers.items():
        if case not in ("path", "last component of the path"):
            assert basename not in text, case
            assert path not in text, case
        for secret in ("Org/", "HQ-27B-int4", "deep/er"):
            assert secret not in text, case


def test_the_size_is_that_of_the_name_asked_for(seen: Seen) -> None:
    def size(case: str) -> str:
        return json.loads(seen.patched["root shown"][case][1])["details"]["parameter_size"]

    assert {case: size(case) for case in ("exact", "tag cut short", "size with a point", "latest", "adapter")} == {
        "exact": "27B",
        "tag cut short": "27B",
        "size with a point": "1.5B",
        "latest": "",
        "adapter": "",
    }


def test_their_neighbours_need_the_key(seen: Seen) -> None:
    assert set(seen.patched["root neighbours"].values()) == {401}
