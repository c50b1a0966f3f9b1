"""What a mode came to: one frozen value that can be shown to anybody, for the key in it hides itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from patchforge.errors import Problem
from patchforge.serving.secret import Secret
from patchforge.serving.table import Mode


@dataclass(frozen=True, slots=True)
class Setting:
    """One knob: its value, as typed and as text, and where it came from (``--set``, ``environment``, ``mode``, ``default``).

    ``state`` is ``on``, ``ignored`` (the mode has no use for it) or ``unavailable`` (the series lacks its patch).
    """

    name: str
    value: Any
    text: str
    source: str
    state: str = "on"


@dataclass(frozen=True, slots=True)
class Configuration:
    """``argv`` is the whole server command; ``env`` what is set for it, without the key; ``unset`` what is taken away.

    ``obstacles`` keep the server from starting here, and do not keep anybody from looking.
    """

    mode: Mode
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    unset: tuple[str, ...]
    settings: tuple[Setting, ...]
    key: Secret | None
    key_variable: str
    key_source: str
    notes: tuple[str, ...] = ()
    obstacles: tuple[Problem, ...] = ()

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """The server's environment: ``base``, changed; the only place where the key comes out."""
        made = {name: value for name, value in base.items() if name not in self.unset}
        made.update(self.env)
        made.pop(self.key_variable, None)
        if self.key is not None:
            made[self.key_variable] = self.key.reveal()
        return made
