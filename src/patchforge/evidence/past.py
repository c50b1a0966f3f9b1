"""What history says of a patch: H1 (carried), H2 (reverted), H3 (touched since)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from patchforge.evidence.model import Past, Unit
from patchforge.headers.upstream import Upstream
from patchforge.releases.history import History, Logged

_PULL = re.compile(r"/([^/]+)/(?:-/)?(?:pull|merge_requests|issues)/(\d+)")


def numbers_of(references: Iterable[Upstream], project: str) -> tuple[int, ...]:
    """The numbers that mean something in the log of ``project``; those of other projects do not."""
    out = []
    for reference in references:
        match = _PULL.search(reference.url)
        name, number = (match[1], int(match[2])) if match is not None else (reference.project, reference.number)
        if number is not None and _plain(name) == _plain(project):
            out.append(number)
    return tuple(out)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def past_of(numbers: Iterable[int], units: Iterable[Unit], history: History) -> Past:
    """The past of a patch with upstream ``numbers`` whose things are ``units`` in the release."""
    carried = reverted = None
    for number in numbers:
        reverted = reverted or history.reverted(number)
        carried = carried or history.carries(number)
    later: dict[str, Logged] = {}
    if carried is not None and reverted is None:
        for unit in units:
            path, _, line = unit.new.rpartition(":")
            if unit.state == "patched" and path and line.isdigit() and unit.last >= int(line):
                later |= {c.id: c for c in history.later(carried, path, int(line), unit.last)}
    return Past(
        carried.short if carried is not None else "",
        reverted.short if reverted is not None else "",
        tuple(commit.short for commit in later.values()),
    )
