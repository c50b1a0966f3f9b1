"""A session as :func:`patchforge.releases.pipsession.serve` needs it, from the standard library: a program of its own."""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from patchforge.releases.pipsession import serve


@dataclass
class Answer:
    """What ``serve`` reads of an answer."""

    status_code: int
    headers: http.client.HTTPMessage
    raw: http.client.HTTPResponse


class Session:
    """One ``GET`` a connection."""

    @contextmanager
    def get(self, url: str, headers: dict[str, str], stream: bool) -> Iterator[Answer]:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=10)
        try:
            connection.request("GET", parts.path, headers=headers)
            answer = connection.getresponse()
            yield Answer(answer.status, answer.headers, answer)
        finally:
            connection.close()


if __name__ == "__main__":
    serve(Session(), json.loads(sys.stdin.buffer.readline()), sys.stdin.buffer, sys.stdout.buffer)
