"""``pin.toml``: the exact release a series is cut against."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchforge.errors import InputError
from patchforge.series.files import read_file
from patchforge.series.imagepin import ImagePin, dump_image, parse_images

SCHEMA = 1
_SHA = re.compile(r"[0-9a-f]{64}\Z")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\Z")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+!_-]*\Z")
_WHEEL = re.compile(r"[A-Za-z0-9_.!+]+(-[A-Za-z0-9_.!+]+){4,5}\.whl\Z")


@dataclass(frozen=True, slots=True)
class Wheel:
    """One wheel file of the pin."""

    file: str
    sha256: str

    @property
    def tags(self) -> tuple[str, str, str]:
        """Python, ABI and platform tag of the file name."""
        python, abi, platform = self.file.removesuffix(".whl").split("-")[-3:]
        return python, abi, platform


@dataclass(frozen=True, slots=True)
class Flavor:
    """One distribution that carries the same tree (``vllm``, or its CPU build)."""

    name: str
    distribution: str
    wheels: tuple[Wheel, ...]


@dataclass(frozen=True, slots=True)
class Pin:
    """The pin.  ``root`` is the tree's directory inside site-packages, ``strip`` the strip level of every patch."""

    distribution: str
    version: str
    root: str
    strip: int
    flavors: tuple[Flavor, ...]
    requires_python: str | None = None
    images: tuple[ImagePin, ...] = ()

    @property
    def id(self) -> str:
        """``NAME-VERSION``, the name of the pin's directories."""
        return f"{self.distribution}-{self.version}"

    def flavor(self, name: str | None) -> Flavor:
        """The flavour called ``name``, or the first.  Raises :class:`InputError`."""
        if name is None:
            return self.flavors[0]
        for flavor in self.flavors:
            if flavor.name == name:
                return flavor
        raise InputError(
            f"the pin has no flavor '{name}'", reason="usage", hint=f"known: {', '.join(f.name for f in self.flavors)}"
        )

    def image(self, name: str | None) -> ImagePin:
        """The image of the flavour called ``name``, or of the first that has one.  Raises :class:`InputError`."""
        if name is not None:
            self.flavor(name)
        for image in self.images:
            if name in (None, image.flavor):
                return image
        wanted = name or self.flavors[0].name
        raise InputError(
            f"pin.toml has no [image.{wanted}] table",
            reason="image-missing",
            hint="it names the base by digest and the locks: docs/image.md shows one",
        )


def normalize(name: str) -> str:
    """A distribution name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_pin(path: Path, label: str) -> Pin:
    """Read ``pin.toml``.  Raises :class:`InputError` naming the key at fault."""
    import tomllib

    raw = read_file(path, label, "pin")
    if raw is None:
        raise InputError("there is no pin.toml", reason="pin", file=label)
    try:
        data = tomllib.loads(raw.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not TOML: {error}", reason="pin", file=label) from error
    return parse_pin(data, label)


def parse_pin(data: dict[str, Any], label: str) -> Pin:
    """The pin of a parsed ``pin.toml``."""

    def fail(message: str, hint: str | None = None) -> InputError:
        return InputError(message, reason="pin", file=label, hint=hint)

    known = {"schema", "distribution", "version", "root", "strip", "requires-python", "flavor", "image"}
    for key in data:
        if key not in known:
            import difflib

            near = difflib.get_close_matches(key, known, n=1)
            raise fail(
                f"unknown key '{key}'", f"did you mean '{near[0]}'?" if near else f"known: {', '.join(sorted(known))}"
            )
    if data.get("schema") != SCHEMA:
        raise fail(f"schema must be {SCHEMA}, not {data.get('schema')!r}")
    distribution, version, root = data.get("distribution"), data.get("version"), data.get("root")
    if not isinstance(distribution, str) or not _NAME.match(distribution):
        raise fail("'distribution' must be a distribution name")
    if not isinstance(version, str) or not _VERSION.match(version):
        raise fail("'version' must be one exact version")
    if not isinstance(root, str) or not all(part.isidentifier() for part in root.split("/")):
        raise fail("'root' must be the package directory inside site-packages, such as 'vllm'")
    strip = data.get("strip", 1)
    if not isinstance(strip, int) or isinstance(strip, bool) or not 0 <= strip <= 20:
        raise fail("'strip' must be a small whole number")
    flavors = []
    table = data.get("flavor", {})
    if not isinstance(table, dict) or not table:
        raise fail("there is no [flavor.NAME] table", "each names a distribution and its wheels with their sha256")
    for name, value in table.items():
        flavors.append(_flavor(name, value, distribution, fail))
    requires = data.get("requires-python")
    images = parse_images(data.get("image", {}), tuple(f.name for f in flavors), label)
    python = requires if isinstance(requires, str) else None
    return Pin(distribution, version, root, strip, tuple(flavors), python, images)


def _flavor(name: str, value: Any, distribution: str, fail: Any) -> Flavor:
    if not isinstance(value, dict):
        raise fail(f"[flavor.{name}] must be a table")
    wheels = []
    listed = value.get("wheel", [])
    if not isinstance(listed, list) or not all(isinstance(wheel, dict) for wheel in listed):
        raise fail(f"[flavor.{name}]: 'wheel' must be a list of tables")
    for wheel in listed:
        file, sha = wheel.get("file"), wheel.get("sha256")
        if not isinstance(file, str) or not _WHEEL.match(file):
            raise fail(f"[flavor.{name}]: {file!r} is not a wheel's file name")
        if not isinstance(sha, str) or not _SHA.match(sha):
            raise fail(f"[flavor.{name}]: {file}: sha256 must be 64 hexadecimal digits")
        wheels.append(Wheel(file, sha))
    own = value.get("distribution", distribution)
    if not isinstance(own, str) or not _NAME.match(own):
        raise fail(f"[flavor.{name}]: 'distribution' must be a distribution name")
    return Flavor(name, own, tuple(wheels))


def dump_pin(pin: Pin) -> bytes:
    """The bytes of ``pin.toml`` for ``pin``."""
    import tomli_w

    data: dict[str, Any] = {
        "schema": SCHEMA,
        "distribution": pin.distribution,
        "version": pin.version,
        "root": pin.root,
        "strip": pin.strip,
    }
    if pin.requires_python:
        data["requires-python"] = pin.requires_python
    data["flavor"] = {
        flavor.name: {
            "distribution": flavor.distribution,
            "wheel": [{"file": w.file, "sha256": w.sha256} for w in flavor.wheels],
        }
        for flavor in pin.flavors
    }
    if pin.images:
        data["image"] = {image.flavor: dump_image(image) for image in pin.images}
    head = "# The pin: the one release this series is cut against.  Wheels are identified by their sha256.\n"
    return (head + tomli_w.dumps(data)).encode()
