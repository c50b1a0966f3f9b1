"""What ``vllm bench serve`` asks for itself, of a server that answers each way a server can."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

KEY = {"OPENAI_API_KEY": "sek"}
METRICS = "vllm:spec_decode_num_drafts_total 3\nvllm:diffusion_num_denoising_steps_total 5\n"
MINE = {"X-Tenant": "blue"}
OWN_KEY = {"authorization": "Bearer mine"}


@dataclass
class Prompt:
    """A request of the benchmark, as far as the alignment looks at it."""

    prompt: str
    prompt_len: int


async def serving(handler: Callable[[Any], Awaitable[Any]], ask: Callable[[str], Awaitable[Any]]) -> Any:
    """What ``ask`` returns for the address of a server that answers everything with ``handler``."""
    from aiohttp import web

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        return await ask(f"http://127.0.0.1:{runner.addresses[0][1]}")
    finally:
        await runner.cleanup()


def printed(run: Callable[[], Any]) -> tuple[Any, str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        result = run()
    return result, out.getvalue()


@contextlib.contextmanager
def environment(**settings: str) -> Any:
    os.environ.pop("OPENAI_API_KEY", None)
    os.environ.update(settings)
    try:
        yield
    finally:
        for name in settings:
            os.environ.pop(name, None)


def align(handler: Callable[[Any], Awaitable[Any]], headers: dict[str, str] | None = None) -> tuple[list[str], str]:
    """The prompts after the alignment, and what was printed, its address cut out."""
    from vllm.benchmarks import serve

    more = [serve._probe_headers(headers)] if hasattr(serve, "_probe_headers") else []

    async def ask(url: str) -> Any:
        prompts = [Prompt("a b c", 3), Prompt("d e f g", 2), Prompt("h i", 2)]
        done = await serve._align_prompts_to_server_tokenizer(url, "m", prompts, None, *more)
        return [prompt.prompt for prompt in done]

    return printed(lambda: asyncio.run(serving(handler, ask)))


def answer(status: int, text: str) -> Callable[[Any], Awaitable[Any]]:
    async def handler(_: Any) -> Any:
        from aiohttp import web

        return web.Response(status=status, text=text)

    return handler


async def dropped(request: Any) -> Any:
    request.transport.abort()


async def late(_: Any) -> Any:
    raise TimeoutError


def tokenizer(extra: int, fail_after: int | None = None) -> Callable[[Any], Awaitable[Any]]:
    """A server whose tokenizer counts words and ``extra``, and refuses all but the first ``fail_after`` requests."""
    seen = 0

    async def handler(request: Any) -> Any:
        from aiohttp import web

        nonlocal seen
        seen += 1
        if fail_after is not None and seen > fail_after:
            return web.json_response({"error": {"message": "busy"}}, status=503)
        body = await request.json()
        if request.path == "/tokenize":
            return web.json_response({"tokens": list(range(len(body["prompt"].split()) + extra))})
        return web.json_response({"prompt": " ".join(str(token) for token in body["tokens"])})

    return handler


def timed_out() -> tuple[list[str], str]:
    """The alignment against a client session whose requests take too long."""
    import aiohttp

    real = aiohttp.ClientSession.post

    def post(self: Any, *args: Any, **kwargs: Any) -> Any:
        return real(self, *args, timeout=aiohttp.ClientTimeout(total=0.05), **kwargs)

    async def slow(_: Any) -> Any:
        await asyncio.sleep(0.5)

    aiohttp.ClientSession.post = post  # type: ignore[method-assign]
    try:
        return align(slow)
    finally:
        aiohttp.ClientSession.post = real  # type: ignore[method-assign]


def unreachable() -> tuple[list[str], str]:
    """The alignment against a port nobody listens on."""
    import socket

    from vllm.benchmarks import serve

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        return printed(
            lambda: [
                p.prompt for p in asyncio.run(serve._align_prompts_to_server_tokenizer(url, "m", [Prompt("a b c", 3)]))
            ]
        )


def failures() -> dict[str, Any]:
    cases = {
        "no route": answer(404, '{"detail":"Not Found"}'),
        "no model": answer(404, '{"error":{"message":"The model `m` does not exist.","code":404}}'),
        "no key": answer(401, '{"error":"Unauthorized"}'),
        "forbidden": answer(403, "tenant\x1b[31m is not\n allowed " + "x" * 400),
        "other status": answer(502, ""),
        "odd error": answer(500, '["no", "object"]'),
        "no JSON": answer(200, "<html>"),
        "not what was asked for": answer(200, "{}"),
        "dropped": dropped,
    }
    seen = {name: align(handler) for name, handler in cases.items()}
    return {**seen, "timed out": timed_out(), "unreachable": unreachable()}


def headers_sent() -> dict[str, Any]:
    """The headers of each request the benchmark makes for itself, with and without a key and the user's headers."""
    from vllm.benchmarks import serve

    cases = {
        "nothing": ({}, None),
        "key": (KEY, None),
        "headers": ({}, MINE),
        "both": (KEY, MINE),
        "own key": (KEY, {**MINE, **OWN_KEY}),
    }
    seen: dict[str, Any] = {}
    for name, (settings, headers) in cases.items():
        sent: dict[str, dict[str, str]] = {}

        async def handler(request: Any, sent: dict[str, dict[str, str]] = sent) -> Any:
            from aiohttp import web

            wanted = {k.lower(): v for k, v in request.headers.items() if k.lower() in ("authorization", "x-tenant")}
            sent[request.path] = wanted
            if request.path == "/metrics":
                return web.Response(text=METRICS)
            return await tokenizer(1)(request)

        with environment(**settings):
            aligned = align(handler, headers)[0]
            metrics = asyncio.run(serving(handler, lambda url, h=headers: scrape(serve, url, h)))
        seen[name] = {"sent": sent, "aligned": aligned, "metrics": metrics}
    return seen


async def scrape(serve: Any, url: str, headers: dict[str, str] | None) -> list[str]:
    import aiohttp

    more = [serve._probe_headers(headers)] if hasattr(serve, "_probe_headers") else []
    async with aiohttp.ClientSession() as session:
        return [
            str(await serve.fetch_spec_decode_metrics(url, session, *more)),
            str(await serve.fetch_diffusion_metrics(url, session, *more)),
        ]


def collect() -> dict[str, Any]:
    """Everything about the benchmark's own requests."""
    with environment():
        return {
            "probe failures": failures(),
            "probe headers": headers_sent(),
            "probe aligned": align(tokenizer(1)),
            "probe agreed": align(tokenizer(0)),
            # The first prompt is asked about alone; then four requests of three prompts, of which one gets through.
            "probe half": align(tokenizer(1, fail_after=2)),
        }
