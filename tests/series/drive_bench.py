"""The benchmark client against a small server whose streams carry comments."""

from __future__ import annotations

import asyncio
import json
from typing import Any

TEXTS = ["the", " quick", " brown \u2028", " fox"]


def completion(text: str) -> str:
    return "data: " + json.dumps({"choices": [{"text": text, "delta": {"content": text}}]}, ensure_ascii=False)


USAGE = "data: " + json.dumps({"choices": [], "usage": {"completion_tokens": 4, "prompt_tokens": 9}})


def stream(comment: str, end: str) -> bytes:
    """A whole answer: a comment, tokens with a comment between, the usage, the end."""
    parts = [comment] if comment else []
    for number, text in enumerate(TEXTS):
        parts.append(completion(text))
        if number == 1 and comment:
            parts.append(comment)
    return (end * 2).join([*parts, USAGE, "data: [DONE]", ""]).encode()


STREAMS = {
    "no comment": stream("", "\n"),
    "comment": stream(": keep-alive", "\n"),
    "crlf": stream(": ping - 2026", "\r\n"),
    "comment line in a message": stream("", "\n").replace(b"data: ", b": hello\ndata: ", 1),
}
# Where a network may well cut a stream: beside white space that belongs to the message.
CUTS = {"beside a space of the text": b'": "', "after the field's colon": b"data:"}


def messages(chunks: list[bytes]) -> list[str]:
    """What the client's reader makes of ``chunks``, stripped or not as its own loop would."""
    from vllm.benchmarks.lib.endpoint_request_func import StreamedResponseHandler

    handler = StreamedResponseHandler()
    return [message for chunk in chunks for message in handler.add_chunk(chunk)]


def split_everywhere() -> dict[str, Any]:
    """The messages of each stream cut in two at every byte, and byte by byte."""
    seen = {}
    for name, data in STREAMS.items():
        whole = messages([data])
        different = [i for i in range(1, len(data)) if messages([data[:i], data[i:]]) != whole]
        single = messages([data[i : i + 1] for i in range(len(data))]) == whole
        seen[name] = {"whole": whole, "different": different, "byte by byte": single}
    return seen


async def serve_and_ask(chunks: list[bytes], function: str) -> dict[str, Any]:
    """One request of the benchmark client against a server that writes ``chunks`` with pauses."""
    import aiohttp
    from aiohttp import web
    from vllm.benchmarks.lib import endpoint_request_func as client

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0.02)
        return response

    app = web.Application()
    path = (
        "/v1/chat/completions"
        if "chat" in function
        else "/v1/audio/transcriptions"
        if "audio" in function
        else "/v1/completions"
    )
    app.router.add_post(path, answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    sound = None
    if "audio" in function:
        import numpy as np

        sound = {"audio": (np.zeros(160, dtype=np.float32), 16000)}
    request = client.RequestFuncInput(
        prompt="the fox",
        api_url=f"http://127.0.0.1:{port}{path}",
        prompt_len=2,
        output_len=4,
        model="m",
        multi_modal_content=sound,
    )
    try:
        async with aiohttp.ClientSession() as session:
            done = await getattr(client, function)(request, session)
    finally:
        await runner.cleanup()
    return {
        "success": done.success,
        "text": done.generated_text,
        "tokens": done.output_tokens,
        "ttft": done.ttft,
        "gaps": len(done.itl),
        "error": done.error[-300:],
    }


def cut(after: bytes) -> list[bytes]:
    """The stream without a comment, its chunks ending after each ``after``."""
    parts = STREAMS["no comment"].split(after)
    return [*(part + after for part in parts[:-1]), parts[-1]]


def pieces(data: bytes) -> list[bytes]:
    """As a server writes: message by message, the comment first and alone."""
    mark = b"\r\n\r\n" if b"\r\n\r\n" in data else b"\n\n"
    return [part + mark for part in data.split(mark) if part]


def collect() -> dict[str, Any]:
    """Everything about the benchmark client."""
    functions = ["async_request_openai_completions", "async_request_openai_chat_completions"]
    try:
        import soundfile  # noqa: F401

        functions.append("async_request_openai_audio")
    except ImportError:
        pass
    return {
        "reader": split_everywhere(),
        "bench": {
            f"{function} {name}": asyncio.run(serve_and_ask(pieces(data), function))
            for function in functions
            for name, data in STREAMS.items()
        },
        "cuts": {
            f"{function} {name}": asyncio.run(serve_and_ask(cut(after), function))
            for function in functions
            for name, after in CUTS.items()
        },
    }
