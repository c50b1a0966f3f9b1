"""Requirement locks: every line exact and hashed, none naming an index, and made from what the pin says now."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from patchforge.errors import InputError, Refused
from patchforge.image import tool
from patchforge.series.files import read_file
from patchforge.series.imagepin import ImagePin
from patchforge.series.pin import Flavor, Pin, normalize

_LINE = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(\[[^\]]*\])?==(?P<version>[A-Za-z0-9.+!_-]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_INDEX = re.compile(r"(--?(index|extra-index|find-links|trusted-host|no-index|f|i)\b|://|@ )")
_INPUTS = re.compile(r"# inputs: sha256:([0-9a-f]{64})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Locked:
    """One requirement: exact version, and the SHA-256 of every file that may serve it."""

    name: str
    version: str
    hashes: tuple[str, ...]
    line: int
    extras: str = ""


@dataclass(frozen=True, slots=True)
class RequirementLock:
    """A lock file: its bytes, and what it holds by normalised name."""

    label: str
    data: bytes
    packages: dict[str, Locked]

    @property
    def sha256(self) -> str:
        """Of the bytes."""
        return hashlib.sha256(self.data).hexdigest()


def engine_inputs(pin: Pin, flavor: Flavor, image: ImagePin) -> tuple[str, ...]:
    """The requirements that the engine's lock resolves."""
    return (f"{flavor.distribution}=={pin.version}", *image.require)


def inputs_hash(image: ImagePin, needs: tuple[str, ...]) -> str:
    """The identity of what a lock is made from: requirements, Python and platform."""
    facts: dict[str, object] = {
        "require": [tool.normalized(need) for need in needs],
        "python": image.minor,
        "platform": image.platform,
        "glibc": image.glibc,
    }
    if image.omit:
        facts["omit"] = sorted(image.omit)
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def head(image: ImagePin, needs: tuple[str, ...]) -> str:
    """The first lines of a lock."""
    without = f", without {', '.join(image.omit)}" if image.omit else ""
    return (
        "# Written by 'patchforge lock --image'; never edit it by hand.\n"
        f"# For Python {image.minor} on {image.platform} with glibc {image.glibc}: {', '.join(needs)}{without}\n"
        f"# inputs: sha256:{inputs_hash(image, needs)}\n"
    )


def read_requirements(path: Path, label: str, image: ImagePin, needs: tuple[str, ...]) -> RequirementLock:
    """Read and check a lock.  Raises :class:`InputError` or :class:`Refused` naming file, line and what to do."""
    raw = read_file(path, label, "lock-missing")
    cure = f"'patchforge lock --image --flavor {image.flavor}' writes it"
    if raw is None:
        raise Refused("there is no such requirements lock", reason="lock-missing", file=label, hint=cure)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise InputError("the lock is not UTF-8", reason="lock-unhashed", file=label, hint=cure) from error
    packages = parse_requirements(text, label, cure)
    made = _INPUTS.search(text)
    if made is None or made[1] != inputs_hash(image, needs):
        raise Refused(
            "the lock was made from other requirements, another Python or another platform than pin.toml names now",
            reason="lock-stale",
            file=label,
            hint=cure,
        )
    return RequirementLock(label, raw, packages)


def parse_requirements(text: str, label: str, cure: str) -> dict[str, Locked]:
    """The requirements of a lock.  Raises :class:`InputError` for a line that is not exact, not hashed, or names an index."""
    packages: dict[str, Locked] = {}
    for number, line in _logical(text):
        if _INDEX.search(line):
            raise InputError(
                "a lock may not say where to fetch from", reason="lock-index", file=label, line=number,
                hint="an index is the business of pip's own configuration",
            )  # fmt: skip
        match = _LINE.match(line)
        hashes = tuple(_HASH.findall(line))
        if match is None or not hashes:
            what = "not an exact requirement" if match is None else f"{match['name']} has no hash"
            raise InputError(f"{what}: {line[:60]!r}", reason="lock-unhashed", file=label, line=number, hint=cure)
        name = normalize(match["name"])
        if name in packages:
            raise InputError(f"{name} is locked twice", reason="lock-unhashed", file=label, line=number, hint=cure)
        packages[name] = Locked(name, match["version"], hashes, number)
    return packages


def _logical(text: str) -> list[tuple[int, str]]:
    """Lines with their continuations joined, comments and blank ones left out, each with the number it starts at."""
    out: list[tuple[int, str]] = []
    held, start = "", 0
    for number, raw in enumerate(text.split("\n"), 1):
        line = re.sub(r"(^|\s)#.*", "", raw).strip()
        if not held:
            start = number
        held += line.removesuffix("\\").strip() + " "
        if line.endswith("\\"):
            continue
        if held.strip():
            out.append((start, held.strip()))
        held = ""
    if held.strip():
        out.append((start, held.strip()))
    return out


def check_wheel(lock: RequirementLock, pin: Pin, flavor: Flavor) -> None:
    """The lock must allow the pinned wheel of the distribution, and so install the bytes the series is cut against."""
    locked = lock.packages.get(normalize(flavor.distribution))
    pinned = {wheel.sha256 for wheel in flavor.wheels}
    if locked is None or locked.version != pin.version or not pinned & set(locked.hashes):
        raise Refused(
            f"the lock does not hold the pinned wheel of {flavor.distribution} {pin.version}",
            reason="wheel-hash",
            file=lock.label,
            line=locked.line if locked else None,
            hint="the index has another file than pin.toml: find out which is right",
        )
