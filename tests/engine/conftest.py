"""The servers, started together once per session: pristine beside patched, two models, and with a key and all knobs on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from launching import HERE, Launcher, until

from serving import KEY, Server

EDGES = "edges"
PLAIN = "plain"
KEYED = "pristine keyed"
NAMES = [f"{tree} {model}" for tree in ("pristine", "patched") for model in ("dense", "hybrid")]
ALIASES = ["--served-model-name", "hq-27b", "second", "--root-path", "/proxied", "--enable-prompt-tokens-details"]


def tree(name: str) -> Path:
    variable = f"PATCHFORGE_{name.upper()}_ENGINE"
    value = os.environ.get(variable)
    if not value:
        pytest.fail(f"{variable} is not set: run 'nox -s engine', which makes both trees", pytrace=False)
    assert list((Path(value) / "vllm").glob("_C*.so")), f"{variable}: {value} has no CPU build of vLLM"
    return Path(value)


@pytest.fixture(scope="session")
def trees() -> dict[str, Path]:
    return {name: tree(name) for name in ("pristine", "patched")}


@pytest.fixture(scope="session")
def launchers(trees: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Launcher]]:
    scratch = tmp_path_factory.mktemp("launchers")
    made: dict[str, Launcher] = {}
    try:
        for name, where in trees.items():
            made[name] = Launcher(where, scratch / name)
        yield made
    finally:
        for launcher in made.values():
            launcher.close()


@pytest.fixture(scope="session")
def models(launchers: dict[str, Launcher], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "made"
    done = subprocess.run(
        [sys.executable, str(HERE / "tiny.py"), str(folder)],
        env=launchers["pristine"].environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


@pytest.fixture(scope="session")
def servers(
    launchers: dict[str, Launcher], models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Server]]:
    scratch = tmp_path_factory.mktemp("servers")
    # Started in the ordinary way, so first.  Nobody waits for it here: it takes longest.
    made = {PLAIN: Server(launchers["patched"], models / "tiny-dense", scratch / PLAIN, plain=True)}
    edges = Server(
        launchers["patched"],
        models / "tiny-dense",
        scratch / EDGES,
        ALIASES,
        {"VLLM_ENGINE_STALL_SENTINEL_S": "2", "VLLM_ENGINE_COMPLETION_LOG": "1"},
        KEY,
    )
    edges.settings["PATCHFORGE_TEST_HOLD"] = str(edges.holds)
    made[EDGES] = edges
    for name in NAMES:
        which, model = name.split()
        # The hybrid caches no prefixes unless told to.
        more = ["--enable-prefix-caching", "--mamba-cache-mode", "align"] if model == "hybrid" else []
        made[name] = Server(launchers[which], models / f"tiny-{model}", scratch / name.replace(" ", "-"), more)
    made[KEYED] = Server(launchers["pristine"], models / "tiny-dense", scratch / "keyed", ALIASES, key=KEY)
    try:
        for server in made.values():
            server.start()
        for name, server in made.items():
            if name != PLAIN:
                server.wait()
        yield made
    finally:
        for server in made.values():
            server.ask_to_stop()
        for server in made.values():
            server.stop()


@pytest.fixture(scope="session")
def edges(servers: dict[str, Server]) -> Server:
    """The patched dense model with a key, every knob of the wave on, and steps that can be held."""
    return servers[EDGES]


@pytest.fixture(autouse=True)
def no_request_is_left(servers: dict[str, Server]) -> Iterator[None]:
    """After each test, no server has a request that runs or waits."""
    yield
    for name, server in servers.items():
        if server.up:
            until(server.idle, 60, f"{name} still has requests")
