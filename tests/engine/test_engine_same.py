"""Knobs unset: the patched server is the pristine one, but for what each patch says it adds."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from conftest import PLAIN
from patchforge.engine.probes import source_probe
from patchforge.headers.probe import parse_probe
from patchforge.series.parsed import header_of
from patchforge.series.project import find_project, load_series
from serving import Server

SERIES = load_series(find_project(Path(__file__).parents[2]), None)
NEW_PATHS = {
    *("/v1/tokenize", "/v1/detokenize"),  # tokenize-v1-route
    *("/", "/api/status", "/api/show", "/api/experimental/model-recommendations"),  # api-root-health
}
ASKS_FOR_PROGRESS = ["ChatCompletionRequest", "CompletionRequest"]  # vllm-pr40371-prompt-progress
MODELS = ["dense", "hybrid"]
LONG = "the quick brown fox jumps over the lazy dog " * 60
GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 24, "ignore_eos": True, "return_token_ids": True}
REQUESTS: dict[str, tuple[str, str, Any]] = {
    "completion": ("POST", "/v1/completions", {"prompt": "the quick brown fox", **GREEDY}),
    "long completion": ("POST", "/v1/completions", {"prompt": LONG, **GREEDY, "logprobs": 3}),
    "several": ("POST", "/v1/completions", {"prompt": ["the fox", "a clever cat", LONG], **GREEDY}),
    # Not of one token: where the second of them is prefilled by itself, the release's convolution on a CPU refuses its shape.
    "seeded": ("POST", "/v1/completions", {"prompt": "a clever fox", **GREEDY, "temperature": 0.8, "seed": 5, "n": 2}),
    "echo": ("POST", "/v1/completions", {"prompt": "the fox", **GREEDY, "echo": True, "logprobs": 1}),
    "chat": ("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "a fox"}], **GREEDY}),
    "tokenize": ("POST", "/tokenize", {"prompt": "the quick brown fox"}),
    "detokenize": ("POST", "/detokenize", {"tokens": [5, 6, 7, 200]}),
    "models": ("GET", "/v1/models", None),
    "version": ("GET", "/version", None),
    "health": ("GET", "/health", None),
    "load": ("GET", "/load", None),
    "wrong type": ("POST", "/v1/completions", {"prompt": 7}),
    "too long": ("POST", "/v1/completions", {"prompt": LONG * 20, "max_tokens": 5}),
    "missing route": ("GET", "/v2/nothing", None),
    "wrong method": ("PUT", "/v1/completions", None),
}
BATCHES = {"several", "seeded"}
# What differs from one answer to the next on one and the same server.
PASSING = ("id", "created", "request_id")


def probes() -> list[Any]:
    return [pytest.param(parse_probe(header_of(patch).get("Probe")), id=patch.name) for patch in SERIES.patches]


@pytest.mark.parametrize("probe", probes())
def test_the_probe_is_false_before_and_true_after(trees: dict[str, Path], probe: Any) -> None:
    assert probe.kind == "source", "write how an import probe is evaluated here"
    before, after = (trees[name] / "vllm" / probe.where for name in ("pristine", "patched"))
    assert not source_probe(probe, before.read_bytes() if before.exists() else None)
    assert source_probe(probe, after.read_bytes())


def steady(value: Any) -> Any:
    """``value`` without what passes."""
    if isinstance(value, dict):
        return {k: steady(v) for k, v in value.items() if k not in PASSING}
    return [steady(item) for item in value] if isinstance(value, list) else value


def documents(servers: dict[str, Server], model: str) -> list[Any]:
    found = []
    for tree in ("pristine", "patched"):
        with servers[f"{tree} {model}"].client() as client:
            found.append(client.get("/openapi.json").json())
    return found


@pytest.mark.parametrize("model", MODELS)
def test_the_document_of_every_pristine_route_is_the_same(servers: dict[str, Server], model: str) -> None:
    pristine, patched = documents(servers, model)
    added = set(patched["paths"]) - set(pristine["paths"])
    assert added == NEW_PATHS
    rest = copy.deepcopy(patched)
    for path in NEW_PATHS:
        del rest["paths"][path]
    for name in ASKS_FOR_PROGRESS:
        field = rest["components"]["schemas"][name]["properties"].pop("return_progress")
        assert field["default"] is False
    assert len(pristine["paths"]) > 20
    assert rest == pristine


def answer_of(server: Server, name: str) -> tuple[int, dict[str, str], Any]:
    """Status, headers and content of a server's answer, without what passes."""
    method, path, body = REQUESTS[name]
    with server.client() as client:
        answer = client.request(method, path, json=body)
    headers = {k: v for k, v in answer.headers.items() if k not in ("date", "content-length")}
    return answer.status_code, headers, steady(answer.json()) if answer.content else None


def assert_same(one: Server, other: Server, name: str) -> tuple[int, dict[str, str], Any]:
    """Both answer a request alike, the first time and with what that left in the prefix cache; the last answer of ``one``."""
    for _ in range(2):
        answers = answer_of(one, name), answer_of(other, name)
        if name in BATCHES and answers[0] != answers[1]:
            # Sequences share steps as they happen to arrive, and sums may be rounded by who shares them.  That is an excuse only
            # where a server differs from itself.
            seen = [[answer_of(server, name) for _ in range(4)] for server in (one, other)]
            assert any(answer != seen[0][0] for answer in seen[0]), "always different"
            assert any(answer in seen[1] for answer in seen[0])
            continue
        assert answers[0] == answers[1]
    return answers[0]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", REQUESTS)
def test_answers_and_tokens_are_the_same(servers: dict[str, Server], model: str, name: str) -> None:
    status, _, content = assert_same(servers[f"pristine {model}"], servers[f"patched {model}"], name)
    if "max_tokens" in str(REQUESTS[name][2]) and status == 200:
        tokens = [token for choice in content["choices"] for token in choice["token_ids"]]
        assert len(set(tokens)) > 3, "the text does not vary, so it would not show a wrong token"


@pytest.mark.parametrize("name", REQUESTS)
def test_a_server_started_alone_answers_like_its_copy(servers: dict[str, Server], name: str) -> None:
    servers[PLAIN].wait()
    # Both know the prompt by now, or neither does.
    answer_of(servers[PLAIN], name), answer_of(servers["patched dense"], name)
    assert_same(servers[PLAIN], servers["patched dense"], name)


def test_an_unknown_model_differs_by_the_names_alone(servers: dict[str, Server]) -> None:
    answers = []
    for tree in ("pristine", "patched"):
        with servers[f"{tree} dense"].client() as client:
            answers.append(client.post("/v1/completions", json={"model": "nobody", "prompt": "a"}).json()["error"])
    message = answers[1].pop("message")
    upstream = answers[0].pop("message")
    # This server's only name is a path, and upstream masks what it knows as one: how much of it depends on where it lies.
    assert re.fullmatch(re.escape(upstream) + r" Valid aliases: (/\S+|(/\S+)?<path>)", message), message
    assert answers[0] == answers[1]
