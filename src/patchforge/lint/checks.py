"""Every lint of a series."""

from __future__ import annotations

import re
from collections.abc import Iterator

from patchforge.diff import Patch
from patchforge.errors import InputError, ManyProblems, Problem
from patchforge.headers import Header, parse_retires
from patchforge.lint.order import accidental_order
from patchforge.series.parsed import Schema, check_headers, parse_file
from patchforge.series.project import PatchFile, Series

UNREADABLE = frozenset({"malformed", "path", "binary", "crlf", "empty"})
"""The reasons that mean a patch could not be read at all (status 2); a header that is wrong is what lint looks for (status 1)."""


def lint(series: Series, schema: Schema | None) -> list[Problem]:
    """Every problem of ``series``, in series order; ``schema`` is ``None`` in bare mode, where headers are anybody's."""
    problems: list[Problem] = []
    headers: dict[str, Header] = {}
    if schema is not None:
        unlocked = Series(series.label, series.patches, series.directory, series.pin, series.project, None)
        try:
            headers = {file.name: header for file, header in check_headers(unlocked, schema)}
        except ManyProblems as error:
            problems += error.problems
    parsed: list[Patch] = []
    for file in series.patches:
        try:
            patch = parse_file(file)
        except InputError as error:
            problems.append(Problem(error.message, error.file, error.line, error.hint, error.reason, patch=file.name))
            continue
        parsed.append(patch)
        problems += _of_patch(file, patch)
    names = [p.name for p in series.patches]
    for file in series.patches:
        if file.name in headers:
            problems += _of_header(series, file, headers[file.name], names)
    problems += _unlisted(series)
    problems += _unproved(series)
    problems += _twins(series, parsed)
    requires = {name: {*h.names("Requires"), *h.names("Supersedes")} for name, h in headers.items()}
    problems += accidental_order(parsed, requires) if schema is not None else []
    if series.pin is not None and not series.lock_is_current:
        what = "there is no lock.toml" if series.lock is None else "lock.toml was made from other patches"
        problems.append(Problem(what, series.label, None, "write it with 'patchforge lock'", "lock", "warning"))
    rank = {name: number for number, name in enumerate(names)}
    return sorted(problems, key=lambda p: (rank.get(p.patch or "", len(names)), p.line or 0))


def _of_patch(file: PatchFile, patch: Patch) -> Iterator[Problem]:
    for finding in patch.findings:
        yield Problem(
            finding.message, file.label, finding.line, finding.hint or None, finding.reason, finding.severity, file.name
        )
    crlf = next((n for n, line in enumerate(file.data[:65536].split(b"\n"), 1) if line.endswith(b"\r")), None)
    if crlf is not None and crlf < patch.diff_line:
        yield Problem(
            "the text before the diff has CRLF line ends",
            file.label,
            crlf,
            "save it with LF",
            "crlf",
            "warning",
            file.name,
        )
    for change in patch.files:
        for hunk in change.hunks:
            number = hunk.line
            for op, text in hunk.body:
                number += 1
                if op == b"+" and re.match(rb"(<<<<<<<|>>>>>>>)( |\Z)|=======\Z", text):
                    yield Problem(
                        "the patch adds a merge conflict marker",
                        file.label,
                        number,
                        None,
                        "conflict-marker",
                        "error",
                        file.name,
                    )
                elif (
                    op == b"+"
                    and change.path.endswith(".py")
                    and text.rstrip(b" \t") != text
                    and not text.endswith(b"\r")
                ):
                    yield Problem(
                        "the patch adds white space at the end of a line",
                        file.label,
                        number,
                        None,
                        "whitespace",
                        "warning",
                        file.name,
                    )


def _of_header(series: Series, file: PatchFile, header: Header, names: list[str]) -> Iterator[Problem]:
    def problem(key: str, message: str, hint: str | None, severity: str = "error") -> Problem:
        return Problem(f"{key}: {message}", file.label, header.line_of(key), hint, "header", severity, file.name)

    position = names.index(file.name)
    for name in header.names("Requires"):
        if name in names[position:]:
            yield problem("Requires", f"'{name}' comes later in the series", "move it before this patch")
    condition = parse_retires(header.get("Retires-when"))
    kind = header.get("Kind")
    if condition.kind == "prose":
        severity = "warning" if kind in ("fix", "feature") else "error"
        hint = "state a condition ('carries #N', 'version >=X', 'probe NAME', 'with PATCH', 'never'), then ' -- ' and the prose"
        yield problem("Retires-when", "only prose, which no scan can check", hint, severity)
    else:
        for atom in condition.atoms():
            if atom.kind == "with" and atom.value not in names:
                yield problem("Retires-when", f"no patch '{atom.value}' in the series", None)
            if atom.kind == "probe" and not header.get("Probe"):
                yield problem("Retires-when", "names a probe, and the patch has no Probe", None)
    if series.pin is not None:
        want = f"{series.pin.distribution} {series.pin.version}"
        if header.get("Cut-against") != want:
            yield problem("Cut-against", f"{header.get('Cut-against')!r}, and the pin is {want!r}", None, "warning")
    if not header.preamble.strip():
        yield Problem(
            "no text before the header says why the patch exists", file.label, 1, None, "preamble", "warning", file.name
        )


def _unlisted(series: Series) -> Iterator[Problem]:
    listed = {p.path.name for p in series.patches}
    try:
        found = sorted(series.directory.iterdir())
    except OSError:
        return
    for path in found:
        if path.name in listed or not path.is_file():
            continue
        label = path.relative_to(series.project).as_posix() if series.project else str(path)
        if path.suffix in (".patch", ".diff"):
            yield Problem(
                "the patch is in no line of the series, so it is never applied",
                label,
                None,
                f"add it to {series.label}, or delete the file",
                "unlisted",
            )
        elif path.suffix in (".orig", ".rej") or path.name.endswith("~"):
            yield Problem("a leftover of another tool", label, None, "delete it", "leftover")


def _unproved(series: Series) -> Iterator[Problem]:
    """A pin without a wheel's hash: a version number alone does not say which bytes the release has."""
    if series.pin is None:
        return
    for flavor in series.pin.flavors:
        if not flavor.wheels:
            yield Problem(
                f"[flavor.{flavor.name}] names no wheel, so nothing says which bytes {flavor.distribution} "
                f"{series.pin.version} has, and --fetch cannot get it",
                f"{series.label.rpartition('/')[0]}/pin.toml",
                None,
                f"add [[flavor.{flavor.name}.wheel]] with its file and sha256",
                "pin",
                "warning",
            )


def _twins(series: Series, parsed: list[Patch]) -> Iterator[Problem]:
    """Two patches with the same diff: one was meant to be deleted or renamed."""
    bodies: dict[object, str] = {}
    labels = {p.name: p.label for p in series.patches}
    for patch in parsed:
        key = tuple((c.action, c.old_path, c.new_path, tuple(h.body for h in c.hunks)) for c in patch.files)
        if key in bodies:
            yield Problem(
                f"the same diff as '{bodies[key]}'", labels[patch.name], None, "keep one", "duplicate", patch=patch.name
            )
        bodies.setdefault(key, patch.name)
