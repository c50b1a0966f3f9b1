"""A prompt several chunks long, asked for by the official client: its prefill grows to its end, and nobody else hears of it."""

from __future__ import annotations

import itertools
from typing import Any

import openai
import pytest

from serving import CHUNK, Server

COUNT = itertools.count()
MODELS = ["dense", "hybrid"]


def client_of(server: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=server.key or "none", max_retries=0, timeout=60)


def fresh_prompt() -> str:
    """A thousand tokens or so that no cache has."""
    return f"prompt {next(COUNT)} " + "the quick brown fox jumps over the lazy dog " * 110


def stream(server: Server, model: str, prompt: str, chat: bool, **body: Any) -> list[dict[str, Any]]:
    """The chunks of one streamed answer, as dictionaries."""
    with client_of(server) as client:
        common: dict[str, Any] = {"model": model, "max_tokens": 4, "stream": True, "temperature": 0, "extra_body": body}
        common["stream_options"] = {"include_usage": True}
        if chat:
            answer = client.chat.completions.create(messages=[{"role": "user", "content": prompt}], **common)
        else:
            answer = client.completions.create(prompt=prompt, **common)
        return [chunk.model_dump() for chunk in answer]


def reports(chunks: list[dict[str, Any]]) -> list[dict[str, int]]:
    return [chunk["prompt_progress"] for chunk in chunks if chunk.get("prompt_progress") is not None]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("chat", [False, True], ids=["completions", "chat"])
def test_it_grows_to_the_total(servers: dict[str, Server], model: str, chat: bool) -> None:
    server = servers[f"patched {model}"]
    chunks = stream(server, str(server.model), fresh_prompt(), chat, return_progress=True)
    found = reports(chunks)
    total = chunks[-1]["usage"]["prompt_tokens"]
    assert total > 3 * CHUNK
    assert {report["total"] for report in found} == {total}
    done = [report["processed"] for report in found]
    assert done == sorted(set(done))
    assert done[-1] == total
    # The front end may skip a report that is overtaken by the next, never all of them.
    assert len(done) >= 2 and done[0] < total
    assert {report["cache"] for report in found} == {0}
    times = [report["time_ms"] for report in found]
    assert times == sorted(times)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("chat", [False, True], ids=["completions", "chat"])
def test_reports_come_first_and_the_answer_is_the_same(servers: dict[str, Server], model: str, chat: bool) -> None:
    server, prompt = servers[f"patched {model}"], fresh_prompt()
    asked = stream(server, str(server.model), prompt, chat, return_progress=True)
    plain = stream(server, str(server.model), prompt, chat)
    assert reports(plain) == []
    first = next(i for i, chunk in enumerate(asked) if chunk["choices"])
    assert len(reports(asked[:first])) == len(reports(asked)) > 0

    def said(chunks: list[dict[str, Any]]) -> list[Any]:
        return [chunk["choices"] for chunk in chunks if chunk["choices"]]

    assert said(asked) == said(plain)


@pytest.mark.parametrize("chat", [False, True], ids=["completions", "chat"])
def test_a_prefix_hit_is_processed_at_once_and_told(edges: Server, chat: bool) -> None:
    prompt = fresh_prompt()
    cold = reports(stream(edges, "second", prompt, chat, return_progress=True))
    warm = reports(stream(edges, "second", prompt, chat, return_progress=True))
    assert {report["cache"] for report in cold} == {0}
    (cached,) = {report["cache"] for report in warm}
    assert cached >= cold[-1]["total"] - CHUNK
    assert warm[0]["processed"] > cached
    assert warm[-1]["processed"] == warm[-1]["total"] == cold[-1]["total"]


@pytest.mark.parametrize("model", MODELS)
def test_pristine_and_who_does_not_ask_send_the_same(servers: dict[str, Server], model: str) -> None:
    prompt = fresh_prompt()
    seen = []
    for tree in ("pristine", "patched"):
        server = servers[f"{tree} {model}"]
        for body in ({}, {"return_progress": False}):
            chunks = stream(server, str(server.model), prompt, True, **body)
            seen.append([{k: v for k, v in chunk.items() if k not in ("id", "created")} for chunk in chunks])
    assert reports(seen[0]) == []
    assert seen[0] == seen[1] == seen[2] == seen[3]


@pytest.mark.parametrize("n", [1, 3])
def test_the_first_token_is_timed_once_a_sequence(servers: dict[str, Server], n: int) -> None:
    server = servers["patched dense"]
    names = ["vllm:time_to_first_token_seconds_count", "vllm:prompt_tokens_total", "vllm:generation_tokens_total"]
    before = [server.metric(name) for name in names]
    chunks = stream(server, str(server.model), fresh_prompt(), False, return_progress=True, n=n)
    after = [server.metric(name) for name in names]
    total = chunks[-1]["usage"]["prompt_tokens"]
    assert reports(chunks)[-1]["processed"] == total
    assert [a - b for a, b in zip(after, before, strict=True)] == [n, n * total, n * 4]
