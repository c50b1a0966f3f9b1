"""Servers of vLLM on a CPU, as processes of their own."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from launching import Launcher, Running, ask_to_end, end, until

KEY = "sek"
OTHER_KEY = "other"
CHUNK = 256
# Chunks of a few hundred tokens: a prompt of a thousand is several steps.
COMMON = ["--enforce-eager", "--max-model-len", "2048", "--max-num-batched-tokens", str(CHUNK), "--max-num-seqs", "8"]
START = 300.0


@dataclass
class Server:
    """One server: where it listens, what it was started with, what it logged."""

    launcher: Launcher
    model: Path
    scratch: Path
    arguments: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    key: str | None = None
    plain: bool = False

    def __post_init__(self) -> None:
        self.scratch.mkdir(parents=True)
        self.log_path = self.scratch / "log"
        self.holds = self.scratch / "hold"
        self.holds.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.process: Running | None = None
        self.up = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        words = ["serve", str(self.model), "--host", "127.0.0.1", "--port", str(self.port), *COMMON, *self.arguments]
        if self.key is not None:
            words += ["--api-key", self.key, OTHER_KEY]
        start = self.launcher.plain if self.plain else self.launcher.copy
        self.process = start(words, self.settings, self.scratch, self.log_path)

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a GET with the key, cheaper than a client's."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.key}"} if self.key else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def healthy(self) -> bool:
        assert self.process is not None
        status = self.process.poll()
        assert status is None, f"the server ended with {status}"
        with contextlib.suppress(OSError):
            return self.get("/health")[0] == 200
        return False

    def wait(self) -> None:
        try:
            until(self.healthy, START, "the server is not up")
            self.up = True
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log()[-6000:]}") from None

    def ask_to_stop(self) -> None:
        self.release()
        if self.process is not None:
            ask_to_end(self.process)

    def stop(self) -> None:
        self.ask_to_stop()
        if self.process is not None:
            # One that was never up has nothing to finish.
            end(self.process, 20 if self.up else 0)

    def log(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def client(self, *, keyed: bool = True, timeout: float = 60) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.key}"} if keyed and self.key else {}
        # Certificates are of no use here, and take long to load.
        return httpx.Client(base_url=self.url, headers=headers, timeout=timeout, verify=False)

    @contextlib.contextmanager
    def held(self, where: str = "engine") -> Iterator[None]:
        """The next step does not end before the block does: it hangs in the ``engine`` or in the ``worker``."""
        (self.holds / where).touch()
        try:
            yield
        finally:
            self.release()

    def release(self) -> None:
        for hold in self.holds.iterdir():
            hold.unlink()

    def metrics(self, *names: str) -> list[float]:
        """The sums of the samples of some metrics, of one moment."""
        status, text = self.get("/metrics")
        assert status == 200
        sums = []
        for name in names:
            found = re.findall(rf"^{re.escape(name)}(?:\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE)
            assert found, f"no metric {name}"
            sums.append(sum(map(float, found)))
        return sums

    def idle(self) -> bool:
        """Whether no request runs or waits."""
        return self.metrics("vllm:num_requests_running", "vllm:num_requests_waiting") == [0, 0]
