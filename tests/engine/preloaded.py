"""A process that has vLLM imported and starts ``vllm`` commands as copies of itself: ``python preloaded.py``.

Importing vLLM takes 15 to 20 s of a core, a server does it four times (front end, look at the model's class, engine, worker) and
``vllm bench serve`` once more.  Each line of standard input is a JSON order, each line of standard output its answer:

- ``{"do": "start", "words": [...], "settings": {...}, "folder": ..., "log": ...}`` runs ``vllm WORDS`` in a process group of its own;
  the answer is its process id
- ``{"do": "poll", "pid": ...}``: the answer is its exit status, ``null`` while it runs

A copy differs from a process started alone in that its engine and worker are forked as well, and that it looks at the model's class
in place.  One server of the tests is started in the ordinary way and compared with its copy.

When the setting ``PATCHFORGE_TEST_HOLD`` names a folder, a step of that server waits for as long as the folder has a file ``engine`` (in
the engine's process) or ``worker`` (in the worker's).
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import sys
import time
import traceback
from typing import Any

MODULES = [
    "uvloop",
    "vllm.entrypoints.cli.main",
    "vllm.entrypoints.cli.openai",
    "vllm.entrypoints.cli.serve",
    "vllm.entrypoints.cli.launch",
    "vllm.entrypoints.cli.benchmark.main",
    "vllm.entrypoints.cli.benchmark.serve",
    "vllm.entrypoints.cli.collect_env",
    "vllm.entrypoints.cli.preload",
    "vllm.entrypoints.cli.run_batch",
    "vllm.entrypoints.cli.snapshot",
    "vllm.benchmarks.serve",
    "vllm.entrypoints.openai.api_server",
    "vllm.v1.engine.async_llm",
    "vllm.v1.engine.core",
    "vllm.v1.executor.multiproc_executor",
    "vllm.v1.worker.cpu_worker",
    "vllm.v1.worker.cpu_model_runner",
]
ARCHITECTURES = ["Qwen3ForCausalLM", "Qwen3_5ForCausalLM"]


def preload() -> None:
    """Import what servers import, and write down, where vLLM looks first, what the models' classes can do."""
    for name in MODULES:
        importlib.import_module(name)
    registry = importlib.import_module("vllm.model_executor.models.registry")
    registry._run_in_subprocess = lambda look: look()
    for name in ARCHITECTURES:
        registry.ModelRegistry.models[name].inspect_model_cls()
    real = multiprocessing.get_context
    multiprocessing.get_context = lambda method=None: real("fork")  # type: ignore[assignment]


def held_by_the_test(path: str) -> None:
    while os.path.exists(path):
        time.sleep(0.02)


def make_holdable(module: str, owner: str, path: str) -> None:
    """Let the steps of a class wait while a file is there."""
    found = getattr(importlib.import_module(module), owner)
    step = found.execute_model

    def execute_model(*args: Any, **kwargs: Any) -> Any:
        held_by_the_test(path)
        return step(*args, **kwargs)

    found.execute_model = execute_model


def become(order: dict[str, Any]) -> int:
    """In the copy: run the command, its output in the log."""
    os.setsid()
    os.chdir(order["folder"])
    os.environ.update(order["settings"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for target, source in ((0, nothing), (1, log), (2, log)):
        os.dup2(source, target)
    if hold := os.environ.get("PATCHFORGE_TEST_HOLD"):
        make_holdable("vllm.v1.executor.multiproc_executor", "MultiprocExecutor", f"{hold}/engine")
        make_holdable("vllm.v1.worker.cpu_worker", "CPUWorker", f"{hold}/worker")
    sys.argv = ["vllm", *order["words"]]
    try:
        importlib.import_module("vllm.entrypoints.cli.main").main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what an import prints is no answer
    preload()
    print("ready", file=answers)
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "poll":
            pid, status = os.waitpid(order["pid"], os.WNOHANG)
            print(json.dumps(os.waitstatus_to_exitcode(status) if pid else None), file=answers)
            continue
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                answers.close()
                status = become(order)
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(status)
        print(pid, file=answers)


if __name__ == "__main__":
    main()
