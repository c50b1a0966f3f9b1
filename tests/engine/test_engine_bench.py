"""``vllm bench serve`` against a running server: through a proxy that sends comments, and with a key."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from launching import Launcher, end, until

from serving import Server

DELAY = 0.25
REQUESTS = 4
OUTPUT = 6
SEPARATOR = b"\n\n"
PAUSE = 0.02  # between two messages, so that they are two pieces


@dataclass
class Sent:
    """What the proxy sent of one stream: when it asked and when the first data came, and the messages of tokens in it."""

    asked: float
    first: float = 0.0
    data: bytes = b""

    @property
    def tokens(self) -> int:
        messages = [line[6:] for line in self.data.splitlines() if line.startswith(b"data: {")]
        return sum(bool(json.loads(message).get("choices")) for message in messages)


@dataclass
class Proxy:
    """Where it listens and what it sent."""

    url: str
    sent: list[Sent]


@pytest.fixture
def commenting(servers: dict[str, Server]) -> Iterator[Proxy]:
    """A proxy in front of the patched server whose streams begin with a comment, long before the first token.

    It sends message by message, however many the server has put into a piece: which pieces a client gets decides what it makes of them.
    """
    import asyncio

    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

    target = servers["patched dense"].url
    sent: list[Sent] = []

    async def forward(request: Request) -> Response:
        body = await request.body()
        headers = {k: v for k, v in request.headers.items() if k in ("content-type", "authorization")}

        async def stream() -> Any:
            sent.append(record := Sent(time.monotonic()))
            yield b": keep-alive\n\n"
            await asyncio.sleep(DELAY)
            yield b": keep-alive\r\n\r\n"
            async with (
                httpx.AsyncClient(timeout=60) as client,
                client.stream(request.method, target + request.url.path, content=body, headers=headers) as answer,
            ):
                rest = b""
                async for chunk in answer.aiter_raw():
                    *messages, rest = (rest + chunk).split(SEPARATOR)
                    for message in messages:
                        record.first = record.first or time.monotonic()
                        record.data += message + SEPARATOR
                        yield message + SEPARATOR
                        await asyncio.sleep(PAUSE)
                assert not rest

        if body and json.loads(body).get("stream"):
            return StreamingResponse(stream(), media_type="text/event-stream")
        async with httpx.AsyncClient(timeout=60) as client:
            answer = await client.request(request.method, target + request.url.path, content=body, headers=headers)
        return Response(answer.content, answer.status_code, media_type=answer.headers.get("content-type"))

    app = Starlette(routes=[Route("/{path:path}", forward, methods=["GET", "POST"])])
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        proxy = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=lambda: proxy.run([listening]))
        thread.start()
        try:
            until(lambda: proxy.started, 20, "the proxy is not up")
            yield Proxy(f"http://127.0.0.1:{listening.getsockname()[1]}", sent)
        finally:
            proxy.should_exit = True
            thread.join(20)


def bench(
    launcher: Launcher, url: str, server: Server, folder: Path, backend: str = "openai", **settings: str
) -> tuple[int, str, Any]:
    """One run: its exit status, what it printed, and the result it saved."""
    folder.mkdir()
    endpoint = "/v1/chat/completions" if "chat" in backend else "/v1/completions"
    words = ["bench", "serve", "--backend", backend, "--base-url", url, "--endpoint", endpoint]
    words += ["--model", str(server.model), "--dataset-name", "random", "--input-len", "40"]
    words += ["--output-len", str(OUTPUT), "--num-prompts", str(REQUESTS), "--temperature", "0", "--disable-tqdm"]
    words += ["--save-result", "--save-detailed", "--result-filename", "out.json", "--ready-check-timeout-sec", "5"]
    run = launcher.copy(words, settings, folder, folder / "log")
    try:
        until(lambda: run.poll() is not None, 120, "the benchmark does not end")
    finally:
        end(run)
    status, result = run.poll(), folder / "out.json"
    assert status is not None
    return status, (folder / "log").read_text(), json.loads(result.read_bytes()) if result.exists() else None


@pytest.mark.parametrize("backend", ["openai", "openai-chat"])
def test_comments_do_not_spoil_a_measurement(
    servers: dict[str, Server], launchers: dict[str, Launcher], commenting: Proxy, tmp_path: Path, backend: str
) -> None:
    server = servers["patched dense"]
    status, text, result = bench(launchers["patched"], commenting.url, server, tmp_path / "patched", backend)
    assert status == 0, text[-3000:]
    assert result["completed"] == REQUESTS
    assert result["total_output_tokens"] == REQUESTS * OUTPUT
    # The one before is the command's own, to see whether the server answers.
    sent = commenting.sent[-REQUESTS:]
    assert len(commenting.sent) == REQUESTS + 1
    # The time to the first token waits for a token, not for a comment.
    waits = sorted(record.first - record.asked for record in sent)
    assert waits[0] > DELAY
    assert all(measured > wait for measured, wait in zip(sorted(result["ttfts"]), waits, strict=True))
    # One gap between every two messages of tokens, of which a chat's first has only the role.
    assert sorted(len(gaps) + 1 for gaps in result["itls"]) == sorted(record.tokens for record in sent)


def test_pristine_fails_them(
    servers: dict[str, Server], launchers: dict[str, Launcher], commenting: Proxy, tmp_path: Path
) -> None:
    server = servers["patched dense"]
    status, text, result = bench(launchers["pristine"], commenting.url, server, tmp_path / "pristine")
    # It gives up after its own first request, or measures less than it sent.
    assert status != 0 or result["completed"] < REQUESTS
    assert "Never received a valid chunk to calculate TTFT" in text
    # The same client measures the same server without the proxy.
    status, text, result = bench(launchers["pristine"], server.url, server, tmp_path / "direct")
    assert status == 0, text[-3000:]
    assert result["completed"] == REQUESTS


@pytest.mark.parametrize("tree", ["pristine", "patched"])
def test_its_own_requests_carry_the_key(
    launchers: dict[str, Launcher], edges: Server, tmp_path: Path, tree: str
) -> None:
    assert edges.key is not None
    status, text, result = bench(launchers[tree], edges.url, edges, tmp_path / tree, OPENAI_API_KEY=edges.key)
    assert status == 0, text[-3000:]
    assert result["completed"] == REQUESTS
    assert ("WARNING: /tokenize unavailable" in text) == (tree == "pristine")


def test_a_wrong_key_is_called_that(launchers: dict[str, Launcher], edges: Server, tmp_path: Path) -> None:
    status, text, _ = bench(launchers["patched"], edges.url, edges, tmp_path / "wrong", OPENAI_API_KEY="wrong")
    assert status != 0
    assert "WARNING: /tokenize unavailable (HTTP 401; unauthorized:" in text
    assert "wrong" not in text.split("WARNING: /tokenize unavailable")[1].split("skipping")[0]
