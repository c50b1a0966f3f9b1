"""The patches of a series, parsed, their headers checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from patchforge.diff import Patch, parse_patch
from patchforge.diff.parser import first_section, split_lines
from patchforge.errors import InputError, ManyProblems, Problem
from patchforge.headers import Header, parse_header
from patchforge.headers.schema import HeaderChecker
from patchforge.series.project import PatchFile, Series


@dataclass(frozen=True, slots=True)
class ParsedPatch:
    """A patch file with its parsed diff and, in a project, its header."""

    file: PatchFile
    patch: Patch
    header: Header | None


class Schema:
    """The header schema: its hash, and the parsed document when it is needed."""

    def __init__(self, sha256: str, load: Callable[[], dict[str, Any]]) -> None:
        self.sha256 = sha256
        self._load = load
        self._checker: HeaderChecker | None = None

    @property
    def checker(self) -> HeaderChecker:
        """The checker, made on first use (it imports jsonschema)."""
        if self._checker is None:
            self._checker = HeaderChecker(self._load())
        return self._checker


def header_of(file: PatchFile) -> Header:
    """The header of a patch file, read without parsing its diff.

    Raises :class:`InputError` when there is none, or when a diff starts before the header paragraph ends.
    """
    lines, _ = split_lines(file.data)
    start = first_section(lines)
    text = b"\n".join(lines if start is None else lines[:start])
    try:
        return parse_header(text, file.label)
    except InputError:
        if start is not None and _later_header(lines, start):
            raise InputError(
                "a diff starts here, before the header paragraph: a diff in the preamble would be applied",
                reason="malformed",
                file=file.label,
                line=start + 1,
                hint="indent the quoted diff by a space or two",
            ) from None
        raise


def _later_header(lines: list[bytes], start: int) -> bool:
    return any(
        line.startswith((b"Kind: ", b"Upstream: ", b"Retires-when: ", b"Cut-against: ")) for line in lines[start:]
    )


def vouched(series: Series, file: PatchFile, schema: Schema) -> bool:
    """True when the lock was made from exactly these bytes under this schema, so that the header need not be checked."""
    if series.lock is None or series.lock.headers != schema.sha256:
        return False
    locked = series.lock.patch(file.name)
    return locked is not None and locked.sha256 == file.sha256


def check_headers(series: Series, schema: Schema, everything: Series | None = None) -> list[tuple[PatchFile, Header]]:
    """Every header of ``series``; raises :class:`ManyProblems` with all that is wrong with them.

    ``everything`` is the whole series when ``series`` is only its beginning.
    """
    known = frozenset(p.name for p in (everything or series).patches)
    problems: list[Problem] = []
    found = []
    for file in series.patches:
        try:
            header = header_of(file)
        except InputError as error:
            problems.append(Problem(error.message, error.file, error.line, error.hint, error.reason, patch=file.name))
            continue
        if not vouched(series, file, schema):
            for problem in schema.checker.check(header, file.label, known):
                problems.append(
                    Problem(problem.message, problem.file, problem.line, problem.hint, problem.reason, patch=file.name)
                )
        found.append((file, header))
    if problems:
        raise ManyProblems(
            f"{len(problems)} problem{'s' * (len(problems) != 1)} in the headers", problems, reason=problems[0].reason
        )
    return found


def parse_file(file: PatchFile) -> Patch:
    """Parse one patch; an error carries the patch's name."""
    try:
        return parse_patch(file.data, file.label, file.strip, file.name)
    except InputError as error:
        error.patch = file.name
        raise


def parse_series_patches(series: Series, schema: Schema | None, everything: Series | None = None) -> list[ParsedPatch]:
    """Parse every patch; with ``schema``, check every header first.  Raises :class:`InputError`."""
    headers: dict[str, Header] = {}
    if schema is not None:
        headers = {file.name: header for file, header in check_headers(series, schema, everything)}
    return [ParsedPatch(file, parse_file(file), headers.get(file.name)) for file in series.patches]
