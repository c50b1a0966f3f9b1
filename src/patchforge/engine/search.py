"""Finding every place in a file at which a hunk's old side stands, in bounded time for any input."""

from __future__ import annotations

from patchforge.diff import Hunk

MAX_LISTED = 10
_FEW = 64
_BUDGET = 256 * 1024 * 1024


class TooMuch(Exception):
    """The hunks of one file would take too long to find; only an attack, or a generated diff, comes here."""


class Search:
    """The lines of one file, with what makes looking for many hunks in them cheap.

    The first hunk is looked for in the joined bytes.  From the second on, an index of the lines leads to the places of the
    hunk's rarest line; a hunk of nothing but frequent lines is looked for in the bytes again, and the bytes read that way
    are counted.
    """

    def __init__(self, lines: list[bytes]) -> None:
        self.lines = lines
        self._joined: bytes | None = None
        self._index: dict[bytes, list[int]] | None = None
        self._calls = 0
        self._budget = _BUDGET

    def candidates(self, hunk: Hunk) -> list[int]:
        """Every index at which ``hunk`` fits, at most ``MAX_LISTED``.  Raises :class:`TooMuch`."""
        if not hunk.old:
            return []
        last = len(self.lines)
        if hunk.old_start == 1:
            return [0] if fits(self.lines, hunk, 0) else []
        if hunk.old_eof or hunk.new_eof or hunk.trailing < hunk.leading:
            ends = {last - len(hunk.old), last - 1 - len(hunk.old)}
            return [index for index in sorted(ends) if fits(self.lines, hunk, index)]
        self._calls += 1
        if self._calls > 1:
            places = self._places(hunk.old)
            if places is not None:
                return [index for index in places if fits(self.lines, hunk, index)][:MAX_LISTED]
        return self._scan(hunk)

    def stands(self, block: list[bytes], low: int, high: int) -> bool:
        """True when ``block`` stands somewhere between the lines ``low`` and ``high``.  Raises :class:`TooMuch`."""
        places = self._places(block)
        if places is not None:
            size = len(block)
            return any(low <= at and at + size <= high and self.lines[at : at + size] == block for at in places)
        window = self.lines[max(low, 0) : high]
        self._budget -= sum(map(len, window)) + len(window)
        if self._budget < 0:
            raise TooMuch
        return b"\n" + b"\n".join(block) + b"\n" in b"\n" + b"\n".join(window) + b"\n"

    def _places(self, block: list[bytes]) -> list[int] | None:
        """Where the rarest line of ``block`` would put it, or ``None`` when all its lines are frequent."""
        if self._index is None:
            self._index = {}
            for number, line in enumerate(self.lines):
                self._index.setdefault(line, []).append(number)
        best: list[int] | None = None
        shift = 0
        for offset, line in enumerate(block[:200]):
            found = self._index.get(line)
            if found is None:
                return []
            if best is None or len(found) < len(best):
                best, shift = found, offset
                if len(best) == 1:
                    break
        assert best is not None
        return [number - shift for number in best] if len(best) <= _FEW else None

    def _scan(self, hunk: Hunk) -> list[int]:
        if self._joined is None:
            self._joined = b"\n" + b"\n".join(self.lines)
        joined = self._joined
        needle = b"\n" + b"\n".join(hunk.old) + b"\n"
        found: list[int] = []
        position, counted, line = joined.find(needle), 0, 0
        while position >= 0 and len(found) < MAX_LISTED:
            line += joined.count(b"\n", counted, position)
            counted = position
            found.append(line)
            position = joined.find(needle, position + 1)
        self._budget -= len(joined) if position < 0 else position
        if self._budget < 0:
            raise TooMuch
        return found


def fits(lines: list[bytes], hunk: Hunk, index: int) -> bool:
    """True when the whole old side of ``hunk`` stands at ``index``, newline at the end included."""
    length = len(hunk.old)
    end = index + length
    if index < 0 or lines[index:end] != hunk.old:
        return False
    last = len(lines)
    if hunk.old_eof:
        if end != last:
            return False
    elif end >= last and length:
        return False
    if hunk.new_eof and not hunk.old_eof and not (end == last - 1 and lines[-1] == b""):
        return False
    if not hunk.old and (index > last - 1 or (hunk.old_start == 0 and lines != [b""])):
        return False
    return _anchored(lines, hunk, index)


def _anchored(lines: list[bytes], hunk: Hunk, index: int) -> bool:
    """The start and end of the file are context too: a hunk cut there must land there."""
    if hunk.old_start == 1 and hunk.old_len and index != 0:
        return False
    if hunk.trailing < hunk.leading:
        end = index + len(hunk.old)
        return end == len(lines) or (end == len(lines) - 1 and lines[-1] == b"")
    return True
