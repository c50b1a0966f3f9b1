"""What an image says about itself: labels, annotations, environment, start; and the names of its hashes."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from patchforge import __version__
from patchforge.headers import Header
from patchforge.image.checks import Inputs
from patchforge.image.toollayer import HOME, PROJECT, USER, USER_HOME
from patchforge.series.lock import dump_lock
from patchforge.series.parsed import header_of

PREFIX = "io.patchforge"
ENTRYPOINT = ("patchforge", "serve")
HEALTH = ("patchforge", "health", "--quiet")
INTERVAL_S, TIMEOUT_S, RETRIES = 30, 10, 3
START_PERIOD_S = 900  # a first start compiles kernels and captures graphs before it answers


def created(inputs: Inputs) -> str:
    """The image's date, RFC 3339, from the pin and from no clock."""
    return datetime.fromtimestamp(inputs.image.epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def lock_sha256(inputs: Inputs) -> str:
    """SHA-256 of ``lock.toml`` as patchforge writes it."""
    assert inputs.series.lock is not None
    return hashlib.sha256(dump_lock(inputs.series.lock)).hexdigest()


def tree_sha256(inputs: Inputs) -> str:
    """One hash over path and content of every touched file after the series."""
    assert inputs.series.lock is not None
    total = hashlib.sha256(b"patchforge tree 1\n")
    for locked in inputs.series.lock.files:
        total.update(f"{locked.after or 'absent'} {locked.path}\n".encode())
    return total.hexdigest()


def default_name(inputs: Inputs) -> str:
    """``HOST/PATH:TAG`` of an image nobody has named."""
    pin = inputs.series.pin
    assert pin is not None
    return f"localhost/{pin.distribution.lower()}-patched:{pin.version.replace('+', '-')}-{inputs.flavor.name.lower()}"


def labels(inputs: Inputs) -> dict[str, str]:
    """The labels, which ``inspect`` shows without starting anything."""
    pin = inputs.series.pin
    assert pin is not None
    standard = "org.opencontainers.image"
    return {
        f"{standard}.title": f"{pin.distribution} {pin.version}, patched",
        f"{standard}.version": pin.version,
        f"{standard}.revision": inputs.source.revision,
        f"{standard}.created": created(inputs),
        f"{standard}.base.name": inputs.image.base.partition("@")[0],
        f"{standard}.base.digest": inputs.image.digest,
        f"{PREFIX}.pin": pin.id,
        f"{PREFIX}.flavor": inputs.flavor.name,
        f"{PREFIX}.patches": str(len(inputs.series.patches)),
        f"{PREFIX}.series-sha256": inputs.series.sha256,
        f"{PREFIX}.lock-sha256": lock_sha256(inputs),
        f"{PREFIX}.tree-sha256": tree_sha256(inputs),
        f"{PREFIX}.requirements-sha256": inputs.engine.sha256,
        f"{PREFIX}.tool-version": __version__,
        f"{PREFIX}.dirty": "true" if inputs.allowed_dirty else "false",
    }


def headers(inputs: Inputs) -> dict[str, Header]:
    """The header of every patch, by name, in series order."""
    return {file.name: header_of(file) for file in inputs.series.patches}


def annotation_lines(inputs: Inputs) -> dict[str, str]:
    """One line for every patch: what it does and where it comes from."""
    out = {f"{PREFIX}.series-sha256": inputs.series.sha256}
    for number, (name, header) in enumerate(headers(inputs).items(), 1):
        words = " ".join(f"{header.get('Kind')}: {header.get('What')} [{header.get('Upstream')}]".split())
        out[f"{PREFIX}.patch.{number:03d}.{name}"] = words[:500]
    return out


def environment(inputs: Inputs, path: str, engine_bin: str) -> dict[str, str]:
    """What the image sets; ``path`` is the base's search path."""
    places = [f"/{HOME}/bin", engine_bin]
    places += [
        p
        for p in (path or "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").split(":")
        if p not in places
    ]
    return {"HOME": f"/{USER_HOME}", "PATH": ":".join(places), **dict(sorted(inputs.image.env.items()))}


def start(inputs: Inputs, config: dict[str, Any], engine_bin: str) -> dict[str, Any]:
    """``config`` (of the base) with our user, directory, environment, start, health check and labels."""
    old = dict(item.partition("=")[::2] for item in config.get("Env") or [])
    env = {**old, **environment(inputs, old.get("PATH", ""), engine_bin)}
    second = 1_000_000_000
    return {
        **config,
        "User": f"{USER}:{USER}",
        "WorkingDir": f"/{PROJECT}",
        "Env": [f"{name}={value}" for name, value in env.items()],
        "Entrypoint": list(ENTRYPOINT),
        "Cmd": [],
        "Healthcheck": {
            "Test": ["CMD", *HEALTH],
            "Interval": INTERVAL_S * second,
            "Timeout": TIMEOUT_S * second,
            "StartPeriod": START_PERIOD_S * second,
            "Retries": RETRIES,
        },
        "StopSignal": "SIGTERM",
        "Labels": {**(config.get("Labels") or {}), **labels(inputs)},
    }
