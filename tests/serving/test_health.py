"""``patchforge health`` against servers that answer, and that do not."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest

import forked


class Handler(BaseHTTPRequestHandler):
    code = 200
    seen: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        type(self).seen.append((self.path, self.headers.get("Authorization")))
        self.send_response(self.code)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def health(*words: str, **env: str) -> tuple[int, str, str]:
    clean = {k: v for k, v in os.environ.items() if k not in ("HOST", "PORT")}
    done = forked.run(["health", *words], {**clean, **env})
    return done.returncode, done.stdout, done.stderr


def test_well(port: int) -> None:
    Handler.code, Handler.seen = 200, []
    status, out, _ = health(PORT=str(port), VLLM_API_KEY="0123456789abcdef")
    assert (status, out) == (0, f"http://127.0.0.1:{port}/health: well\n")
    assert Handler.seen == [("/health", None)], "the key is not sent about"
    assert health(PORT=str(port), HOST="0.0.0.0")[0] == 0
    assert health("--port", str(port), "--host", "127.0.0.1", PORT="1", HOST="nowhere.invalid")[0] == 0


def test_a_dead_engine(port: int) -> None:
    Handler.code = 503
    status, out, err = health(PORT=str(port))
    assert (status, out) == (1, "")
    assert "HTTP status 503" in err
    status, out, _ = health("--format", "json", PORT=str(port))
    document = json.loads(out)
    assert (status, document["code"], document["problems"][0]["reason"]) == (1, 503, "unwell")


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        status, _, err = health(PORT=str(free.getsockname()[1]))
    assert status == 1 and "nothing listens there" in err


def test_no_answer_in_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        status, _, err = health("--timeout", "0.2", PORT=str(silent.getsockname()[1]))
    assert status == 1 and "no answer within 0.2 s" in err


def test_what_is_not_http() -> None:
    with socket.socket() as odd:
        odd.bind(("127.0.0.1", 0))
        odd.listen()

        def answer() -> None:
            peer, _ = odd.accept()
            peer.recv(100)
            peer.sendall(b"\x00\x01\x02\r\n\r\n")
            peer.close()

        thread = threading.Thread(target=answer)
        thread.start()
        status, _, err = health(PORT=str(odd.getsockname()[1]))
        thread.join()
    assert status == 1 and "BadStatusLine" in err


@pytest.mark.parametrize("port", ["x", "0", "70000"])
def test_a_port_that_is_none(port: str) -> None:
    status, _, err = health(PORT=port)
    assert status == 2 and "PORT: " in err
