"""``vllm`` commands of one tree, started in the ordinary way or, quicker, as copies of a process that has it imported."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

HERE = Path(__file__).parent
ENVIRONMENT = {
    "VLLM_TARGET_DEVICE": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    # No AMX, which ends in an illegal instruction on some virtual machines: as in series/site, for the matrix products.
    "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}


def until(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Wait until ``condition`` holds; fail with ``what`` after ``seconds``."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, f"after {seconds:g} s: {what}"
        time.sleep(0.02)


class Running(Protocol):
    """What was started, the leader of a process group of its own."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...


def ask_to_end(process: Running) -> None:
    """Ask a process to end, and wait for nothing."""
    with contextlib.suppress(ProcessLookupError):
        if process.poll() is None:
            os.kill(process.pid, signal.SIGTERM)


def end(process: Running, patience: float = 20) -> None:
    """End a process and its group: asked to first, and after ``patience`` seconds not asked."""
    ask_to_end(process)
    with contextlib.suppress(AssertionError):
        until(lambda: process.poll() is not None, patience, "it does not end")
    with contextlib.suppress(ProcessLookupError):
        # What it started goes with it, and nothing else.
        os.killpg(process.pid, signal.SIGKILL)
    until(lambda: process.poll() is not None, 20, "it was killed and is still there")


class Copy:
    """A command that runs in a copy of the process that has vLLM imported."""

    def __init__(self, launcher: Launcher, pid: int) -> None:
        self.launcher, self.pid = launcher, pid
        self.status: int | None = None

    def poll(self) -> int | None:
        if self.status is None:
            self.status = self.launcher.order(do="poll", pid=self.pid)
        return self.status


class Launcher:
    """Starts the ``vllm`` of one tree."""

    def __init__(self, tree: Path, scratch: Path) -> None:
        """Begin to import it; :meth:`wait` for the end of that before a copy is asked for."""
        scratch.mkdir(parents=True)
        self.tree, self.scratch, self.ready = tree, scratch, False
        # The command asks for the version of a distribution called vllm.  The CPU build has another name, and vLLM tells by the
        # version that it is one.
        (built,) = tree.glob("vllm_cpu-*.dist-info")
        version = built.name.removesuffix(".dist-info").partition("-")[2] + "+cpu"
        alias = scratch / "alias" / f"vllm-{version}.dist-info"
        alias.mkdir(parents=True)
        (alias / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("VLLM_") and k != "OPENAI_API_KEY"}
        paths = os.pathsep.join(map(str, (tree, HERE.parent / "series" / "site", alias.parent)))
        home = {"PYTHONPATH": paths, "XDG_CACHE_HOME": str(scratch), "HOME": str(scratch)}
        self.environment = {**inherited, **ENVIRONMENT, **home}
        self.errors = (scratch / "preloaded.log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "preloaded.py")],
            env=self.environment,
            cwd=scratch,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            start_new_session=True,
        )

    def answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"no copy can be started of {self.tree}:\n{Path(self.errors.name).read_text()[-4000:]}"
        return line.strip()

    def wait(self) -> None:
        if not self.ready:
            assert self.answer() == "ready"
            self.ready = True

    def order(self, **order: Any) -> Any:
        self.wait()
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.answer())

    def copy(self, words: list[str], settings: dict[str, str], folder: Path, log: Path) -> Running:
        """Run ``vllm WORDS`` in a copy."""
        pid = self.order(do="start", words=words, settings=settings, folder=str(folder), log=str(log))
        return Copy(self, pid)

    def plain(self, words: list[str], settings: dict[str, str], folder: Path, log: Path) -> Running:
        """Run ``vllm WORDS`` as a process of its own, as its console script does."""
        with log.open("wb") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "vllm.entrypoints.cli.main", *words],
                env={**self.environment, **settings},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def close(self) -> None:
        end(self.process)
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            assert stream is not None
            stream.close()
