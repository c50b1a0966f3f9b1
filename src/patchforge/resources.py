"""Files that ship with patchforge: the header schema and the templates."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parent


def _file(name: str) -> Path:
    """The shipped file ``name``: inside the installed package, or at the top of a source checkout."""
    packed = _PACKAGE / "_data" / name
    return packed if packed.exists() else _PACKAGE.parents[1] / name


@cache
def schema_bytes() -> bytes:
    """The bytes of ``headers.schema.yaml``."""
    return _file("headers.schema.yaml").read_bytes()


@cache
def schema_hash() -> str:
    """SHA-256 of the header schema; a lock vouches for headers only under the schema it was made with."""
    return hashlib.sha256(schema_bytes()).hexdigest()


@cache
def schema() -> dict[str, Any]:
    """The header schema, parsed."""
    import yaml

    loaded = yaml.safe_load(schema_bytes())
    assert isinstance(loaded, dict)
    return loaded


def template(name: str) -> str:
    """The text of a shipped template."""
    return _file(f"templates/{name}").read_text("utf-8")


def template_bytes(name: str) -> bytes:
    """The bytes of a shipped template."""
    return _file(f"templates/{name}").read_bytes()
