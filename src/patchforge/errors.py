"""The errors every layer raises, and the exit status each kind stands for.

``reason`` is a stable word that the JSON documents repeat; ``where`` is ``file`` or ``file:line``;
``hint`` says what to do next.  Code below the command line raises these and never prints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class PatchforgeError(Exception):
    """Base class of everything patchforge raises on purpose."""

    status = 1
    shown: tuple[Any, ...] = ()
    """Blocks of a report that explain the error, where the command line has made some."""

    def __init__(
        self,
        message: str,
        *,
        reason: str = "error",
        file: str | None = None,
        line: int | None = None,
        hint: str | None = None,
        patch: str | None = None,
    ) -> None:
        super().__init__(message)
        self.patch = patch
        self.message = message
        self.reason = reason
        self.file = file
        self.line = line
        self.hint = hint

    @property
    def where(self) -> str:
        """``file:line``, as much of it as is known."""
        if self.file is None:
            return ""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        head = f"{self.where}: {self.message}" if self.where else self.message
        return f"{head}\n  {self.hint}" if self.hint else head


class Interrupted(KeyboardInterrupt):
    """A signal asked the process to end; ``done`` says what had become of the change it came into."""

    def __init__(self, signal: int, done: str = "") -> None:
        super().__init__()
        self.signal = signal
        self.done = done

    @property
    def status(self) -> int:
        """The exit status a shell gives a process that ended so."""
        return 128 + self.signal


class InputError(PatchforgeError):
    """What the user wrote is wrong: usage, a header, a malformed patch, a project file (status 2)."""

    status = 2


class MalformedPatch(InputError):
    """The bytes are not a unified diff that can be applied strictly."""


class Refused(PatchforgeError):
    """The input is well formed and the tree, or a check, says no (status 1)."""


class TreeError(Refused):
    """The tree is not what the series expects: another version, a foreign edit, an unsafe path."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding of a check that goes on after the first."""

    message: str
    file: str | None = None
    line: int | None = None
    hint: str | None = None
    reason: str = "error"
    severity: str = "error"
    patch: str | None = None

    @property
    def where(self) -> str:
        """``file:line``, as much of it as is known."""
        if self.file is None:
            return ""
        return self.file if self.line is None else f"{self.file}:{self.line}"


class ManyProblems(InputError):
    """Several findings, reported together (status 2)."""

    def __init__(self, message: str, problems: list[Problem], **kwargs: str | None) -> None:
        super().__init__(message, reason=kwargs.get("reason") or "input")
        self.problems: tuple[Problem, ...] = tuple(problems)

    def __str__(self) -> str:
        lines = [self.message]
        for problem in self.problems:
            lines.append(f"  {problem.where}: {problem.message}" if problem.where else f"  {problem.message}")
            if problem.hint:
                lines.append(f"    {problem.hint}")
        return "\n".join(lines)
