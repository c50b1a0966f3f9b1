"""What a forge says of the pull requests a patch names (H4).

It explains, and decides nothing: it is laid beside verdicts that are there already.  That a pull request was merged does not mean
that its effect is in a release, and one that is open may be in it by another way; the trees are what is judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from patchforge.evidence.model import CONFLICT, KEEP, LANDED, Said, Verdict
from patchforge.headers.upstream import Upstream
from patchforge.releases.forge import Place, place_of
from patchforge.releases.history import History
from patchforge.releases.pulls import Key, Pull
from patchforge.series.pin import normalize

_PULL = re.compile(r"/([^/]+)/([^/]+)/pull/(\d{1,9})(?:[/.].*)?\Z")


@dataclass(frozen=True, slots=True)
class Places:
    """Where references lead: ``by_name`` has the repository of each project, its name normalized, and ``hosts`` may be asked."""

    by_name: Mapping[str, Place]
    hosts: frozenset[str]

    def find(self, reference: Upstream) -> Key | str:
        """The pull request a reference names, or why it cannot be looked up."""
        if reference.number is not None:
            place = self.by_name.get(normalize(reference.project))
            if place is None:
                return (
                    f"nothing says where {reference.project} is developed: --repository {reference.project}=OWNER/NAME"
                )
            return place, reference.number
        try:
            parts = urlsplit(reference.url)
            host = parts.netloc
        except ValueError:
            return "it is no address"
        match = _PULL.match(parts.path)
        place = place_of(host, match[1], match[2]) if match is not None else None
        if match is None or place is None:
            return "it is not the address of a pull request (https://HOST/OWNER/NAME/pull/N)"
        if place.host not in self.hosts:
            return f"{place.host} is not asked: --repository PROJECT={place} allows it"
        return place, int(match[3])


def said_of(references: Iterable[Upstream], places: Places, known: Mapping[Key, Pull]) -> tuple[Said, ...]:
    """What is known of each reference of a patch; ``known`` has an entry for every pull request that could be looked up."""
    out = []
    for reference in references:
        name = reference.url or f"{reference.project} #{reference.number}"
        key = places.find(reference)
        pull = None if isinstance(key, str) else known[key]
        out.append(Said(name, reference.state, pull, key if isinstance(key, str) else ""))
    return tuple(out)


def beside(
    verdicts: Sequence[Verdict], said: Mapping[str, tuple[Said, ...]], history: History | None = None
) -> list[Verdict]:
    """The same verdicts, with what the forge said among their signals; ``history`` is the release's, where there is one."""
    out = []
    for verdict in verdicts:
        pulls = tuple(_carried(one, history) for one in said.get(verdict.name, ()))
        out.append(replace(verdict, signals=replace(verdict.signals, pulls=pulls)))
    return out


def _carried(said: Said, history: History | None) -> Said:
    commit = said.pull.said.commit if said.pull is not None and said.pull.said is not None else ""
    if history is None or not commit:
        return said
    found = history.merged(commit)
    return replace(said, carried=found.short if found is not None else "")


def remark(verdict: str, said: Said) -> str:
    """What a person should see when a forge's word stands beside ``verdict``; empty where the two go together."""
    answer = said.pull.said if said.pull is not None else None
    if answer is None:
        return ""
    out = []
    if answer.state == "merged" and verdict == KEEP:
        out.append("merged, and the release has none of it")
    if answer.state == "merged" and verdict == CONFLICT:
        out.append("merged: what the release has there may be its form of it")
    if answer.state != "merged" and verdict == LANDED:
        out.append("not merged, and yet the release has it")
    if said.carried is not None:
        out.append(
            f"the release's log has it: {said.carried}" if said.carried else "the release's log does not have it"
        )
    if said.header and said.header != answer.state:
        out.append(f"the header says {said.header}")
    return "; ".join(out)
