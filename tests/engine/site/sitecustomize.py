"""For the servers of the engine tests: torchvision beside a CPU build of torch, and a step of the engine that can be held.

When ``PATCHFORGE_TEST_HOLD`` names a path, the worker waits, before each step, for as long as a file is there.
"""

import importlib.util
import os
import runpy
import sys
import time
from importlib.abc import MetaPathFinder
from pathlib import Path

runpy.run_path(str(Path(__file__).parents[2] / "series" / "site" / "sitecustomize.py"))

WORKER = "vllm.v1.worker.cpu_worker"


def held_by_the_test(path):
    while os.path.exists(path):
        time.sleep(0.02)


class _Hold(MetaPathFinder):
    """Wraps the worker's step when its module is imported."""

    def __init__(self, path):
        self.path = path

    def find_spec(self, fullname, path=None, target=None):
        if fullname != WORKER:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            step = module.CPUWorker.execute_model

            def execute_model(worker, *args, **kwargs):
                held_by_the_test(self.path)
                return step(worker, *args, **kwargs)

            module.CPUWorker.execute_model = execute_model

        spec.loader.exec_module = exec_module
        return spec


if os.environ.get("PATCHFORGE_TEST_HOLD"):
    sys.meta_path.insert(0, _Hold(os.environ["PATCHFORGE_TEST_HOLD"]))
