"""Placing the hunks of one file: whole context, one place, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from patchforge.diff import FileDiff, Hunk
from patchforge.engine.model import Piece
from patchforge.engine.scope import Scopes, proves_same
from patchforge.engine.search import MAX_LISTED, Search, TooMuch, fits


@dataclass(frozen=True, slots=True)
class Misplaced(Exception):
    """A hunk that cannot be placed.  ``candidates`` are 1-based lines."""

    reason: str
    message: str
    hunk: int
    candidates: tuple[int, ...] = ()
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """``exact`` forbids offsets; ``prove_scope`` demands the same enclosing definition in Python files."""

    exact: bool = False
    prove_scope: bool = True


def expected(hunk: Hunk) -> int:
    """The index the hunk was recorded for."""
    return hunk.old_start - 1 if hunk.old_len else hunk.old_start


def place_hunks(
    lines: list[bytes], change: FileDiff, scope: Callable[[int], str | None], options: Options
) -> list[int]:
    """Return the index of every hunk of ``change`` in ``lines``.

    ``scope`` gives the qualified name a hunk lay in on the pin, by its index, where that is known.  Raises
    :class:`Misplaced` for the first hunk that has no single proven place.
    """
    placed: list[int] = []
    search: Search | None = None
    python = change.path.endswith((".py", ".pyi"))
    tree_scopes: Scopes | None = None
    floor = 0
    for number, hunk in enumerate(change.hunks):
        want = expected(hunk)
        bare = not hunk.old and lines != [b""]  # an insertion that no line of the file proves
        if not bare and fits(lines, hunk, want) and want >= floor:
            shift = placed[-1] - expected(change.hunks[number - 1]) if placed else 0
            if shift and hunk.old and not hunk.zero_context and fits(lines, hunk, want + shift):
                raise Misplaced(
                    "ambiguous",
                    f"it fits at its recorded line {want + 1} and, moved like the hunk before it, at line {want + shift + 1}",
                    number,
                    (want + 1, want + shift + 1),
                )
            placed.append(want)
            floor = want + len(hunk.old)
            continue
        if not hunk.old or hunk.zero_context:
            line = max(hunk.old_start, 1)
            raise Misplaced(
                "context",
                "it has no context and removes nothing, so nothing in the file proves its place"
                if not hunk.old
                else f"it has no context, so it may only go in at its recorded line {line}, which does not match",
                number,
                hint="cut it again with context lines",
            )
        search = search or Search(lines)
        try:
            found = search.candidates(hunk)
        except TooMuch:
            raise _too_much(number) from None
        if not found:
            raise Misplaced("context", "its context is nowhere in the file", number)
        if len(found) > 1:
            listed = tuple(index + 1 for index in found)
            raise Misplaced(
                "ambiguous",
                f"its context is not at line {want + 1} and stands at {len(found)}{'+' if len(found) == MAX_LISTED else ''}"
                f" other places: lines {', '.join(map(str, listed))}",
                number,
                listed,
                "cut it again with more context, or against this tree",
            )
        at = found[0]
        if at < floor:
            raise Misplaced(
                "context", f"its context stands only at line {at + 1}, before the hunk above it", number, (at + 1,)
            )
        if options.exact:
            raise Misplaced(
                "offset",
                f"it fits at line {at + 1}, {at - want:+d} lines from where it was recorded, and offsets are forbidden",
                number,
                (at + 1,),
                "drop --exact, or refresh the patch",
            )
        if python and options.prove_scope:
            tree_scopes = tree_scopes or Scopes(lines)
            _prove(lines, tree_scopes, hunk, number, at, scope(number))
        try:
            _not_already_there(search, hunk, number, at, at - want)
        except TooMuch:
            raise _too_much(number) from None
        placed.append(at)
        floor = at + len(hunk.old)
    return placed


def scope_line(hunk: Hunk, at: int) -> int:
    """The line whose enclosing definition is the hunk's: its first removed line, or the line above an insertion."""
    first = hunk.body[hunk.leading][0]
    return at + (hunk.leading if first == b"-" else max(hunk.leading - 1, 0))


def _prove(lines: list[bytes], scopes: Scopes, hunk: Hunk, number: int, at: int, locked: str | None) -> None:
    line = scope_line(hunk, at)
    if locked is not None:
        here = scopes.at(line)
        if here == locked:
            return
        why = f"it was cut in '{locked or 'the module level'}', and this place is in '{here or 'the module level'}'"
    else:
        why = proves_same(lines, scopes, at, line, scope_line(hunk, expected(hunk)), hunk.section)
        if not why:
            return
    raise Misplaced(
        "moved",
        f"its context stands only at line {at + 1}, {at - expected(hunk):+d} lines away: {why}",
        number,
        (at + 1,),
        "the intended place is gone or was moved: look at both, then cut the hunk again",
    )


def _too_much(number: int) -> Misplaced:
    return Misplaced(
        "limit",
        "too many hunks are not at their recorded lines: looking for all of them would take too long",
        number,
        hint="cut the patch again, against this tree",
    )


def _not_already_there(search: Search, hunk: Hunk, number: int, at: int, offset: int) -> None:
    """Refuse an offset when everything the hunk adds already stands beside the place."""
    blocks = [block for block in hunk.added_blocks() if any(len(text.strip()) > 2 for text in block)]
    if not blocks:
        return
    reach = abs(offset) + len(hunk.new) + 3
    if all(search.stands(block, at - reach, at + len(hunk.old) + reach) for block in blocks):
        raise Misplaced(
            "already-there",
            f"it fits at line {at + 1} ({offset:+d}), but what it adds stands beside that place: it may already be there",
            number,
            (at + 1,),
            "if the tree has the change, drop the patch; else cut it again with more context",
        )


def pieces(hunk: Hunk, at: int) -> Piece:
    """What ``hunk`` placed at ``at`` takes out and puts in, context aside; a final newline is an empty last piece."""
    old, new = hunk.old, hunk.new
    if hunk.new_eof != hunk.old_eof:
        return at, old if hunk.old_eof else [*old, b""], new if hunk.new_eof else [*new, b""]
    lead, trail = hunk.leading, hunk.trailing
    return at + lead, old[lead : len(old) - trail], new[lead : len(new) - trail]


def splice(lines: list[bytes], edits: Iterable[Piece]) -> list[bytes]:
    """The lines after every edit; ``edits`` are ordered, disjoint and against ``lines``."""
    out: list[bytes] = []
    at = 0
    for index, old, new in edits:
        out += lines[at:index]
        out += new
        at = index + len(old)
    out += lines[at:]
    return out if out else [b""]
