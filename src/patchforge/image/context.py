"""A self-contained build context: files that anybody with a builder can turn into the image."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from patchforge import resources
from patchforge.image import facts, tool
from patchforge.image.checks import Inputs
from patchforge.image.layer import MTIME
from patchforge.image.requirements import Locked
from patchforge.image.toollayer import HOME, PROJECT, USER, USER_HOME, project_files, script
from patchforge.series.pin import normalize

ENGINE = "/opt/engine"
_TEMPLATES = {
    "Dockerfile": "Dockerfile",
    ".dockerignore": "dockerignore",
    "compose.yaml": "compose.yaml",
    ".env.example": "env.example",
    "kubernetes/deployment.yaml": "kubernetes/deployment.yaml",
    "kubernetes/leaderworkerset.yaml": "kubernetes/leaderworkerset.yaml",
}
EXECUTABLE = frozenset({"bin/patchforge"})


def build_context(inputs: Inputs, name: str, queue: str, offline: bool = False) -> dict[str, bytes]:
    """Every file of the context by its path; ``name`` is the image's, ``queue`` Kueue's local queue.

    With ``offline`` it expects every locked wheel in ``wheels/`` too.  The same inputs give the same bytes.
    """
    values = {**_values(inputs, name, queue), "offline": offline}
    out = {path: render(template, values) for path, template in _TEMPLATES.items()}
    out |= {f"project/{path}": data for path, data in project_files(inputs.series).items()}
    out["bin/patchforge"] = script(f"{ENGINE}/bin/python")
    out[f"wheels/{tool.wheel_name()}"] = tool.make_wheel()
    own = normalize(inputs.flavor.distribution)
    pinned = {wheel.sha256 for wheel in inputs.flavor.wheels}
    packages = inputs.engine.packages
    out["locks/dependencies.txt"] = _lines(p for n, p in sorted(packages.items()) if n != own)
    out["locks/distribution.txt"] = _lines([packages[own]], pinned)
    out["locks/tool.txt"] = _lines(p for _, p in sorted(inputs.tool.packages.items()))
    return out


def manifests(inputs: Inputs, image: str, queue: str) -> dict[str, bytes]:
    """The files that run an image which is built already: ``image`` names it, by digest."""
    values = _values(inputs, image, queue)
    wanted = ("kubernetes/deployment.yaml", "kubernetes/leaderworkerset.yaml")
    return {path: render(_TEMPLATES[path], values) for path in wanted}


def render(template: str, values: Mapping[str, Any]) -> bytes:
    """The shipped template ``template`` filled with ``values``.  A name it does not know is an error."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    loader = FunctionLoader(lambda name: resources.template(f"image/{name}"))
    # Not a web page: the files quote their own values, as JSON, which YAML and Dockerfiles read.
    made = Environment(loader=loader, undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701
    made.filters["tojson"] = _json
    return made.get_template(template).render(**values).encode()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)


def _values(inputs: Inputs, name: str, queue: str) -> dict[str, Any]:
    pin = inputs.series.pin
    assert pin is not None
    gpu = inputs.flavor.name != "cpu"
    stack = re.sub(r"[^a-z0-9-]+", "-", f"{pin.distribution}-{inputs.flavor.name}".lower()).strip("-")
    return {
        "base": inputs.image.base,
        "apt": inputs.image.apt,
        "mtime": MTIME,
        "user": USER,
        "user_home": USER_HOME,
        "home": HOME,
        "project": PROJECT,
        "engine": ENGINE,
        "tool_wheel": tool.wheel_name(),
        "environment": facts.environment(inputs, "", f"{ENGINE}/bin"),
        "labels": facts.labels(inputs),
        "interval": facts.INTERVAL_S,
        "timeout": facts.TIMEOUT_S,
        "retries": facts.RETRIES,
        "start_period": facts.START_PERIOD_S,
        "health": list(facts.HEALTH),
        "entrypoint": list(facts.ENTRYPOINT),
        "image": name,
        "platform": inputs.image.platform,
        "stack": stack,
        "version": pin.version,
        "modes": ("single", "batch") if gpu else ("cpu",),
        "queue": queue,
        "gpu": gpu,
    }


def _lines(packages: Any, only: set[str] | None = None) -> bytes:
    """The lock's lines; with ``only``, no other hash."""
    out = []
    for package in packages:
        assert isinstance(package, Locked)
        hashes = [h for h in package.hashes if only is None or h in only]
        out.append(f"{package.name}=={package.version} \\\n" + " \\\n".join(f"    --hash=sha256:{h}" for h in hashes))
    return ("\n".join(out) + "\n").encode()
