"""Reading a knob's value from text, strictly, and writing it back."""

from __future__ import annotations

import difflib
import re
import shlex
from typing import Any

from patchforge.serving.table import Knob

OFF = "off"
_INTEGER = re.compile(r"-?[0-9]{1,18}\Z", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?\Z", re.ASCII)


class WrongValue(ValueError):
    """The text is no value of the knob.  ``hint`` says what would be; neither repeats more than the value."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def parse_value(knob: Knob, text: str) -> Any:
    """The value ``text`` stands for; ``None`` for ``off`` where the knob is optional.  Raises :class:`WrongValue`."""
    if "\0" in text or "\n" in text or not text.isprintable():
        raise WrongValue("a value holds a character that cannot be printed", allowed(knob))
    if knob.optional and text == OFF:
        return None
    if knob.kind == "boolean":
        if text not in ("0", "1"):
            raise WrongValue(
                f"{text!r} is neither 0 nor 1",
                "exactly 0 or 1: anything else would be read as on by one part and off by another",
            )
        return text == "1"
    if knob.kind == "choice":
        for value in knob.values:
            if str(value) == text:
                return value
        near = nearest(text, [str(value) for value in knob.values])
        raise WrongValue(f"{text!r} is not one of its values", f"did you mean '{near}'?" if near else allowed(knob))
    if knob.kind in ("integer", "number"):
        return _number(knob, text)
    if knob.kind == "arguments":
        try:
            return tuple(shlex.split(text)) or None
        except ValueError as error:
            raise WrongValue(f"the quotes do not match: {error}", "quote it as in a shell") from error
    if not text.strip() or text != text.strip():
        raise WrongValue("the value is blank, or has blanks around it", allowed(knob))
    if text.startswith("-"):
        raise WrongValue(f"{text!r} would be read as a flag", "flags go into EXTRA_ARGS")
    return text


def _number(knob: Knob, text: str) -> Any:
    pattern = _INTEGER if knob.kind == "integer" else _NUMBER
    if not pattern.match(text):
        raise WrongValue(f"{text!r} is not {'a whole' if knob.kind == 'integer' else 'a'} number", allowed(knob))
    value = int(text) if knob.kind == "integer" else float(text)
    assert knob.minimum is not None and knob.maximum is not None
    if not knob.minimum <= value <= knob.maximum:
        raise WrongValue(f"{text} is out of range", allowed(knob))
    if knob.multiple is not None and value % knob.multiple:
        raise WrongValue(f"{text} is not a multiple of {knob.multiple}", allowed(knob))
    return value


def allowed(knob: Knob) -> str:
    """What the knob takes, for people."""
    off = f", or {OFF}" if knob.optional else ""
    if knob.kind == "boolean":
        return "0 or 1"
    if knob.kind == "choice":
        return "one of: " + ", ".join(str(value) for value in knob.values)
    if knob.kind in ("integer", "number"):
        step = f", a multiple of {knob.multiple}" if knob.multiple else ""
        return f"{_plain(knob.minimum)} to {_plain(knob.maximum)}{step}{off}"
    return ("flags, quoted as in a shell" if knob.kind == "arguments" else "text") + off


def _plain(number: float | None) -> str:
    return str(int(number)) if number is not None and number == int(number) else f"{number:g}"


def show(value: Any) -> str:
    """``value`` as it is written on the command line; ``off`` for what is unset."""
    if value is None:
        return OFF
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, tuple):
        return shlex.join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def nearest(word: str, known: list[str]) -> str | None:
    """The one of ``known`` that ``word`` was probably meant to be, whatever its case."""
    folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold(), list(folded), n=1, cutoff=0.6)
    return folded[near[0]] if near else None
