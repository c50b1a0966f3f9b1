"""What a forge says of pull requests, as ``retire-scan`` shows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from patchforge.evidence.model import Said, Verdict
from patchforge.evidence.pulls import remark
from patchforge.reports.model import Block, Cell, Grid

_STYLES = {"merged": "good", "closed": "warn", "open": ""}


def pulls_grid(target: str, verdicts: Iterable[Verdict]) -> list[Block]:
    """A table of the references, beside the verdicts on ``target``; none where no forge was to be asked."""
    rows = [
        (
            Cell(verdict.name),
            Cell(said.reference),
            Cell(state(said), _STYLES.get(_state(said), "dim")),
            Cell(as_of(said), "dim"),
            Cell(remark(verdict.verdict, said), "warn"),
        )
        for verdict in verdicts
        for said in verdict.signals.pulls or ()
    ]
    columns = ("patch", "pull request", "state", "as of", "beside the verdict")
    return [Grid(columns, tuple(rows), title=f"pull requests, beside the verdicts on {target}")] if rows else []


def pulls_facts(verdict: Verdict) -> list[tuple[str, str]]:
    """The same for one patch, as ``--explain`` says it."""
    out = []
    for said in verdict.signals.pulls or ():
        more = [f"as of {as_of(said)}"] if as_of(said) else []
        more += [words] if (words := remark(verdict.verdict, said)) else []
        out.append(
            (f"its upstream reference {said.reference}", state(said) + (f" ({'; '.join(more)})" if more else ""))
        )
    return out


def pulls_document(verdict: Verdict) -> list[dict[str, Any]]:
    """The same for machines."""
    return [_document(verdict.verdict, said) for said in verdict.signals.pulls or ()]


def _document(verdict: str, said: Said) -> dict[str, Any]:
    pull = said.pull
    answer = pull.said if pull is not None else None
    return {
        "reference": said.reference,
        "header": said.header or None,
        "repository": f"{pull.place.host}/{pull.place.owner}/{pull.place.name}" if pull is not None else None,
        "number": pull.number if pull is not None else None,
        "state": _state(said),
        "merged": (answer.merged if answer is not None else "") or None,
        "closed": (answer.closed if answer is not None else "") or None,
        "commit": (answer.commit if answer is not None else "") or None,
        "base": (answer.base if answer is not None else "") or None,
        "asked": (pull.asked if pull is not None else "") or None,
        "carried": said.carried or None,
        "why": _why(said) or None,
        "remark": remark(verdict, said) or None,
    }


def _state(said: Said) -> str:
    return said.pull.said.state if said.pull is not None and said.pull.said is not None else "unknown"


def _why(said: Said) -> str:
    return said.why or (said.pull.why if said.pull is not None else "")


def as_of(said: Said) -> str:
    """The day of the answer."""
    return said.pull.asked[:10] if said.pull is not None else ""


def state(said: Said) -> str:
    """The state in words; where there was no answer this time, why."""
    answer = said.pull.said if said.pull is not None else None
    if answer is None:
        return f"unknown: {_why(said)}"
    words = answer.state
    if answer.state == "merged":
        words = f"merged on {answer.merged[:10]}" + (f" into {answer.base}" if answer.base else "")
    elif answer.state == "closed":
        words = "closed without a merge" + (f" on {answer.closed[:10]}" if answer.closed else "")
    return f"{words}; not asked again: {_why(said)}" if _why(said) else words
