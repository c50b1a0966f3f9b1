"""``Upstream:``, structured."""

from __future__ import annotations

import re
from dataclasses import dataclass

_REF = re.compile(r"(?P<project>[A-Za-z0-9][A-Za-z0-9_.-]*) #(?P<number>\d{1,9}) \((?P<state>open|merged|closed)\)\Z")


@dataclass(frozen=True, slots=True)
class Upstream:
    """One upstream reference: a pull request with the state its author saw, or a URL."""

    project: str = ""
    number: int | None = None
    state: str = ""
    url: str = ""

    def __str__(self) -> str:
        return self.url or f"{self.project} #{self.number} ({self.state})"


def parse_upstream(value: str) -> tuple[Upstream, ...]:
    """The references of an ``Upstream`` value; empty for ``none``.  Raises :class:`ValueError`."""
    if value == "none" or re.match(r"none\b", value):
        return ()
    refs = []
    for part in value.split(", "):
        if re.match(r"https?://\S+\Z", part):
            refs.append(Upstream(url=part))
            continue
        match = _REF.match(part)
        if match is None:
            raise ValueError(f"{part!r} is not 'PROJECT #NUMBER (open|merged|closed)', a URL or 'none'")
        refs.append(Upstream(match["project"], int(match["number"]), match["state"]))
    return tuple(refs)
