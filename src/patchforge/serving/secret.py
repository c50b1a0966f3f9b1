"""The API key: read once, handed to the server's environment, shown nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from patchforge.errors import InputError, Problem

HIDDEN = "***"
_SHORTEST = 8
"""Shorter keys guard nothing, and hiding them would hide ordinary words."""


class Secret:
    """A string that does not show itself: printing, formatting or logging it gives ``***``."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The string."""
        return self._value

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written out")

    def within(self, text: str) -> bool:
        """True when ``text`` holds the secret."""
        return self._value in text

    def hide(self, text: str) -> str:
        """``text`` with the secret taken out."""
        return text.replace(self._value, HIDDEN)


def read_key(environ: Mapping[str, str], variable: str, path: str | None, create: str) -> tuple[Secret | None, str]:
    """The key and where it came from: ``variable``, else the file at ``path``, else ``(None, "")``.

    Raises :class:`InputError` for a file that cannot be read and for a key no header can carry; never with the key in it.
    """
    value = environ.get(variable, "")
    if value:
        return _checked(value, variable, create), variable
    if path is None:
        return None, ""
    if not path.startswith("/"):  # not repeated: people put the key itself here
        raise InputError("the key file is not named by an absolute path", reason="key")
    try:
        raw = Path(path).read_bytes()
        text = raw[:65536].decode("ascii").strip()
    except OSError as error:
        raise InputError(f"the key file {path} cannot be read: {error.strerror}", reason="key") from None
    except UnicodeDecodeError:
        text = "\0"
    if not text:
        raise InputError(f"the key file {path} is empty", reason="key", hint=f"write a key into it: {create} > {path}")
    return _checked(text, path, create), path


def known_keys(environ: Mapping[str, str], variable: str, path: str | None) -> list[Secret]:
    """Every key that can be found, right or wrong, so that it can be hidden in what is said about it."""
    found = [environ.get(variable, "")]
    try:
        found.append(Path(path).read_text("ascii").strip() if path and path.startswith("/") else "")
    except (OSError, ValueError):
        pass
    return [Secret(value) for value in found if len(value) >= _SHORTEST]


def _checked(value: str, source: str, create: str) -> Secret:
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise InputError(
            f"the key of {source} is not one word of plain characters", reason="key", hint=f"make one with: {create}"
        )
    if len(value) < _SHORTEST:
        raise InputError(
            f"the key of {source} has fewer than {_SHORTEST} characters", reason="key", hint=f"make one with: {create}"
        )
    return Secret(value)


def hidden_error(error: Exception, key: Secret) -> None:
    """Take ``key`` out of everything an error of ours says."""
    for name in ("message", "hint", "file", "patch"):
        text = getattr(error, name, None)
        if isinstance(text, str):
            setattr(error, name, key.hide(text))
    error.args = tuple(key.hide(a) if isinstance(a, str) else a for a in error.args)
    problems = getattr(error, "problems", None)
    if problems:
        error.problems = tuple(hidden_problem(problem, key) for problem in problems)  # type: ignore[attr-defined]


def hidden_problem(problem: Problem, key: Secret) -> Problem:
    """``problem`` without ``key``."""
    hint = None if problem.hint is None else key.hide(problem.hint)
    file = None if problem.file is None else key.hide(problem.file)
    return Problem(key.hide(problem.message), file, problem.line, hint, problem.reason, problem.severity, problem.patch)
