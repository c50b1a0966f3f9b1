"""Two trees, pristine and patched; each is driven once, in a process of its own, and the tests compare what they saw.

Two versions of one package cannot be imported into one process, and importing vLLM takes seconds, so ``driver.py`` collects
everything in one go and prints it as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from seen import Seen

HERE = Path(__file__).parent
ENVIRONMENT = {
    "VLLM_TARGET_DEVICE": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_LOGGING_LEVEL": "INFO",
}


def tree(name: str) -> Path:
    variable = f"PATCHFORGE_{name.upper()}_TREE"
    value = os.environ.get(variable)
    if not value:
        pytest.fail(f"{variable} is not set: run 'nox -s series', which makes both trees", pytrace=False)
    assert (Path(value) / "vllm").is_dir(), f"{variable}: {value} has no vllm/"
    return Path(value)


def drive(name: str, scratch: Path) -> dict[str, Any]:
    work = scratch / name
    work.mkdir()
    env = {**os.environ, **ENVIRONMENT, "PYTHONPATH": f"{tree(name)}:{HERE / 'site'}", "XDG_CACHE_HOME": str(work)}
    env.pop("VLLM_API_KEY", None)
    out = work / "seen.json"
    done = subprocess.run(
        [sys.executable, str(HERE / "driver.py"), str(work), str(out)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"driving the {name} tree failed:\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}", pytrace=False)
    return json.loads(out.read_bytes())


@pytest.fixture(scope="session")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    scratch = tmp_path_factory.mktemp("drive")
    with ThreadPoolExecutor(2) as pool:
        pristine, patched = pool.map(lambda name: drive(name, scratch), ("pristine", "patched"))
    return Seen(pristine, patched)
