"""A package index on this machine: wheels over HTTP, with byte ranges or without, and a record of what was asked."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Index:
    """The wheels of ``folder``; ``ranges`` says whether byte ranges are answered, ``spoil`` what is done to them."""

    folder: Path
    ranges: bool = True
    spoil: str = ""
    url: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    sent: int = 0

    @property
    def simple(self) -> str:
        """What pip is pointed at."""
        return f"{self.url}/simple/"

    def answer(self, path: str, wanted: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body for ``GET path`` with the ``Range`` header ``wanted``."""
        if path.startswith("/simple/"):
            name = path.removeprefix("/simple/").strip("/")
            rows = [
                f'<a href="/files/{w.name}#sha256={hashlib.sha256(w.read_bytes()).hexdigest()}">{w.name}</a>'
                for w in sorted(self.folder.glob("*.whl"))
                if w.name.startswith(f"{name}-")
            ]
            return (200 if rows else 404), {"Content-Type": "text/html"}, "<br>".join(rows).encode()
        file = self.folder / path.rpartition("/")[2]
        if not file.is_file():
            return 404, {}, b""
        data = file.read_bytes()
        self.asked.append((file.name, wanted))
        if not wanted or not self.ranges:
            return 200, {}, data
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(len(data) - int(last), 0)
        end = min(int(last), len(data) - 1) if first else len(data) - 1
        body = data[start : end + 1]
        if self.spoil == "short":
            body = body[:-1]
        if self.spoil == "grown" and first:
            return 206, {"Content-Range": f"bytes {start}-{end}/{len(data) + 1}"}, body
        if self.spoil == "elsewhere" and first:
            return 206, {"Content-Range": f"bytes {start + 1}-{end + 1}/{len(data)}"}, body
        return 206, {"Content-Range": f"bytes {start}-{end}/{len(data)}"}, body


@contextmanager
def serving(index: Index) -> Iterator[Index]:
    """Serve ``index`` on a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = index.answer(self.path.partition("?")[0], self.headers.get("Range", ""))
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body)
            index.sent += len(body)

        def log_message(self, *words: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that was killed while it was answered is part of some tests."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    index.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
