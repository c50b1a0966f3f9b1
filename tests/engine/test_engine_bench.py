"""``vllm bench serve`` against a running server: through a proxy that sends comments, and with a key."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from serving import HERE, Server, environment, until

DELAY = 0.25
REQUESTS = 4
OUTPUT = 6


@pytest.fixture(scope="module")
def commenting(servers: dict[str, Server]) -> Iterator[str]:
    """A proxy in front of the patched server whose streams begin with a comment, long before the first token."""
    import asyncio

    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

    target = servers["patched dense"].url

    async def forward(request: Request) -> Response:
        body = await request.body()
        headers = {k: v for k, v in request.headers.items() if k in ("content-type", "authorization")}

        async def stream() -> Any:
            yield b": keep-alive\n\n"
            await asyncio.sleep(DELAY)
            yield b": keep-alive\r\n\r\n"
            async with (
                httpx.AsyncClient(timeout=60) as client,
                client.stream(request.method, target + request.url.path, content=body, headers=headers) as answer,
            ):
                async for chunk in answer.aiter_raw():
                    yield chunk

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
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            proxy.should_exit = True
            thread.join(20)


def bench(tree: Path, url: str, server: Server, scratch: Path, backend: str, **settings: str) -> tuple[int, str, Any]:
    """One run: its exit status, what it printed, and the result it saved."""
    scratch.mkdir()
    endpoint = "/v1/chat/completions" if "chat" in backend else "/v1/completions"
    words = ["--backend", backend, "--base-url", url, "--endpoint", endpoint, "--model", str(server.model)]
    words += [
        "--dataset-name",
        "random",
        "--input-len",
        "40",
        "--output-len",
        str(OUTPUT),
        "--num-prompts",
        str(REQUESTS),
    ]
    words += [
        "--temperature",
        "0",
        "--disable-tqdm",
        "--save-result",
        "--save-detailed",
        "--result-filename",
        "out.json",
    ]
    words += ["--ready-check-timeout-sec", "5"]
    done = subprocess.run(
        [sys.executable, str(HERE / "bench.py"), *words],
        env=environment(tree, scratch, **settings),
        cwd=scratch,
        capture_output=True,
        text=True,
        check=False,
    )
    result = scratch / "out.json"
    return done.returncode, done.stdout + done.stderr, json.loads(result.read_bytes()) if result.exists() else None


@pytest.mark.parametrize("backend", ["openai", "openai-chat"])
def test_comments_do_not_spoil_a_measurement(
    servers: dict[str, Server], trees: dict[str, Path], commenting: str, tmp_path: Path, backend: str
) -> None:
    server = servers["patched dense"]
    status, text, result = bench(trees["patched"], commenting, server, tmp_path / "patched", backend)
    assert status == 0, text[-3000:]
    assert result["completed"] == REQUESTS
    assert result["total_output_tokens"] == REQUESTS * OUTPUT
    # The time to the first token waits for a token, not for a comment.
    assert min(result["ttfts"]) > DELAY
    assert all(len(gaps) == OUTPUT - 1 for gaps in result["itls"])


def test_pristine_fails_them(
    servers: dict[str, Server], trees: dict[str, Path], commenting: str, tmp_path: Path
) -> None:
    server = servers["patched dense"]
    status, text, result = bench(trees["pristine"], commenting, server, tmp_path / "pristine", "openai")
    assert status != 0 and result is None
    assert "Initial test run failed" in text
    # The same client measures the same server without the proxy.
    status, text, result = bench(trees["pristine"], server.url, server, tmp_path / "direct", "openai")
    assert status == 0, text[-3000:]
    assert result["completed"] == REQUESTS


@pytest.mark.parametrize("tree", ["pristine", "patched"])
def test_its_own_requests_carry_the_key(trees: dict[str, Path], edges: Server, tmp_path: Path, tree: str) -> None:
    assert edges.key is not None
    status, text, result = bench(trees[tree], edges.url, edges, tmp_path / tree, "openai", OPENAI_API_KEY=edges.key)
    assert status == 0, text[-3000:]
    assert result["completed"] == REQUESTS
    assert ("WARNING: /tokenize unavailable" in text) == (tree == "pristine")


def test_a_wrong_key_is_called_that(trees: dict[str, Path], edges: Server, tmp_path: Path) -> None:
    status, text, _ = bench(trees["patched"], edges.url, edges, tmp_path / "wrong", "openai", OPENAI_API_KEY="wrong")
    assert status != 0
    assert "WARNING: /tokenize unavailable (HTTP 401; unauthorized:" in text
    assert "wrong" not in text.split("WARNING: /tokenize unavailable")[1].split("skipping")[0]
