"""With a key set, nothing answers without it but four public paths, and the four a later patch of the series adds to them."""

from __future__ import annotations

import pytest
from seen import Seen

PUBLIC = {"/health", "/ping", "/load", "/version"}
# Added by api-root-health.
ASKED_FIRST = {"/", "/api/status", "/api/show", "/api/experimental/model-recommendations"}
# A server decodes a path once before the application sees it, so these are the public path for the router too.
SAME = {"/health/", "/version/", "/%68ealth", "/health%2f"}


def test_only_the_public_paths_pass_the_middleware(seen: Seen) -> None:
    passed = {(path, m) for path, by in seen.patched["middleware"]["paths"].items() for m, ok in by.items() if ok}
    methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]
    assert passed == {(path, m) for path in PUBLIC | SAME | {"", "/"} for m in methods}


def test_pristine_lets_inference_and_metrics_through(seen: Seen) -> None:
    paths = seen.pristine["middleware"]["paths"]
    for path in ("/invocations", "/tokenize", "/metrics", "/openapi.json", "//v1/models"):
        assert paths[path]["POST"]
    assert paths["/v1/models"]["OPTIONS"]


def test_every_route_of_the_application_is_guarded(seen: Seen) -> None:
    answers = seen.patched["app"]["answers"]
    assert len(answers) > 100
    open_paths = {key.split(" ")[1] for key, status in answers.items() if status != 401}
    assert open_paths == PUBLIC | ASKED_FIRST
    pristine = {key.split(" ")[1] for key, status in seen.pristine["app"]["answers"].items() if status != 401}
    assert {"/metrics", "/tokenize", "/invocations", "/docs", "/v1/models"} <= pristine


def test_the_public_paths_answer_and_the_key_opens_the_rest(seen: Seen) -> None:
    answers = seen.patched["app"]["answers"]
    assert {answers[f"GET {path}"] for path in PUBLIC} == {200}
    assert seen.patched["app"]["keyed"] == 200


@pytest.mark.parametrize("name", ["right", "second", "lower", "latin"])
def test_a_right_key_passes(seen: Seen, name: str) -> None:
    assert seen.patched["middleware"]["headers"][name]


@pytest.mark.parametrize(
    "name", ["none", "basic", "bare", "empty", "blank", "padded", "trailing", "wrong", "utf8", "bytes", "twice"]
)
def test_anything_else_does_not(seen: Seen, name: str) -> None:
    assert not seen.patched["middleware"]["headers"][name]


def test_only_a_true_preflight_passes(seen: Seen) -> None:
    found = seen.patched["middleware"]
    assert found["preflight"]
    assert found["half preflights"] == [False, False]
    assert not found["preflight of another method"]
    assert seen.pristine["middleware"]["half preflights"] == [True, True]
    # The CORS middleware answers it: what the mounted metrics would say is not there.
    assert "python_info" not in seen.patched["app"]["preflight body"]


def test_websockets_are_guarded(seen: Seen) -> None:
    found = seen.patched["middleware"]
    assert not found["websocket"]
    assert not found["websocket preflight"]
    assert found["websocket with key"]
    assert seen.pristine["middleware"]["websocket preflight"]


def test_lifespan_passes(seen: Seen) -> None:
    assert seen.patched["middleware"]["lifespan"]


def test_root_path_is_taken_off_once_and_whole(seen: Seen) -> None:
    passed = {key for key, ok in seen.patched["middleware"]["root path"].items() if ok}
    assert passed == {
        *("/api /api/health", "/api /health", "/api/ /api/health", "/api/ /health"),
        *("/health /health", "/v1 /health"),
    }


def test_no_spelling_reaches_the_application(seen: Seen) -> None:
    assert set(seen.patched["spelled"].values()) == {401}
    # The first is the real route, which runs inference: pristine, it gets as far as asking for a body.
    assert 401 not in seen.pristine["spelled"].values()


def test_behind_a_prefix_the_same_paths_are_open(seen: Seen) -> None:
    answers = seen.patched["prefix"]["without a key"]
    assert {path for path, status in answers.items() if status != 401} == {"/health", "/api/health"}
    assert answers["/health"] == answers["/api/health"] == 200
    pristine = seen.pristine["prefix"]["without a key"]
    assert pristine["/api/metrics"] == pristine["/metrics"] == 200


def test_an_empty_key_beside_another_is_no_key(seen: Seen) -> None:
    for tree in (seen.pristine, seen.patched):
        assert tree["prefix"]["with"] == {"right": 200, "empty": 401}


def test_the_help_says_what_is_guarded(seen: Seen) -> None:
    assert "only authenticates endpoints under" in seen.pristine["key help"]
    text = " ".join(seen.patched["key help"].split())
    assert "only authenticates" not in text
    assert all(f"`{path}`" in text for path in PUBLIC | ASKED_FIRST | {"/metrics"})


def test_without_a_key_the_server_stays_open(seen: Seen) -> None:
    assert seen.patched["open"] == seen.pristine["open"] == 200
