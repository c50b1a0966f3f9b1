"""What the patches that do not apply to a release would have made: later patches are not to be judged by its absence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from patchforge.engine.model import Reader, Step
from patchforge.evidence.model import Unit


@dataclass(slots=True)
class Unmade:
    """The files and definitions that patches without a place in the release make, by the patch, and the places they change."""

    files: dict[str, str] = field(default_factory=dict)
    definitions: dict[tuple[str, str], str] = field(default_factory=dict)
    changed: set[tuple[str, str]] = field(default_factory=set)

    def note(self, patch: str, steps: Iterable[Step], units: Iterable[Unit], read: Reader) -> None:
        """Patch ``patch`` does not apply to the release, and is not in it."""
        self.files |= {s.path: patch for s in steps if s.before is None and read(s.path) is None}
        for unit in units:
            self.changed.add(unit.place)
            if unit.state == "old" and not unit.new:  # neither the pin nor the release has it: the patch makes it
                self.definitions[unit.place] = patch

    def under(self, steps: Iterable[Step], units: Iterable[Unit]) -> str:
        """The patch that makes a file or a definition which these change; empty where there is none."""
        makers = [self.files[s.path] for s in steps if s.path in self.files]
        makers += [self.definitions[u.place] for u in units if u.state == "absent" and u.place in self.definitions]
        return makers[0] if makers else ""

    def apart(self, units: Iterable[Unit]) -> tuple[Unit, ...]:
        """The units, without what the release did where an unmade patch changes the same thing: that is its absence."""
        return tuple(replace(unit, did=0) if unit.place in self.changed else unit for unit in units)
