"""Engines of both trees, each case once, in a process of its own and two at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
LOOKUP = {
    "VLLM_DFLASH2_LOOKUP": "1",
    **{f"VLLM_DFLASH2_LOOKUP_{name}": "3" for name in ("NMIN", "NSTRONG", "NMIN_TAIL", "LONGMIN")},
}
# By what tests call it: the tree, the case, the knobs.  The longest first.
RUNS: dict[str, tuple[str, str, dict[str, str]]] = {
    "hybrid, mtp": ("patched", "hybrid, mtp", {"VLLM_SPEC_DECODE_ATTN": "1"}),
    "hybrid": ("patched", "hybrid", {}),
    "int8, lookup": ("patched", "dense, int8, dflash", {**LOOKUP, "VLLM_SPEC_DECODE_ATTN": "1"}),
    "int8": ("patched", "dense, int8", {}),
    "dflash, pristine": ("pristine", "dense, dflash", {}),
    "dflash, no knobs": ("patched", "dense, dflash", {}),
    "lookup": ("patched", "dense, dflash", {**LOOKUP, "VLLM_DFLASH2_LOOKUP_ADAPTIVE": "0"}),
    "plain, pristine": ("pristine", "dense", {}),
}


def tree(name: str) -> str:
    variable = f"PATCHFORGE_{name.upper()}_TREE"
    value = os.environ.get(variable)
    if not value:
        pytest.fail(f"{variable} is not set: run 'nox -s cardless', which makes both trees", pytrace=False)
    return value


@pytest.fixture(scope="session")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each run generated, and its counters."""
    import torch

    scratch = tmp_path_factory.mktemp("cardless")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("VLLM_")}
    inherited |= {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "OMP_NUM_THREADS": "1"}

    def run(name: str) -> dict[str, Any]:
        which, case, knobs = RUNS[name]
        out = scratch / f"{name}.pt"
        env = {**inherited, **knobs, "PYTHONPATH": f"{tree(which)}:{HERE.parent / 'series' / 'site'}"}
        env["XDG_CACHE_HOME"] = str(scratch / "cache")
        command = [sys.executable, str(HERE / "drive.py"), case, str(out)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=1200)
        if done.returncode:
            pytest.fail(f"{name} failed:\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}", pytrace=False)
        return torch.load(out, weights_only=True)

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(RUNS, pool.map(run, RUNS), strict=True))
