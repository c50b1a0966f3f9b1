"""What ``retire-scan`` and ``radar`` ask of their options, and the work of ``--write``."""

from __future__ import annotations

import re
from pathlib import Path

from packaging.version import InvalidVersion, Version

from patchforge.cli import targets
from patchforge.cli.rearranging import rewrite
from patchforge.cli.scanning import Scanned, releases_after
from patchforge.errors import InputError
from patchforge.evidence.retire import Decision, Terms, decide
from patchforge.headers.conditions import parse_retires
from patchforge.series.parsed import header_of
from patchforge.series.project import Series


def named(
    series: Series,
    where: targets.Where,
    against: list[str] | None,
    all_newer: bool,
    old: Path | None,
    new: str | None,
    git: Path | None,
) -> list[str]:
    """The releases the options name.  Raises :class:`InputError`."""
    if series.pin is None:
        if old is None or new is None or against or all_newer or git:
            raise InputError("a bare series takes --old DIR and --new DIR", reason="usage")
        return [new]
    if old is not None or new is not None:
        raise InputError("--old and --new are for a bare series: use --tree and --against", reason="usage")
    if all_newer:
        return list(dict.fromkeys([*_versions(series, where, against), *releases_after(series, where.flavor, False)]))
    if not against:
        raise InputError(
            "name a release: --against VERSION, latest, a wheel, a directory or REPOSITORY@REF; or --all-newer",
            reason="usage",
        )
    return _versions(series, where, against)


def radar_named(
    series: Series, where: targets.Where, against: list[str] | None, old: Path | None, git: Path | None
) -> list[str]:
    """The releases of the matrix: those named, else every one after the pin.  Raises :class:`InputError`."""
    if series.pin is None:
        if old is None or not against or git:
            raise InputError("a bare series takes --old DIR and --against DIR, for each later tree", reason="usage")
        return list(against)
    if old is not None:
        raise InputError("--old is for a bare series: use --tree", reason="usage")
    return _versions(series, where, against) if against else releases_after(series, where.flavor, False)


def _versions(series: Series, where: targets.Where, against: list[str] | None) -> list[str]:
    out: list[str] = []
    for name in against or []:
        out += releases_after(series, where.flavor, True) if name == "latest" else [name]
    return out


def wanted(series: Series, explain: str | None) -> str | None:
    """The name of the patch to explain, as the series has it.  Raises :class:`InputError`."""
    if explain is None:
        return None
    for patch in series.patches:
        if patch.name.removesuffix(".patch") == explain.removesuffix(".patch"):
            return patch.name
    raise InputError(f"no patch '{explain}' in the series", reason="usage")


def write(series: Series, where: targets.Where, found: Scanned) -> tuple[list[Decision], tuple[str, ...]]:
    """Drop what may go; the decisions, and the names that went.  Raises :class:`Refused` when the rest would not apply."""
    from patchforge.branch.retire import retired

    terms = {}
    for patch in series.patches:
        header = header_of(patch)
        terms[patch.name] = Terms(parse_retires(header.get("Retires-when")), tuple(header.names("Requires")))
    decisions = decide(found.verdicts, terms, _version(found.target))
    reasons = {d.name: d.why for d in decisions if d.retires}
    if reasons:
        release = Path(found.target).name if Path(found.target).exists() else found.target
        rewrite(
            series,
            where,
            lambda s, read: retired(s, reasons, release, read, targets.schema()),
            f"retired {', '.join(reasons)}",
        )
    return decisions, tuple(reasons)


def _version(target: str) -> Version | None:
    """The version a target names: itself, a wheel's, or a tag's."""
    wheel = re.match(r"[^-]+-([^-]+)-.*\.whl\Z", Path(target).name)
    tag = re.match(r".+@v?([^@]+)\Z", target)
    text = wheel[1] if wheel else tag[1] if tag else target
    try:
        return Version(text)
    except InvalidVersion:
        return None
