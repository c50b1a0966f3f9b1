"""A wheel read by byte ranges: its central directory and the few files that are asked for, kept in a sparse file.

The wheel's own hash cannot be checked this way; the CRC-32 of every file read is.  That is enough to compare sources, and not
enough to install from: what is applied or built comes from whole wheels (:mod:`patchforge.releases.cache`).
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zipfile
from bisect import bisect_right
from collections.abc import Iterable
from io import FileIO
from pathlib import Path

from patchforge.releases.contents import Cost, Opened

_END = b"PK\x05\x06"
_TAIL = 64 * 1024 + 22
SESSION = ("-m", "patchforge.releases.pipsession")
"""What Python runs to answer ranges."""
_GAP = 32 * 1024
"""Two files this close are fetched together: a request costs more than that many bytes."""


class NoRangesError(Exception):
    """The index, or pip, cannot give byte ranges of this wheel."""


class Ranged(Opened):
    """The files below ``root`` of the wheel at ``url``.

    ``store`` is the sparse file kept between runs, beside it ``<store>.json`` with the spans it has.  Raises
    :class:`NoRangesError` where ranges cannot be had.
    """

    def __init__(self, url: str, root: str, store: Path) -> None:
        self._url, self._store, self._root = url, store, f"{root}/"
        self._child: subprocess.Popen[bytes] | None = None
        self._file: FileIO | None = None
        self._fetched = 0
        self._notes = store.with_name(store.name + ".json")
        self._size, self._spans = self._known()
        try:
            if not self._size:
                self._directory()
            # Unbuffered: a buffer would keep what a hole had before it was filled.
            self._file = store.open("rb", buffering=0)
            self._archive = zipfile.ZipFile(self._file)
        except NoRangesError:
            self.close()
            raise
        except (OSError, ValueError, zipfile.BadZipFile, struct.error) as error:
            self.close()
            self._notes.unlink(missing_ok=True)
            raise NoRangesError(str(error)) from error
        infos = self._archive.infolist()
        self._entries = {i.filename.removeprefix(self._root): i for i in infos if i.filename.startswith(self._root)}
        self._starts = sorted([*(i.header_offset for i in infos), self._archive.start_dir])

    def _known(self) -> tuple[int, list[tuple[int, int]]]:
        try:
            notes = json.loads(self._notes.read_bytes())
            if self._store.stat().st_size == notes["size"]:
                return notes["size"], _joined([(int(a), int(b)) for a, b in notes["spans"]])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return 0, []

    def _directory(self) -> None:
        """Fetch the end of the wheel and its central directory into a new sparse file."""
        first, size, tail = self._get(-_TAIL)
        at = tail.rfind(_END)
        if at < 0 or len(tail) - at < 22:
            raise ValueError("no central directory at the end of the wheel")
        length, offset = struct.unpack("<II", tail[at + 12 : at + 20])
        if offset == 0xFFFFFFFF or offset + length > size:
            raise ValueError("a ZIP64 wheel")
        self._store.parent.mkdir(parents=True, exist_ok=True)
        with self._store.open("wb") as file:
            file.truncate(size)
        self._size = size
        self._keep(first, tail)
        if offset < first:
            self._fetch(offset, first)
        self._save()

    def _get(self, first: int, last: int | None = None) -> tuple[int, int, bytes]:
        """One range: the number of its first byte, the size of the wheel, and the bytes.  Raises :class:`NoRangesError`."""
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, *SESSION],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            self._send(self._url)
        self._send([first] if last is None else [first, last])
        assert self._child.stdout is not None
        try:
            reply = json.loads(self._child.stdout.readline() or b"{}")
        except ValueError:
            reply = {}
        if reply.get("status") != 206 or "length" not in reply:
            raise NoRangesError(f"the answer to a range was {reply.get('status', 'nothing')}")
        body = self._child.stdout.read(reply["length"])
        wanted = None if last is None else last - first + 1
        if (wanted is not None and (len(body), reply["first"]) != (wanted, first)) or len(body) != reply["length"]:
            raise NoRangesError("the answer to a range was another one")
        self._fetched += len(body)
        return reply["first"], reply["size"], body

    def _send(self, value: object) -> None:
        assert self._child is not None and self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps(value).encode() + b"\n")
            self._child.stdin.flush()
        except BrokenPipeError as error:
            raise NoRangesError("pip's session ended") from error

    def _fetch(self, start: int, end: int) -> None:
        _, size, body = self._get(start, end - 1)
        if size != self._size:
            raise NoRangesError("the wheel changed while it was read")
        self._keep(start, body)

    def _keep(self, start: int, body: bytes) -> None:
        with self._store.open("r+b") as file:
            file.seek(start)
            file.write(body)
        self._spans = _joined([*self._spans, (start, start + len(body))])

    def _save(self) -> None:
        """Note what the sparse file has; the bytes are there before the note is."""
        new = self._notes.with_name(f"{self._notes.name}.{os.getpid()}")
        new.write_text(json.dumps({"size": self._size, "spans": self._spans}))
        os.replace(new, self._notes)

    def _span(self, info: zipfile.ZipInfo) -> tuple[int, int]:
        """From a member's local header to the next member."""
        return info.header_offset, self._starts[bisect_right(self._starts, info.header_offset)]

    def _wanted(self, paths: Iterable[str]) -> list[tuple[int, int]]:
        return sorted(self._span(self._entries[p]) for p in set(paths) if p in self._entries)

    def _missing(self, paths: Iterable[str]) -> list[tuple[int, int]]:
        return [s for s in self._wanted(paths) if not self._has(s)]

    def _has(self, span: tuple[int, int]) -> bool:
        at = bisect_right(self._spans, (span[0], self._size)) - 1  # they are sorted and do not touch
        return at >= 0 and span[1] <= self._spans[at][1]

    def bytes_of(self, paths: Iterable[str]) -> int:
        """How many bytes of the wheel ``paths`` are, with what is fetched between neighbours; whether they are here or not."""
        return sum(end - start for start, end in _joined(self._wanted(paths), _GAP))

    def prefetch(self, paths: Iterable[str]) -> None:
        """Fetch what reading ``paths`` will need, neighbours together.  Raises :class:`NoRangesError`."""
        for start, end in _joined(self._missing(paths), _GAP):
            self._fetch(start, end)
        self._save()

    def read(self, path: str) -> tuple[bytes, bool] | None:
        """Content and executable bit; the CRC-32 is checked, and a file damaged on disk fetched again."""
        info = self._entries.get(path)
        if info is None:
            return None
        executable = bool((info.external_attr >> 16) & 0o100)
        if self._missing([path]):
            self.prefetch([path])
        try:
            return self._archive.read(info), executable
        except (zipfile.BadZipFile, OSError, ValueError):
            start, end = self._span(info)
            self._fetch(start, end)
            return self._archive.read(info), executable

    def paths(self) -> list[str]:
        """All paths, sorted."""
        return sorted(p for p in self._entries if not p.endswith("/"))

    def checksum(self, path: str) -> tuple[int, int] | None:
        """As the central directory says: nothing is fetched."""
        info = self._entries.get(path)
        return None if info is None else (info.CRC, info.file_size)

    def cost(self) -> Cost | None:
        """Bytes fetched in this run, of the wheel's."""
        return Cost(self._fetched, self._size)

    def close(self) -> None:
        """End pip's process."""
        if self._child is not None:
            for stream in (self._child.stdin, self._child.stdout):
                if stream is not None:
                    stream.close()
            self._child.kill()
            self._child.wait()
            self._child = None
        if self._file is not None:
            self._file.close()


def _joined(spans: list[tuple[int, int]], gap: int = 0) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1] + gap:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out
