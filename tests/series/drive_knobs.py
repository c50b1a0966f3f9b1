"""vLLM's environment knobs: what each takes, and which are in the key of the compilation cache."""

from __future__ import annotations

import ast
import os
from collections import Counter
from pathlib import Path
from typing import Any

from knobs import RUNTIME_ONLY, SENTINEL, SPEED_KNOBS


def read(name: str, setting: str | None) -> Any:
    """The value of knob ``name`` when the environment has ``setting``, or the error as text; None when unknown."""
    import vllm.envs as envs

    if name not in envs.environment_variables:
        return None
    before = os.environ.pop(name, None)
    if setting is not None:
        os.environ[name] = setting
    try:
        return envs.environment_variables[name]()
    except ValueError as error:
        return f"error: {error}"
    finally:
        os.environ.pop(name, None)
        if before is not None:
            os.environ[name] = before


def factors(**settings: str) -> dict[str, Any]:
    """The factors of the key, with ``settings`` in the environment."""
    import vllm.envs as envs

    os.environ.update(settings)
    try:
        return envs.compile_factors()
    finally:
        for name in settings:
            del os.environ[name]


def registered_twice(path: Path) -> list[str]:
    """Knobs that the table in ``envs.py`` or its types name more than once."""
    names: Counter[tuple[str, str]] = Counter()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Dict):
            names.update(("table", key.value) for key in node.keys if isinstance(key, ast.Constant))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id.isupper():
            names[("types", node.target.id)] += 1
    return sorted(name for (_, name), count in names.items() if count > 1 and name.startswith("VLLM_"))


def collect() -> dict[str, Any]:
    """Everything about the knobs."""
    import vllm.envs as envs

    plain = factors()
    cases = {name: [None, *valid, *invalid] for name, (_, valid, invalid) in SPEED_KNOBS.items()}
    cases[SENTINEL] = [None, "0", "2.5", "-1", "nan", "inf", "soon", ""]
    return {
        "knob values": {name: {str(s): read(name, s) for s in settings} for name, settings in cases.items()},
        "knob types": {name: type(read(name, None)).__name__ for name in cases},
        "knobs listed": sorted(name for name in cases if name in dir(envs)),
        "knobs twice": registered_twice(Path(envs.__file__)),
        "factors": sorted(plain),
        "factors moved by": {
            name: [k for k, v in factors(**{name: setting}).items() if plain.get(k) != v]
            for name, setting in RUNTIME_ONLY.items()
        },
        "factors moved by a speed knob": {
            name: [k for k, v in factors(**{name: str(valid[-1])}).items() if plain.get(k) != v]
            for name, (_, valid, _) in SPEED_KNOBS.items()
        },
    }
