"""The values planning takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from patchforge.diff import Patch


@dataclass(slots=True)
class FileState:
    """A file's content as the pieces between newlines (``b"a\\n"`` is ``[b"a", b""]``) and its executable bit.

    Treated as immutable: planning replaces a state, it never changes one.
    """

    lines: list[bytes]
    executable: bool

    @classmethod
    def of(cls, data: bytes, executable: bool) -> FileState:
        """The state of a file with content ``data``."""
        return cls(data.split(b"\n"), executable)

    @property
    def data(self) -> bytes:
        """The content."""
        return b"\n".join(self.lines)


Piece = tuple[int, list[bytes], list[bytes]]
"""``(index, pieces taken out, pieces put in)`` against the lines of the source state."""

Reader = Callable[[str], FileState | None]
"""Gives a file of the tree by its relative path; ``None`` when it does not exist; raises TreeError when unsafe."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a patch does not apply.

    ``reason`` is one of the stable words of docs/json.md; ``file`` the file of the tree, ``hunk`` the hunk of that file
    from 1; ``patch_file`` and ``line`` the place in the patch file.
    """

    patch: str
    reason: str
    message: str
    patch_file: str | None = None
    file: str | None = None
    hunk: int | None = None
    hunks: int | None = None
    line: int | None = None
    hint: str | None = None
    detail: tuple[str, ...] = ()
    status: int = 1


@dataclass(frozen=True, slots=True)
class Offset:
    """A hunk that landed ``offset`` lines from where it was recorded, with its whole context exact."""

    file: str
    hunk: int
    offset: int


@dataclass(frozen=True, slots=True)
class Step:
    """What one patch did to one file: state before and after, and where its hunks landed (``edits``).

    ``source`` is the path the content came from; ``moved`` says that it is gone from there."""

    path: str
    source: str | None
    before: FileState | None
    after: FileState | None
    edits: tuple[Piece, ...] = ()
    moved: bool = False


@dataclass(frozen=True, slots=True)
class PatchResult:
    """One patch of the plan.  ``result``: ``applied``, ``offset``, ``already``, ``failed`` or ``not-reached``."""

    name: str
    result: str
    files: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0
    offsets: tuple[Offset, ...] = ()
    failure: Failure | None = None
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The outcome of planning: per patch results, and each touched file's first and last state."""

    results: tuple[PatchResult, ...]
    before: Mapping[str, FileState | None]
    after: Mapping[str, FileState | None]

    @property
    def failure(self) -> Failure | None:
        """The first failure, if any."""
        return next((r.failure for r in self.results if r.failure is not None), None)

    @property
    def changed(self) -> tuple[str, ...]:
        """The paths whose content, mode or existence the whole series changes, sorted."""
        return tuple(sorted(p for p, state in self.after.items() if not same(self.before[p], state)))


def same(one: FileState | None, two: FileState | None) -> bool:
    """True when both states are the same file."""
    if one is None or two is None:
        return one is two
    return one is two or (one.executable == two.executable and one.lines == two.lines)


def _unknown(section: int, hunk: int) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Entry:
    """One patch of a series, ready to plan: parsed, with what the lock knows of it.

    ``scope`` gives the qualified name a hunk lay in on the pin, by section and hunk, both from 0; ``None`` where nobody knows.
    It is asked for hunks that moved alone.
    """

    patch: Patch
    scope: Callable[[int, int], str | None] = _unknown
