"""The build context: complete, the same everywhere, and accepted by the tools that read it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from place import BIG, KEY, everything, installed, shipped
from shop import Shop
from validation import compose, kubernetes, lint_dockerfile

from patchforge.image import tool
from patchforge.serving.configuration import Configuration
from patchforge.serving.resolve import resolve
from patchforge.serving.secret import Secret


@pytest.fixture
def context(shop: Shop) -> Path:
    shop.edit_pin("epoch", 'apt = ["gcc=4:12.2.0-3"]\nenv = {DO_NOT_TRACK = "1", WORDS = "two words"}\nepoch')
    shop.commit()
    done = shop.run("build-image", "--format", "json")
    assert done.status == 0, done.out
    return shop.out / "context"


def files(top: Path) -> dict[str, tuple[int, bytes]]:
    return {p.relative_to(top).as_posix(): (p.stat().st_mode, p.read_bytes()) for p in top.rglob("*") if p.is_file()}


def test_it_is_complete(context: Path) -> None:
    assert set(files(context)) == {
        ".dockerignore",
        ".env.example",
        "Dockerfile",
        "bin/patchforge",
        "compose.yaml",
        "kubernetes/deployment.yaml",
        "kubernetes/leaderworkerset.yaml",
        "locks/dependencies.txt",
        "locks/distribution.txt",
        "locks/tool.txt",
        f"wheels/{tool.wheel_name()}",
        *(f"project/patches/demo-1.0/{name}.patch" for name in ("log", "names", "drop")),
        *(f"project/series/demo-1.0/{name}" for name in ("pin.toml", "series", "lock.toml")),
    }
    assert (context / "bin/patchforge").stat().st_mode & 0o777 == 0o755


def test_what_the_dockerfile_copies_is_there_and_admitted(context: Path) -> None:
    text = (context / "Dockerfile").read_text()
    admitted = {line[1:] for line in (context / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    sources = set(re.findall(r"^COPY (\S+) ", text, re.MULTILINE)) | set(re.findall(r"bind,source=([^,]+),", text))
    assert sources
    for source in sources:
        assert (context / source).exists(), source
        assert source.partition("/")[0] in admitted


def test_the_rules_of_the_dockerfile(context: Path) -> None:
    text = (context / "Dockerfile").read_text()
    stages = re.split(r"^(?=FROM )", text, flags=re.MULTILINE)[1:]
    assert len(stages) == 5
    assert re.match(r"FROM localhost/stub@sha256:[0-9a-f]{64} AS system\n", stages[0])
    for stage in stages:
        assert re.match(r"FROM \S+ AS \S+\nARG SOURCE_DATE_EPOCH=315532800\n", stage)
    for install in re.findall(r"pip install [^&]*", text):
        assert "--require-hashes" in install or "--no-index" in install
    assert "patchforge apply" in stages[-1]
    assert "patchforge verify" in stages[-1]
    assert "COPY . " not in text
    assert 'ENTRYPOINT ["patchforge", "serve"]' in text
    assert "\nUSER 65532:65532\n" in text
    check = next(line for line in text.replace(" \\\n", " ").splitlines() if line.startswith("HEALTHCHECK "))
    assert re.split(r" +CMD ", check) == [
        "HEALTHCHECK --start-period=900s --interval=30s --timeout=10s --retries=3",
        '["patchforge", "health", "--quiet"]',
    ]
    assert 'WORDS="two words"' in text


def test_the_locks_are_split_and_only_the_pinned_wheel_is_allowed(context: Path, shop: Shop) -> None:
    dependencies = (context / "locks/dependencies.txt").read_text()
    assert "demo==" not in dependencies
    assert f"--hash=sha256:{'b' * 64}" in dependencies
    sha = re.search(r'sha256 = "([0-9a-f]{64})"', shop.pin.read_text())
    assert sha is not None
    assert (context / "locks/distribution.txt").read_text() == f"demo==1.0 \\\n    --hash=sha256:{sha[1]}\n"


def test_it_is_the_same_in_another_place(context: Path, shop: Shop, tmp_path: Path) -> None:
    before = files(context)
    copy = tmp_path / "elsewhere"
    shutil.copytree(shop.root, copy)
    shop.demo.root = copy
    shutil.rmtree(copy / "build")
    import os

    old = os.umask(0o077)
    try:
        assert shop.run("build-image").status == 0
    finally:
        os.umask(old)
    assert files(shop.out / "context") == before
    assert {p.stat().st_mode & 0o777 for p in (shop.out / "context").rglob("*") if p.is_dir()} == {0o755}


def test_hadolint(context: Path) -> None:
    lint_dockerfile(context)


def test_compose(context: Path) -> None:
    for profile in ("single", "batch"):
        services = compose(context, "--profile", profile)["services"]
        assert set(services) == {profile}
        service = services[profile]
        assert service["command"] == [profile]
        assert service["environment"]["HOST"] == "127.0.0.1"
        assert "VLLM_API_KEY" not in service["environment"]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["healthcheck"]["test"] == ["CMD", "patchforge", "health", "--quiet"]
        assert service["healthcheck"]["start_period"] == "15m0s"
    assert compose(context)["services"] == {}, "nothing starts without a profile"


def test_the_example_of_settings(context: Path) -> None:
    """As it is, and with everything in it switched on: every name is a knob, or one of compose's own."""
    text = (context / ".env.example").read_text()
    shutil.copy(context / ".env.example", context / ".env")
    service = compose(context, "--profile", "single")["services"]["single"]
    assert service["environment"]["PORT"] == "18020"
    assert "VLLM_API_KEY" not in service["environment"]
    accepted("single", {k: v for k, v in service["environment"].items() if v})
    spoken_of = set(re.findall(r"^#?([A-Z_]+)=", text, re.MULTILINE))
    assert {
        "MODELS_DIR",
        "MODEL",
        "DRAFTER",
        "HOST",
        "PORT",
        "VLLM_API_KEY",
        "GPU_COUNT",
        "SHM_SIZE",
        "EXTRA_ARGS",
    } <= spoken_of
    own = set(re.findall(r"\$\{([A-Z_]+)", (context / "compose.yaml").read_text()))
    assert spoken_of - own <= {knob.name for knob in shipped().knobs} | {"VLLM_API_KEY"}
    (context / ".env").write_text(
        re.sub(r"^#(?=[A-Z_]+=)", "", text, flags=re.MULTILINE).replace("_KEY=", "_KEY=" + KEY)
    )
    service = compose(context, "--profile", "single")["services"]["single"]
    made = accepted("single", {k: v for k, v in service["environment"].items() if v})
    assert made.key == Secret(KEY)


def accepted(mode: str, env: dict[str, str]) -> Configuration:
    """The configuration the engine of the pin would be started with; an error when the start would be refused."""
    have = installed(everything(shipped()), variables=frozenset({"VLLM_API_KEY"}))
    made = resolve(shipped(), mode, env, [], have, BIG)
    assert made.obstacles == ()
    return made


def test_the_cpu_flavour_asks_for_no_gpu(shop: Shop) -> None:
    shop.edit_pin("[flavor.default]", "[flavor.cpu]")
    shop.edit_pin("[image.default]", '[image.cpu]\nrequirements = "image/default.txt"\ntool = "image/default-tool.txt"')
    shop.commit()
    done = shop.run("build-image", "--format", "json")
    assert done.status == 0, done.out
    top = shop.root / "build/image/demo-1.0-cpu/context"
    assert "nvidia" not in (top / "compose.yaml").read_text() + (top / "kubernetes/deployment.yaml").read_text()
    assert set(yaml.safe_load((top / "compose.yaml").read_text())["services"]) == {"cpu"}


def test_kubernetes(context: Path) -> None:
    documents, group = kubernetes(context)
    assert [d["kind"] for d in documents] == ["Deployment", "Service"]
    assert (group["kind"], group["apiVersion"]) == ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1")
    assert group["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "serving"
    templates = group["spec"]["leaderWorkerTemplate"]
    for role in ("leaderTemplate", "workerTemplate"):
        (container,) = templates[role]["spec"]["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        # As the controller starts the pods of a group of two.
        worker = role == "workerTemplate"
        given = {"LWS_GROUP_SIZE": "2", "LWS_WORKER_INDEX": str(int(worker)), "LWS_LEADER_ADDRESS": "leader.example"}
        made = accepted(container["args"][0], pod_environment(container, given))
        assert ("--headless" in made.argv) == worker
        for flag, value in (("--nnodes", "2"), ("--node-rank", str(int(worker))), ("--master-addr", "leader.example")):
            assert made.argv[made.argv.index(flag) + 1] == value
        assert made.argv[made.argv.index("--tensor-parallel-size") + 1] == "2"
    pod = documents[0]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    key = next(e for e in pod["containers"][0]["env"] if e["name"] == "VLLM_API_KEY")
    assert "value" not in key
    accepted(pod["containers"][0]["args"][0], pod_environment(pod["containers"][0], {}))
    # Addresses of services would be taken for settings of the engine.
    for spec in (pod, templates["leaderTemplate"]["spec"], templates["workerTemplate"]["spec"]):
        assert spec["enableServiceLinks"] is False


def pod_environment(container: dict[str, Any], outer: dict[str, str]) -> dict[str, str]:
    """What a container sees: ``$(NAME)`` of variables before it filled in, secrets as some key."""
    env = dict(outer)
    for entry in container["env"]:
        value = entry.get("value", KEY)
        env[entry["name"]] = re.sub(r"\$\(([A-Z_]+)\)", lambda match: env[match[1]], value)
    return env


def test_the_wheel_of_patchforge_installs_and_runs(context: Path, tmp_path: Path) -> None:
    wheel = context / "wheels" / tool.wheel_name()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "lib")
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    command = [
        sys.executable,
        "-c",
        "import patchforge.resources as r, patchforge; print(patchforge.__file__, len(r.schema()))",
    ]
    done = subprocess.run(
        command, env={"PYTHONPATH": str(tmp_path / "lib")}, capture_output=True, text=True, check=True, cwd="/"
    )
    assert done.stdout.startswith(str(tmp_path / "lib/patchforge/__init__.py"))
    shown = subprocess.run(
        [sys.executable, "-m", "patchforge", "--version"],
        env={"PYTHONPATH": str(tmp_path / "lib")},
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert shown.stdout.startswith("patchforge ")
