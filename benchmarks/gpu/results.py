"""What a run has measured so far, in one JSON file that is whole at every moment, and the time the run has left."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NOT_RUN, RUNNING, MEASURED, FAILED = "not run", "running", "measured", "failed"


def read(path: Path) -> dict[str, Any]:
    """The document of a run."""
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def write(path: Path, document: dict[str, Any]) -> None:
    """Put a document in the place of the old one: who is killed here leaves one of the two, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("w") as file:
            json.dump(document, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def started(path: Path, header: dict[str, Any], boots: list[dict[str, Any]]) -> dict[str, Any]:
    """The document a run begins with.

    The parts of an earlier run of the same tree that are not run again stay: a tree may take several commands.
    """
    kept = []
    if path.exists():
        earlier = read(path)
        if earlier["name"] != header["name"]:
            raise ValueError(f"{path} holds what was measured of {earlier['name']!r}, not of {header['name']!r}")
        again = {boot["part"] for boot in boots}
        kept = [boot for boot in earlier["boots"] if boot["part"] not in again]
    document = {**header, "boots": [*kept, *boots]}
    write(path, document)
    return document


@dataclass
class Budget:
    """Seconds until ``deadline``, a time of ``clock``.

    What things take is estimated beforehand, and an estimate is corrected by what became of the one before: not by the worst of
    all, because the first point of a boot compiles what the others find.
    """

    deadline: float
    clock: Callable[[], float] = time.time
    reserve: float = 5.0
    factor: float = field(default=1.0, init=False)

    def left(self) -> float:
        return self.deadline - self.clock()

    def refusal(self, estimate: float) -> str | None:
        """Why what is estimated to take so many seconds is not begun; None where there is time for it."""
        needed, left = estimate * self.factor + self.reserve, self.left()
        if needed <= left:
            return None
        return f"it takes about {needed:.0f} s and {max(left, 0):.0f} were left"

    def learn(self, estimate: float, took: float) -> None:
        """Something estimated took so long: the next estimate is no more hopeful than that."""
        self.factor = max(1.0, took / estimate)
