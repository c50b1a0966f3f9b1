"""The emitted Dockerfile, built for real by buildah on a small project, and held against the native path."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from builders import ROOT, Containers, git, patchforge

RELEASE = "iniconfig==2.3.1"
PIN = "iniconfig-2.3.1"
SITE = "opt/engine/lib/python3.11/site-packages"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, debian: Path, store: Path) -> Path:
    top = tmp_path_factory.mktemp("small") / "project"
    top.mkdir()
    patchforge("init", RELEASE, "--project", str(top))
    patchforge("apply", "--fetch", "--project", str(top))
    source = (top / f"build/{PIN}/iniconfig/exceptions.py").read_text().split("\n")
    before, after = ("\n".join(f" {line}" for line in part) for part in (source[:3], source[3:6]))
    patch = (
        "A mark.\n\nKind: local\nWhat: the module says that it was patched\nUpstream: none (a test)\n"
        f"Cut-against: iniconfig {RELEASE.partition('==')[2]}\nRetires-when: never\n\n"
        f"diff --git a/exceptions.py b/exceptions.py\n--- a/exceptions.py\n+++ b/exceptions.py\n@@ -1,6 +1,7 @@\n{before}\n"
        f"+PATCHED = True\n{after}\n"
        "diff --git a/added.py b/added.py\nnew file mode 100644\n--- /dev/null\n+++ b/added.py\n@@ -0,0 +1 @@\n+NEW = 1\n"
    )
    (top / f"patches/{PIN}/mark.patch").write_text(patch)
    (top / f"series/{PIN}/series").write_text("mark.patch\n")
    (top / ".gitignore").write_text("/build/\n")
    patchforge("lock", "--fetch", "--project", str(top))
    patchforge("table", "--project", str(top))
    own = (ROOT / "series/vllm-0.31.0/pin.toml").read_text()
    glibc = re.search(r'python = "3\.11"\nglibc = "([0-9.]+)"', own)
    assert glibc is not None
    with (top / f"series/{PIN}/pin.toml").open("a") as stream:
        stream.write(f'\n[image.default]\nbase = ""\npython = "3.11"\nglibc = "{glibc[1]}"\n')
    (top / f"series/{PIN}/image").mkdir()
    shutil.copy(ROOT / "series/vllm-0.31.0/image/cpu-tool.txt", top / f"series/{PIN}/image/default-tool.txt")
    patchforge("lock", "--image", "--flavor", "default", "--base", str(debian), "--project", str(top))
    git(top, "init", "--quiet")
    git(top, "add", "-A")
    git(top, "commit", "--quiet", "-m", "x")
    return top


def build(project: Path, *words: str) -> Any:
    return json.loads(patchforge("build-image", "--format", "json", "--project", str(project), *words).stdout)


@pytest.fixture(scope="module")
def image(project: Path) -> Any:
    return build(project, "--backend", "buildah", "--wheels")


def test_two_builds_have_one_digest(image: Any, project: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "project"
    shutil.copytree(project, copy, ignore=shutil.ignore_patterns("build"))
    assert build(copy, "--backend", "buildah", "--wheels")["digest"] == image["digest"]


def test_it_is_built_without_a_network(image: Any, project: Path) -> None:
    """Take the network away from the builder: the context has all it needs."""
    context = Path(image["out"]) / "context"
    command = [
        "unshare",
        "--net",
        "buildah",
        "bud",
        "--pull-never",
        "--layers=false",
        "--tag",
        "localhost/offline:1",
        str(context),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]


def test_the_container_runs_patched_code_as_nobody_and_verifies_itself(image: Any, container: Containers) -> None:
    name = container.start(image["name"])
    assert container.run(name, "id", "-u").stdout.strip() == "65532"
    said = container.run(
        name, "python", "-c", "import iniconfig.exceptions as e, iniconfig.added as a; print(e.PATCHED, a.NEW)"
    )
    assert said.stdout.strip() == "True 1", said.stderr
    healthy = container.run(name, "patchforge", "verify", "--quiet")
    assert (healthy.returncode, healthy.stdout) == (0, "")
    tamper = f"printf '#' >> /{SITE}/iniconfig/exceptions.py"
    assert container.run(name, "sh", "-c", tamper).returncode != 0, "the user of the image may not write"
    assert container.run(name, "sh", "-c", tamper, user="0").returncode == 0
    sick = container.run(name, "patchforge", "verify", "--quiet")
    assert sick.returncode == 1
    assert "exceptions.py" in sick.stderr


def test_no_bytecode_of_the_engine_is_stale(image: Any, container: Containers) -> None:
    name = container.start(image["name"])
    code = (
        "import sys,pathlib,importlib.util as u\nbad=[]\n"
        f"for p in pathlib.Path('/{SITE}').rglob('*.py'):\n"
        " c=pathlib.Path(u.cache_from_source(str(p)))\n"
        " if c.exists():\n"
        "  d=c.read_bytes()\n"
        "  if d[4:8]!=b'\\3\\0\\0\\0' or d[8:16]!=u.source_hash(p.read_bytes()): bad.append(str(p))\n"
        "print(len(bad), bad[:3])"
    )
    assert container.run(name, "python", "-c", code).stdout.startswith("0 ")


def test_the_native_path_writes_the_same_files(image: Any, project: Path, tmp_path: Path) -> None:
    """On the Dockerfile's own release stage as the base, both patch layers hold the same distribution files."""
    context = Path(image["out"]) / "context"
    base = tmp_path / "release"
    tag = "localhost/release:1"
    command = [
        "buildah",
        "bud",
        "--pull-never",
        "--layers=false",
        "--timestamp",
        "315532800",
        "--target",
        "release",
        "--tag",
        tag,
        str(context),
    ]
    subprocess.run(command, check=True, capture_output=True)
    subprocess.run(["buildah", "push", "--quiet", tag, f"oci:{base}:1"], check=True, capture_output=True)
    copy = tmp_path / "project"
    shutil.copytree(project, copy, ignore=shutil.ignore_patterns("build"))
    patchforge("lock", "--image", "--flavor", "default", "--base", str(base), "--project", str(copy))
    git(copy, "commit", "--quiet", "-am", "x")
    native = build(copy, "--backend", "oci", "--base", str(base))
    left = distribution(Path(image["out"]) / "layout", image["layers"][-1]["digest"])
    patches = next(layer for layer in native["layers"] if layer["owner"] == "patches")
    right = distribution(Path(native["out"]) / "layout", patches["digest"])
    assert left == right
    assert {f"{SITE}/iniconfig/exceptions.py", f"{SITE}/iniconfig/added.py"} < set(left)


def distribution(layout: Path, digest: str) -> dict[str, bytes]:
    """The regular files of a layer below site-packages, bytecode aside."""
    out = {}
    with tarfile.open(layout / "blobs/sha256" / digest[7:]) as archive:
        for member in archive:
            if member.isfile() and member.name.startswith(SITE) and "__pycache__" not in member.name:
                stream = archive.extractfile(member)
                assert stream is not None
                out[member.name] = stream.read()
    return out
