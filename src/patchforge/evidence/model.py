"""The values of a scan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patchforge.releases.pulls import Pull

KEEP, LANDED, PARTIAL, CHANGED, REVERTED, CONFLICT, SUPERSEDED, UNKNOWN = (
    "keep",
    "landed",
    "partial",
    "landed-changed",
    "reverted",
    "conflict",
    "superseded",
    "unknown",
)
VERDICTS = (KEEP, LANDED, PARTIAL, CHANGED, REVERTED, CONFLICT, SUPERSEDED, UNKNOWN)


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing a patch changes: a definition of a Python file, or a hunk of any other.

    ``state``: what the new release has of it: ``patched``, ``old``, ``other`` or ``absent``.  ``old`` and ``new`` are
    ``path:line``, in the pin and in the release; ``moved`` is the path it was found at when that is another one; ``last`` is the
    last line of what ``new`` names.  ``weight`` is the number of words that the patch adds or takes away there, ``did`` the
    number of those that the release added or took away itself, where it has neither the patched nor the old one.
    """

    name: str
    state: str
    old: str
    new: str = ""
    moved: str = ""
    last: int = 0
    weight: int = 0
    did: int = 0

    @property
    def place(self) -> tuple[str, str]:
        """The file on the pin and the name: what says whether two patches change the same thing."""
        return self.old.rpartition(":")[0], self.name


@dataclass(frozen=True, slots=True)
class Past:
    """What the release's history says of the patch's upstream references: the commit that carries one, the commit that took it
    back, and later commits that touched the lines; each as a person quotes it."""

    carries: str = ""
    reverted: str = ""
    later: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """An upstream reference as the header writes it, with the state it gives, and the pull request as a forge described it.

    ``why``: why there is no pull request to look up.  ``carried``: the commit of the release's log that is its merge, or was
    picked from it, as a person quotes it; empty where there is none, ``None`` where there is no log, or no merge to look for.
    """

    reference: str
    header: str = ""
    pull: Pull | None = None
    why: str = ""
    carried: str | None = None


@dataclass(frozen=True, slots=True)
class Signals:
    """What the trees say of one patch.

    ``forward``: it applies to the release, and is not already there; ``reverse``: every hunk comes off, uniquely;
    ``merge``: ``no-op``, ``changes``, ``conflict`` or ``missing``; ``lines``: every added line is there, in order, and no removed
    one is; ``probe``: whether its probe holds on the pristine release (``None``: it has none that can be read).
    ``stands_on``: an earlier patch that makes a file or a definition this one changes, and that does not apply to the release.
    ``pulls``: what a forge says of the patch's references, laid beside the verdict and no part of it; ``None``: it was not asked.
    """

    forward: bool
    reverse: bool
    merge: str
    units: tuple[Unit, ...]
    lines: bool
    probe: bool | None = None
    why: str = ""
    offset: bool = False
    lost: tuple[str, ...] = ()
    past: Past | None = None
    searched: bool = True
    stands_on: str = ""
    pulls: tuple[Said, ...] | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome for one patch: ``verdict``, ``confidence`` (``high``, ``medium``, ``low``), and the reason in words."""

    name: str
    verdict: str
    confidence: str
    reason: str
    signals: Signals
    evidence: tuple[tuple[str, str], ...] = field(default_factory=tuple)
