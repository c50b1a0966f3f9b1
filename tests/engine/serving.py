"""Servers of vLLM on a CPU, as processes of their own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

HERE = Path(__file__).parent
KEY = "sek"
CHUNK = 256
ENVIRONMENT = {
    "VLLM_TARGET_DEVICE": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}
# Chunks of a few hundred tokens: a prompt of a thousand is several steps.
# One process less than the default: the worker lives in the engine's.
COMMON = ["--distributed-executor-backend", "uni"]
COMMON += ["--enforce-eager", "--max-model-len", "2048", "--max-num-batched-tokens", str(CHUNK), "--max-num-seqs", "8"]
START = 300.0


def environment(tree: Path, scratch: Path, **more: str) -> dict[str, str]:
    """The environment of a process that runs the vLLM of ``tree``: nothing of the caller's knobs or keys."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("VLLM_") and k != "OPENAI_API_KEY"}
    paths = {"PYTHONPATH": f"{tree}:{HERE / 'site'}", "XDG_CACHE_HOME": str(scratch), "HOME": str(scratch)}
    return {**inherited, **ENVIRONMENT, **paths, **more}


def until(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Wait until ``condition`` holds; fail with ``what`` after ``seconds``."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, f"after {seconds:g} s: {what}"
        time.sleep(0.05)


@dataclass
class Server:
    """One server: where it listens, what it was started with, what it logged."""

    tree: Path
    model: Path
    scratch: Path
    arguments: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    key: str | None = None

    def __post_init__(self) -> None:
        self.scratch.mkdir(parents=True)
        self.log_path = self.scratch / "log"
        self.hold_path = self.scratch / "hold"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        words = ["--model", str(self.model), "--host", "127.0.0.1", "--port", str(self.port), *COMMON, *self.arguments]
        if self.key is not None:
            words += ["--api-key", self.key]
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *words],
                env=environment(self.tree, self.scratch, **self.settings),
                cwd=self.scratch,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def healthy(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.log()[-6000:]}")
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/health", timeout=5).status_code == 200
        return False

    def wait(self) -> None:
        try:
            until(self.healthy, START, "the server is not up")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log()[-6000:]}") from None

    def stop(self) -> None:
        self.release()
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            # Its own session: the engine's process goes with it, and nothing else.
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def client(self, *, keyed: bool = True, timeout: float = 60) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.key}"} if keyed and self.key else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=timeout)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """The engine's next step does not end before the block does.  For a server started with a hold."""
        self.hold_path.touch()
        try:
            yield
        finally:
            self.release()

    def release(self) -> None:
        self.hold_path.unlink(missing_ok=True)

    def metric(self, name: str) -> float:
        """The sum of the samples of one metric."""
        with self.client() as client:
            text = client.get("/metrics").text
        found = re.findall(rf"^{re.escape(name)}(?:\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE)
        assert found, f"no metric {name}"
        return sum(map(float, found))

    def idle(self) -> bool:
        """Whether no request runs or waits."""
        return self.metric("vllm:num_requests_running") == self.metric("vllm:num_requests_waiting") == 0
