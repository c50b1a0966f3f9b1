"""A forge on this machine: pull requests over HTTP as GitHub's API answers, and a record of what was asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Reply:
    """What one path is answered with; ``slow``: seconds before the answer, ``drip``: seconds between its bytes."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    slow: float = 0
    drip: float = 0


def pull(number: int, state: str = "open", merged: str | None = None, **more: Any) -> Reply:
    """A pull request as the API describes it, with what else it says and nobody here reads."""
    document: dict[str, Any] = {
        "url": f"https://api.github.com/repos/org/demo/pulls/{number}",
        "id": 226795927,
        "number": number,
        "state": state,
        "title": "Count the starts",
        "user": {"login": "somebody"},
        "closed_at": merged if merged or state == "open" else "2026-11-03T10:00:00Z",
        "merged_at": merged,
        "merge_commit_sha": COMMIT,
        "base": {"label": "org:main", "ref": "main", "repo": {"full_name": "org/demo"}},
        "merged": merged is not None,
        **more,
    }
    return Reply(body=json.dumps(document).encode(), headers={"ETag": f'W/"{number}-{state}"'})


@dataclass
class Forge:
    """``pulls`` by ``owner/name/number``; any other path has its reply in ``paths``.  ``asked``: path and headers of each request."""

    pulls: dict[str, Reply] = field(default_factory=dict)
    paths: dict[str, Reply] = field(default_factory=dict)
    url: str = ""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    def find(self, path: str) -> Reply:
        words = path.strip("/").split("/")
        if len(words) == 5 and words[0] == "repos" and words[3] == "pulls":
            return self.pulls.get(f"{words[1]}/{words[2]}/{words[4]}", Reply(404, b'{"message": "Not Found"}'))
        return self.paths.get(path, Reply(404))

    @property
    def tokens(self) -> list[str]:
        return [headers.get("authorization", "") for _, headers in self.asked]


@contextmanager
def serving(forge: Forge) -> Iterator[Forge]:
    """Serve ``forge`` on a port of this machine."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with lock:
                forge.asked.append((self.path, {key.lower(): value for key, value in self.headers.items()}))
                forge.at_once += 1
                forge.most_at_once = max(forge.most_at_once, forge.at_once)
            reply = forge.find(self.path)
            time.sleep(reply.slow)
            with lock:
                # Before the answer: who has it may ask again before this thread goes on.
                forge.at_once -= 1
            self.answer(reply)

        def answer(self, reply: Reply) -> None:
            etag = reply.headers.get("ETag")
            status = 304 if etag and self.headers.get("If-None-Match") == etag else reply.status
            self.send_response(status)
            body = b"" if status == 304 else reply.body
            for key, value in {**reply.headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            if not reply.drip:
                self.wfile.write(body)
                return
            for byte in body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(reply.drip)

        def log_message(self, *words: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that went away while it was answered is part of some tests."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    forge.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield forge
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
