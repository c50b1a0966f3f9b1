"""What may be the name of a patch: one word that the series file, a file system and a header can hold."""

from __future__ import annotations

import re
from collections.abc import Iterable

from patchforge.errors import InputError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
MAX_NAME = 200
"""A file system takes 255 bytes; what is written beside a patch while it is replaced needs some of them."""


def is_name(name: str) -> bool:
    """True when ``name`` can be a patch's name."""
    return len(name) <= MAX_NAME and _NAME.fullmatch(name) is not None


def free_name(name: str, others: Iterable[str], hint: str = "choose another name") -> str:
    """``name``.  Raises :class:`InputError` when one of ``others`` is the same in other capitals."""
    other = next((other for other in others if other != name and other.casefold() == name.casefold()), None)
    if other is not None:
        raise InputError(
            f"'{name}' and '{other}' differ only in capitals, and many file systems cannot hold both",
            reason="exists",
            hint=hint,
        )
    return name


def check_name(name: str) -> str:
    """``name``.  Raises :class:`InputError` when it cannot be a patch's name."""
    if not is_name(name):
        shown = name if len(name) < 60 else f"{name[:60]}…"
        raise InputError(
            f"{shown!r} is not a name: it starts with a letter or digit, has letters, digits and . _ + - only, and at most "
            f"{MAX_NAME} of them",
            reason="usage",
        )
    return name
