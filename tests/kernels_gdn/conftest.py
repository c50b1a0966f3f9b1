"""Two trees, pristine and patched; each runs the kernels once, in a process of its own and in Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ENVIRONMENT = {
    "VLLM_TARGET_DEVICE": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}


@dataclass(frozen=True)
class Pair:
    """What a driver saw of each tree."""

    pristine: dict[str, Any]
    patched: dict[str, Any]


def tree(name: str) -> Path:
    variable = f"PATCHFORGE_{name.upper()}_TREE"
    value = os.environ.get(variable)
    if not value:
        pytest.fail(f"{variable} is not set: run 'nox -s kernels_gdn', which makes both trees", pytrace=False)
    assert (Path(value) / "vllm").is_dir(), f"{variable}: {value} has no vllm/"
    return Path(value)


def drive(driver: str, name: str, scratch: Path, *words: str) -> dict[str, Any]:
    import torch

    out = scratch / f"{name}.pt"
    env = {**os.environ, **ENVIRONMENT, "PYTHONPATH": f"{tree(name)}:{HERE.parent / 'series' / 'site'}"}
    for variable in [variable for variable in env if variable.startswith("VLLM_") and variable not in ENVIRONMENT]:
        del env[variable]
    command = [sys.executable, str(HERE / driver), name, str(out), *words]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"{driver} on the {name} tree failed:\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}", pytrace=False)
    return torch.load(out, weights_only=True)


@pytest.fixture(scope="session")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Pair]:
    """Runs a driver of this directory on both trees, once a session, with further words if there are any."""
    seen: dict[tuple[str, ...], Pair] = {}

    def run(*command: str) -> Pair:
        if command not in seen:
            driver, *words = command
            scratch = tmp_path_factory.mktemp(driver)
            with ThreadPoolExecutor(2) as pool:
                each = pool.map(lambda name: drive(driver, name, scratch, *words), ("pristine", "patched"))
                seen[command] = Pair(*each)
        return seen[command]

    return run
