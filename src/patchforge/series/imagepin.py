"""The ``[image.FLAVOR]`` tables of ``pin.toml``: what an image of a flavour is built on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from patchforge.errors import InputError

FIRST_EPOCH = 315532800
"""1980-01-01: no ZIP archive can hold a file that is older."""
_BASE = re.compile(r"([a-z0-9][A-Za-z0-9._:/-]*(@sha256:[0-9a-f]{64})?)?\Z")
_PLATFORM = re.compile(r"[a-z0-9]+/[a-z0-9_]+(/[a-z0-9]+)?\Z")
_PYTHON = re.compile(r"3\.\d+(\.\d+)?\Z")
_GLIBC = re.compile(r"2\.(17|2[89]|3\d)\Z")
_APT = re.compile(r"[a-z0-9][a-z0-9+.-]+=[A-Za-z0-9.+:~-]+\Z")
_ENV = re.compile(r"[A-Z_][A-Z0-9_]*\Z")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?\Z")
_VALUE = re.compile(r"[ !#%-\[\]-_a-~]*\Z")  # a Dockerfile would expand or end the rest
_PATH = re.compile(r"(?!/)(?!.*\.\.)[A-Za-z0-9._/-]+\Z")
_PACKAGE = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?\Z")
KEYS = (
    "base",
    "platform",
    "python",
    "glibc",
    "requirements",
    "tool",
    "require",
    "omit",
    "apt",
    "epoch",
    "bytecode",
    "codec",
    "env",
)
_CODEC = re.compile(r"([a-z0-9]+-\d+ [a-z]+ [\w.]+ probe [0-9a-f]{12})?\Z")
BYTECODE = ("none", "checked-hash")


@dataclass(frozen=True, slots=True)
class ImagePin:
    """The inputs of one flavour's image.

    ``base`` is ``NAME[:TAG]@sha256:…``; ``python`` and ``glibc`` are the base's, ``requirements`` and ``tool`` the
    locks of the engine and of patchforge itself, relative to the pin's directory; ``require`` what the engine's lock holds
    besides the distribution, ``omit`` packages the locks leave out although something asks for them; ``apt`` Debian packages
    as ``NAME=VERSION``; ``epoch`` the image's date in seconds, which no file carries; ``bytecode`` what the patch layer holds
    of the changed modules; ``codec`` what must compress the layers, as provenance.intoto.json names it (empty: whatever does).
    """

    flavor: str
    base: str
    platform: str
    python: str
    requirements: str
    tool: str
    require: tuple[str, ...] = ()
    apt: tuple[str, ...] = ()
    epoch: int = FIRST_EPOCH
    bytecode: str = "none"
    env: Mapping[str, str] = field(default_factory=dict)
    glibc: str = "2.28"
    omit: tuple[str, ...] = ()
    codec: str = ""

    @property
    def digest(self) -> str:
        """``sha256:…`` of the base, empty when it has none."""
        return self.base.partition("@")[2]

    @property
    def minor(self) -> str:
        """The interpreter's ``3.N``."""
        return ".".join(self.python.split(".")[:2])


def parse_images(table: Any, flavors: tuple[str, ...], label: str) -> tuple[ImagePin, ...]:
    """The ``[image.…]`` tables.  Raises :class:`InputError` naming table and key."""
    if not isinstance(table, dict):
        raise InputError("'image' must be a table of tables", reason="pin", file=label)
    return tuple(_image(name, value, flavors, label) for name, value in table.items())


def _image(name: str, value: Any, flavors: tuple[str, ...], label: str) -> ImagePin:
    def fail(message: str, reason: str = "pin", hint: str | None = None) -> InputError:
        return InputError(f"[image.{name}]: {message}", reason=reason, file=label, hint=hint)

    if not isinstance(value, dict):
        raise fail("it must be a table")
    if name not in flavors:
        raise fail("the pin has no flavor of that name", hint=f"known: {', '.join(flavors)}")
    if not _NAME.match(name):
        raise fail("an image's flavor is named in small letters, digits and hyphens")
    for key in value:
        if key not in KEYS:
            raise fail(f"unknown key '{key}'", hint=f"known: {', '.join(KEYS)}")

    def text(key: str, default: str, pattern: re.Pattern[str], what: str) -> str:
        found = value.get(key, default)
        if not isinstance(found, str) or not pattern.match(found):
            raise fail(f"'{key}' must be {what}, not {found!r}")
        return found

    epoch = value.get("epoch", FIRST_EPOCH)
    if not isinstance(epoch, int) or isinstance(epoch, bool):
        raise fail(f"'epoch' must be a whole number of seconds, not {epoch!r}")
    if epoch < FIRST_EPOCH:
        raise fail(f"'epoch' {epoch} lies before 1980", "epoch-early", f"take {FIRST_EPOCH} or later")
    bytecode = value.get("bytecode", "none")
    if bytecode not in BYTECODE:
        raise fail(f"'bytecode' must be one of {', '.join(BYTECODE)}")
    return ImagePin(
        name,
        text("base", "", _BASE, "an image as NAME[:TAG]@sha256:DIGEST"),
        text("platform", "linux/amd64", _PLATFORM, "OS/ARCHITECTURE"),
        text("python", "", _PYTHON, "the base's Python version, such as 3.12 or 3.12.14"),
        text("requirements", f"image/{name}.txt", _PATH, "a path below the pin's directory"),
        text("tool", f"image/{name}-tool.txt", _PATH, "a path below the pin's directory"),
        _texts(value, "require", re.compile(r"[A-Za-z0-9][^\s@]*\Z"), "a requirement", fail),
        _texts(value, "apt", _APT, "a package as NAME=VERSION", fail),
        epoch,
        bytecode,
        _environment(value.get("env", {}), fail),
        text("glibc", "2.28", _GLIBC, "the base's C library, such as 2.28"),
        _texts(value, "omit", _PACKAGE, "a package's name in small letters, digits and hyphens", fail),
        text("codec", "", _CODEC, "a compressor as provenance.intoto.json names it"),
    )


def _texts(
    value: dict[str, Any], key: str, pattern: re.Pattern[str], what: str, fail: Callable[..., InputError]
) -> tuple[str, ...]:
    found = value.get(key, [])
    if not isinstance(found, list):
        raise fail(f"'{key}' must be a list")
    for item in found:
        if not isinstance(item, str) or not pattern.match(item):
            raise fail(f"'{key}': {item!r} is not {what}")
    return tuple(found)


def _environment(table: Any, fail: Callable[..., InputError]) -> Mapping[str, str]:
    if not isinstance(table, dict):
        raise fail("'env' must be a table")
    for name, value in table.items():
        if not _ENV.match(name) or not isinstance(value, str) or not _VALUE.match(value):
            raise fail(
                f"'env': {name} must be an upper-case name with a plain text: no quote, backslash, dollar or backtick"
            )
        if _SECRET.search(name) or re.search(r"://[^/@\s]+@", value):
            raise fail(
                f"'env': {name} looks like a secret, and an image keeps its environment for everybody to read",
                "leak",
                "give secrets to the container when it starts",
            )
    return dict(table)


def dump_image(image: ImagePin) -> dict[str, Any]:
    """The table as ``pin.toml`` holds it."""
    out: dict[str, Any] = {"base": image.base, "platform": image.platform, "python": image.python, "glibc": image.glibc}
    out |= {"requirements": image.requirements, "tool": image.tool}
    out |= {
        key: list(values)
        for key, values in (("require", image.require), ("omit", image.omit), ("apt", image.apt))
        if values
    }
    out |= {"epoch": image.epoch, "bytecode": image.bytecode}
    if image.codec:
        out["codec"] = image.codec
    if image.env:
        out["env"] = dict(image.env)
    return out


def set_base(text: str, flavor: str, base: str) -> str:
    """``pin.toml`` with the ``base`` of one flavour replaced and every other byte kept, comments too.

    Raises :class:`InputError` when the table has no line that sets it.
    """
    lines = text.split("\n")
    inside = False
    for number, line in enumerate(lines):
        if re.match(r"\s*\[", line):
            inside = re.fullmatch(rf"\s*\[\s*image\s*\.\s*{re.escape(flavor)}\s*\]\s*(#.*)?", line) is not None
        elif inside and (match := re.fullmatch(r'(\s*base\s*=\s*)"[^"]*"(.*)', line)):
            lines[number] = f'{match[1]}"{base}"{match[2]}'
            return "\n".join(lines)
    raise InputError(
        f"[image.{flavor}] has no line 'base = \"…\"' to write to",
        reason="pin",
        hint=f'add it to pin.toml: base = "{base}"',
    )
