"""The flagship's cpu image, built for real by buildah, run, asked for tokens, and stopped."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from builders import ROOT, Containers, needs, own_project, patchforge
from rooted import Rooted, command_lines, image_config

from patchforge.series.lock import read_lock

KEY = secrets.token_hex(24)
START_S = 600.0


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory, debian: Path, store: Path) -> Iterator[Any]:
    needs("unshare", "chroot", "mount")
    project = own_project(tmp_path_factory.mktemp("cpu") / "project", "cpu", debian)
    words = ["build-image", "--flavor", "cpu", "--backend", "buildah", "--wheels", "--format", "json"]
    # The builder has the key in its environment, as a machine that serves may.
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("VLLM_API_KEY", KEY)
        done = patchforge(*words, "--project", str(project))
    yield json.loads(done.stdout)
    shutil.rmtree(project)


@pytest.fixture(scope="module")
def rooted(image: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rooted]:
    """The image's root, with a small model beside it that the image's own interpreter made."""
    models = tmp_path_factory.mktemp("models")
    for folder in (models, *models.parents):
        if "pytest" in str(folder):
            folder.chmod(0o755)  # the image's user is nobody here
    containers = Containers([])
    name = containers.start(image["name"])
    mounted = subprocess.run(["buildah", "mount", name], check=True, capture_output=True, text=True).stdout.strip()
    made = Rooted(Path(mounted), image_config(Path(image["out"]) / "layout")["config"], models)
    shutil.copy(ROOT / "tests/engine/tiny.py", models / "tiny.py")
    code = "import sys; sys.path.insert(0, '/models'); import tiny, pathlib; tiny.main(pathlib.Path('/models/made'))"
    done = made.run("python", "-c", code, user="0:0", writable=True)
    assert done.returncode == 0, done.stderr[-3000:]
    for path in models.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)  # weights are saved for their owner alone
    yield made
    subprocess.run(["buildah", "rm", name], check=False, capture_output=True)


@dataclass
class Serving:
    """A server that runs in the image."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def ask(self, method: str, path: str, body: Any = None, key: str | None = KEY) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"Content-Type": "application/json"} | ({} if key is None else {"Authorization": f"Bearer {key}"})
        with contextlib.closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    def wait(self) -> None:
        give_up = time.monotonic() + START_S
        while time.monotonic() < give_up:
            assert self.process.poll() is None, self.log.read_text()[-4000:]
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.ask("GET", "/health", key=None)[0] == 200:
                    return
            time.sleep(0.5)
        raise AssertionError(f"not up after {START_S:g} s:\n{self.log.read_text()[-4000:]}")


# Not in bfloat16: the release's CPU attention with AMX, which that takes, ends in an illegal instruction on some virtual machines.
SETTINGS = {
    "MODEL": "/models/made/tiny-dense",
    "HOST": "0.0.0.0",
    "MAX_LEN": "1024",
    "MAX_SEQS": "4",
    "THREADS": "nobind",
    "EXTRA_ARGS": "--enforce-eager --dtype float32",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}


@pytest.fixture(scope="module")
def server(rooted: Rooted, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("log") / "server.log"
    with log.open("wb") as stream:
        process = rooted.start("cpu", log=stream, PORT=str(port), VLLM_API_KEY=KEY, **SETTINGS)
    made = Serving(process, port, log)
    try:
        made.wait()
        yield made
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


PROMPT = {"model": "small", "prompt": "the quick brown fox", "max_tokens": 8, "temperature": 0, "ignore_eos": True}


def test_the_image_is_what_its_labels_say(image: Any, rooted: Rooted) -> None:
    labels = rooted.config["Labels"]
    assert labels["io.patchforge.patches"] == str(len(image["patches"]))
    assert labels["io.patchforge.flavor"] == "cpu"
    assert labels["io.patchforge.dirty"] == "false"
    assert rooted.config["Entrypoint"] == ["patchforge", "serve"]
    assert rooted.config["User"] == "65532:65532"
    said = rooted.run("patchforge", "verify", "--full", "--format", "json")
    assert said.returncode == 0, said.stdout + said.stderr
    assert {p["result"] for p in json.loads(said.stdout)["patches"]} == {"applied"}


def test_it_runs_as_nobody_and_nothing_of_it_can_be_written(rooted: Rooted) -> None:
    assert rooted.run("id", "-u").stdout.strip() == "65532"
    for path in ("/opt/patchforge/project/x", "/opt/engine/x", "/models/x", "/x"):
        assert rooted.run("touch", path).returncode != 0, path
    assert rooted.run("touch", "/home/serve/x", "/tmp/x").returncode == 0


def test_tokens_with_the_key(server: Serving) -> None:
    status, answer = server.ask("POST", "/v1/completions", PROMPT)
    assert status == 200, answer
    assert answer["usage"]["completion_tokens"] == 8
    assert answer["choices"][0]["text"]
    chat = {"model": "small", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
    status, answer = server.ask("POST", "/v1/chat/completions", chat)
    assert status == 200, answer
    assert answer["usage"]["completion_tokens"] >= 1


@pytest.mark.parametrize("key", [None, "wrong", KEY[:-1]], ids=["none", "wrong", "cut"])
def test_401_without_the_key(server: Serving, key: str | None) -> None:
    for method, path, body in (
        ("POST", "/v1/completions", PROMPT),
        ("GET", "/v1/models", None),
        ("POST", "/tokenize", {"model": "small", "prompt": "x"}),
        ("GET", "/metrics", None),
    ):
        assert server.ask(method, path, body, key)[0] == 401, path
    assert server.ask("GET", "/health", key=key)[0] == 200


def test_the_health_check_of_the_image(server: Serving, rooted: Rooted) -> None:
    check = ["patchforge", "health", "--quiet"]
    well = rooted.run(*check, PORT=str(server.port), HOST="0.0.0.0")
    assert (well.returncode, well.stdout, well.stderr) == (0, "", "")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert rooted.run(*check, PORT=str(free.getsockname()[1])).returncode == 1


def test_the_key_is_in_no_command_line_and_no_log(server: Serving) -> None:
    shown = command_lines()
    assert "--served-model-name" in shown, "the server is among them"
    assert KEY not in shown
    said = server.log.read_text()
    assert "VLLM_API_KEY is set" in said
    assert "patches applied" in said
    assert KEY not in said


def test_sigterm_lets_a_request_finish_and_ends_the_server(server: Serving) -> None:
    """The last one: the server is gone afterwards."""
    body = json.dumps({**PROMPT, "max_tokens": 120, "stream": True})
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    with contextlib.closing(connection):
        connection.request("POST", "/v1/completions", body, headers)
        answer = connection.getresponse()
        first = answer.readline()
        server.process.send_signal(signal.SIGTERM)
        rest = (first + answer.read()).decode()
    assert rest.rstrip().endswith("data: [DONE]")
    assert rest.count("data: {") > 20
    assert server.process.wait(90) == 0, server.log.read_text()[-3000:]
    assert KEY not in server.log.read_text()


def test_a_changed_byte_of_any_patched_file_is_named_and_nothing_starts(rooted: Rooted, tmp_path: Path) -> None:
    lock = read_lock(ROOT / "series/vllm-0.31.0/lock.toml", "lock.toml")
    assert lock is not None
    site = rooted.root / "opt/engine/lib/python3.11/site-packages/vllm"
    touched = [f.path for f in lock.files if f.after is not None]
    for name in (touched[0], touched[-1]):
        place = site / name
        before = place.read_bytes()
        place.write_bytes(before[:-2] + bytes([before[-2] ^ 1]) + before[-1:])
        try:
            said = rooted.run("patchforge", "serve", "cpu", **{**SETTINGS, "VLLM_API_KEY": KEY})
        finally:
            place.write_bytes(before)
        assert said.returncode == 1, said.stdout + said.stderr
        assert f"{name}: neither pristine nor the outcome of any patch" in said.stderr
        assert "the server was not started" in said.stdout
        assert KEY not in said.stdout + said.stderr


def test_an_open_bind_without_a_key_does_not_start(rooted: Rooted) -> None:
    said = rooted.run("patchforge", "serve", "cpu", **SETTINGS)
    assert said.returncode == 2
    assert "export VLLM_API_KEY=$(openssl rand -hex 24)" in said.stderr


def test_the_builders_key_is_nowhere_in_the_image(image: Any) -> None:
    """History, labels, environment, the files of every layer, and what the build left beside the image."""
    needle = KEY.encode()
    seen = 0
    for path in Path(image["out"]).rglob("*"):
        if not path.is_file() or path.suffix == ".whl":
            continue
        with path.open("rb") as stream:
            zipped = stream.read(2) == b"\x1f\x8b"
        seen += 1
        with gzip.open(path) if zipped else path.open("rb") as stream:
            tail = b""
            while piece := stream.read(1 << 22):
                assert needle not in tail + piece, path
                tail = piece[-len(needle) :]
    assert seen > 10
