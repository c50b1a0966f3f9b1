"""What the driver saw, for the tests to compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Seen:
    """What the driver saw of each tree."""

    pristine: dict[str, Any]
    patched: dict[str, Any]
