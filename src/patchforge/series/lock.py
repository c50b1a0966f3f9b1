"""``lock.toml``: what every file must hash to before and after the series, and after each patch.

Written by ``patchforge lock``, never by hand.  It vouches for what it was computed from: a patch whose bytes hash to the
locked value has had its header checked and its result compiled when the lock was made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchforge.errors import InputError
from patchforge.series.files import read_file

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class LockedStep:
    """One file of one patch: its hash afterwards (``None``: absent) and, for Python, each hunk's qualified name.

    ``gone`` is the path a rename left empty.
    """

    path: str
    after: str | None
    scopes: tuple[str, ...] = ()
    gone: str | None = None


@dataclass(frozen=True, slots=True)
class LockedPatch:
    """One patch: the hash of its bytes, and its steps in section order."""

    name: str
    sha256: str
    steps: tuple[LockedStep, ...]


@dataclass(frozen=True, slots=True)
class LockedFile:
    """One touched file: SHA-256 before and after the whole series; ``None`` where it does not exist."""

    path: str
    before: str | None
    after: str | None
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock of one series on one pin."""

    distribution: str
    version: str
    headers: str
    series: str
    patches: tuple[LockedPatch, ...]
    files: tuple[LockedFile, ...]

    def patch(self, name: str) -> LockedPatch | None:
        """The locked patch called ``name``."""
        return next((p for p in self.patches if p.name == name), None)


def series_hash(patches: Iterable[tuple[str, int, str]]) -> str:
    """SHA-256 over ``(name, strip, sha256 of the patch)`` in order: the identity of a series."""
    total = hashlib.sha256(b"patchforge series 1\n")
    for name, strip, sha in patches:
        total.update(f"{sha} -p{strip} {name}\n".encode())
    return total.hexdigest()


def read_lock(path: Path, label: str) -> Lock | None:
    """Read a lock; ``None`` when there is none.  Raises :class:`InputError` when it is damaged."""
    import tomllib

    raw = read_file(path, label, "lock")
    if raw is None:
        return None
    try:
        data = tomllib.loads(raw.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(label, str(error)) from error
    if data.get("schema") != SCHEMA:
        raise _damaged(label, f"schema {data.get('schema')!r} is not {SCHEMA}")
    try:
        return Lock(
            data["distribution"],
            data["version"],
            data["headers"],
            data["series"],
            tuple(_patch(item) for item in data.get("patch", [])),
            tuple(
                LockedFile(item["path"], item.get("before"), item.get("after"), item.get("executable", False))
                for item in data.get("file", [])
            ),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(label, f"{type(error).__name__}: {error}") from error


def _patch(item: dict[str, Any]) -> LockedPatch:
    steps = tuple(
        LockedStep(step["path"], step.get("after"), tuple(step.get("scopes", ())), step.get("gone"))
        for step in item.get("file", [])
    )
    return LockedPatch(item["name"], item["sha256"], steps)


def _damaged(label: str, why: str) -> InputError:
    return InputError(
        f"the lock cannot be read: {why}", reason="lock", file=label, hint="write it again with 'patchforge lock'"
    )


def dump_lock(lock: Lock) -> bytes:
    """The bytes of ``lock.toml``: stable, so that the same series gives the same lock."""
    import tomli_w

    data: dict[str, Any] = {
        "schema": SCHEMA,
        "distribution": lock.distribution,
        "version": lock.version,
        "headers": lock.headers,
        "series": lock.series,
        "file": [
            _drop(path=f.path, before=f.before, after=f.after, executable=f.executable or None) for f in lock.files
        ],
        "patch": [
            {
                "name": p.name,
                "sha256": p.sha256,
                "file": [
                    _drop(path=s.path, after=s.after, scopes=list(s.scopes) or None, gone=s.gone) for s in p.steps
                ],
            }
            for p in lock.patches
        ],
    }
    head = "# Written by 'patchforge lock'; never edit it by hand.\n"
    return (head + tomli_w.dumps(data)).encode()


def _drop(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
