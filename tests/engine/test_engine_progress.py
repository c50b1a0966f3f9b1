"""A prompt several chunks long, asked for by the official client: its prefill grows to its end, and nobody else hears of it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import openai
import pytest
from launching import until

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
        common: dict[str, Any] = {
            "model": model,
            "max_tokens": 4,
            "stream": True,
            "extra_body": {"temperature": 0, **body},
        }
        common["stream_options"] = {"include_usage": True}
        if chat:
            answer = client.chat.completions.create(messages=[{"role": "user", "content": prompt}], **common)
        else:
            answer = client.completions.create(prompt=prompt, **common)
        return [chunk.model_dump() for chunk in answer]


def reports(chunks: list[dict[str, Any]]) -> list[dict[str, int]]:
    return [chunk["prompt_progress"] for chunk in chunks if chunk.get("prompt_progress") is not None]


def in_parts(ask: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """An answer with two reports or more: the front end may skip one that the next overtakes, on a quick machine all but the last."""
    for _ in range(20):
        chunks = ask()
        if len(reports(chunks)) >= 2:
            return chunks
    pytest.fail("20 prompts of several chunks had one report each")


def folded(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """What chunks say taken together: the server may send two tokens in one when it is behind."""
    said: dict[int, dict[str, str]] = {}
    names: set[str] = set()
    for chunk in chunks:
        names |= set(chunk)
        for choice in chunk["choices"]:
            names |= {f"choice.{name}" for name in choice}
            part = choice.get("delta") or {"text": choice.get("text")}
            names |= {f"part.{name}" for name in part}
            sums = said.setdefault(choice["index"], {})
            for key, value in [*part.items(), ("finish_reason", choice["finish_reason"])]:
                sums[key] = sums.get(key, "") + (value or "")
    return {"names": names, "said": said, "usage": chunks[-1]["usage"], "model": {chunk["model"] for chunk in chunks}}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("chat", [False, True], ids=["completions", "chat"])
def test_it_grows_to_the_total(servers: dict[str, Server], model: str, chat: bool) -> None:
    server = servers[f"patched {model}"]
    chunks = in_parts(lambda: stream(server, str(server.model), fresh_prompt(), chat, return_progress=True))
    found = reports(chunks)
    total = chunks[-1]["usage"]["prompt_tokens"]
    assert total > 3 * CHUNK
    assert {report["total"] for report in found} == {total}
    done = [report["processed"] for report in found]
    assert done == sorted(set(done))
    assert done[-1] == total
    assert done[0] < total
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

    answers = folded([chunk for chunk in asked if chunk.get("prompt_progress") is None]), folded(plain)
    assert answers[0]["said"] == answers[1]["said"]
    assert len("".join(str(sums) for sums in answers[1]["said"].values())) > 20
    assert answers[0]["usage"] == answers[1]["usage"]


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


@pytest.mark.parametrize("name", ["edges", "patched dense", "patched hybrid"])
@pytest.mark.parametrize("chat", [False, True], ids=["completions", "chat"])
def test_after_a_hit_on_its_beginning_it_grows_from_there(servers: dict[str, Server], name: str, chat: bool) -> None:
    server = servers[name]
    model = "second" if name == "edges" else str(server.model)
    # Two chunks and more that the cache has, and as much again that it has not.
    known = ""

    def begin() -> list[dict[str, Any]]:
        nonlocal known
        known = fresh_prompt()[:2000]
        return stream(server, model, known, chat, return_progress=True)

    cold = reports(in_parts(begin))
    warm = reports(in_parts(lambda: stream(server, model, known + fresh_prompt()[:2000], chat, return_progress=True)))
    # A server without --enable-prompt-tokens-details tells nobody what was cached.
    (cached,) = {report["cache"] for report in warm}
    assert (cached > 0) == (name == "edges")
    done = [report["processed"] for report in warm]
    assert done == sorted(set(done)) and done[-1] == warm[-1]["total"] > cold[-1]["total"]
    assert done[0] > max(cached, cold[0]["processed"])
    assert {report["total"] for report in warm} == {done[-1]}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("chat", [False, True], ids=["completions", "chat"])
def test_pristine_and_who_does_not_ask_send_the_same(servers: dict[str, Server], model: str, chat: bool) -> None:
    prompt = fresh_prompt()
    seen = []
    for tree in ("pristine", "patched"):
        server = servers[f"{tree} {model}"]
        for body in ({}, {"return_progress": False}):
            seen.append(folded(stream(server, str(server.model), prompt, chat, **body)))
    assert "prompt_progress" not in seen[0]["names"]
    assert seen[0] == seen[1] == seen[2] == seen[3]


def test_an_answer_that_is_not_streamed_has_no_report(servers: dict[str, Server]) -> None:
    for tree in ("pristine", "patched"):
        server = servers[f"{tree} dense"]
        body = {"prompt": fresh_prompt(), "max_tokens": 2, "return_progress": True}
        with server.client() as client:
            answer = client.post("/v1/completions", json=body)
        assert answer.status_code == 200
        assert "prompt_progress" not in answer.text


@pytest.mark.parametrize("n", [1, 3])
def test_the_first_token_is_timed_once_a_sequence(servers: dict[str, Server], n: int) -> None:
    server = servers["patched dense"]
    names = ["vllm:time_to_first_token_seconds_count", "vllm:prompt_tokens_total", "vllm:generation_tokens_total"]
    before = server.metrics(*names)
    sampled: dict[str, Any] = {"n": n, "temperature": 0.8, "ignore_eos": True}
    chunks = stream(server, str(server.model), fresh_prompt(), False, return_progress=True, **sampled)
    total = chunks[-1]["usage"]["prompt_tokens"]
    assert reports(chunks)[-1]["processed"] == total
    want = [n, n * total, n * 4]

    def counted() -> list[float]:
        return [a - b for a, b in zip(server.metrics(*names), before, strict=True)]

    # The last tokens are counted after they are sent.
    until(lambda: counted()[2] >= want[2], 20, "tokens are not counted")
    time.sleep(1)
    assert counted() == want
