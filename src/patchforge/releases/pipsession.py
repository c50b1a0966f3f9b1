"""Byte ranges through pip's own session.  Run as a program: ``python -m patchforge.releases.pipsession``.

A process of its own, since pip's modules are not made to be imported: what breaks there ends this process, and the caller
takes the whole wheel instead.  Standard input: a line with the URL, as JSON; then lines ``[first, last]``, byte numbers, or
``[-n]``, the last n bytes.  Standard output, for each: a line ``{"status": …, "first": …, "size": …, "length": …}``, and, for
status 206, ``length`` bytes.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any, BinaryIO

_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)\Z")


def serve(session: Any, url: str, requests: BinaryIO, out: BinaryIO) -> None:
    """Answer every line of ``requests`` with ``session``, a ``requests`` session."""
    for line in requests:
        wanted = json.loads(line)
        value = f"bytes={wanted[0]}" if len(wanted) == 1 else f"bytes={wanted[0]}-{wanted[1]}"
        # "identity": a compressed answer would have other byte numbers.
        with session.get(url, headers={"Range": value, "Accept-Encoding": "identity"}, stream=True) as answer:
            match = _RANGE.match(answer.headers.get("Content-Range", ""))
            if answer.status_code != 206 or match is None:
                out.write(json.dumps({"status": answer.status_code}).encode() + b"\n")
            else:
                first, last, size = map(int, match.groups())
                body = answer.raw.read(last - first + 1)
                reply = {"status": 206, "first": first, "size": size, "length": len(body)}
                out.write(json.dumps(reply).encode() + b"\n" + body)
        out.flush()


def main() -> None:
    """Make the session pip would use, with its configuration, certificates, proxies and credentials, and serve."""
    from pip._internal.commands import create_command

    url = json.loads(sys.stdin.buffer.readline())
    command: Any = create_command("download")
    with command.main_context():
        options, _ = command.parse_args(["--quiet", "--no-input", "--disable-pip-version-check", "unused"])
        serve(command.get_default_session(options), url, sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
