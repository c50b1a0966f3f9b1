"""The flagship's native image, looked at by programs that did not write it."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import ROOT, needs, own_project, patchforge
from validation import compose, kubernetes, lint_dockerfile, valid_sbom

SITE = "opt/engine/lib/python3.12/site-packages"
MODES = "0.31.0-cuda"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, stub_base: Path) -> Path:
    return own_project(tmp_path_factory.mktemp("cuda") / "project", "cuda", stub_base)


def build(project: Path, base: Path, *words: str) -> Any:
    done = patchforge(
        "build-image", "--flavor", "cuda", "--backend", "oci", "--base", str(base), "--format", "json",
        "--project", str(project), *words,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def image(project: Path, stub_base: Path) -> Any:
    return build(project, stub_base)


def layout(image: Any) -> Path:
    return Path(image["out"]) / "layout"


def test_the_patch_layer_is_small(image: Any) -> None:
    sizes = {layer["owner"]: layer["size"] for layer in image["layers"]}
    assert 0 < sizes["patches"] < 1_000_000
    assert sizes["base"] > 300_000_000


def test_skopeo_reads_the_same_digest(image: Any) -> None:
    needs("skopeo")
    shown = subprocess.run(["skopeo", "inspect", f"oci:{layout(image)}"], check=True, capture_output=True, text=True)
    found = json.loads(shown.stdout)
    assert found["Digest"] == image["digest"]
    assert found["Labels"]["io.patchforge.patches"] == str(len(image["patches"]))


def test_umoci_unpacks_what_was_meant(image: Any, project: Path, tmp_path: Path) -> None:
    """The unpacked tree is the pinned wheel with the series applied by ``patchforge apply``, file by file."""
    needs("umoci")
    command = ["umoci", "unpack", "--rootless", "--image", f"{layout(image)}:{MODES}", str(tmp_path / "bundle")]
    subprocess.run(command, check=True, capture_output=True)
    root = tmp_path / "bundle/rootfs"
    copy = tmp_path / "copy"
    shutil.copytree(project, copy)
    patchforge("apply", "--fetch", "--project", str(copy))
    plain = copy / "build/vllm-0.31.0"

    def hashes(top: Path) -> dict[str, tuple[str, int]]:
        out = {}
        for path in top.rglob("*"):
            name = path.relative_to(top).as_posix()
            if path.is_file() and "dist-info" not in name:
                with path.open("rb") as stream:
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()
                out[name] = (digest, path.stat().st_mode & 0o111)
        return out

    assert hashes(root / SITE) == hashes(plain)
    patchforge("verify", "--full", "--project", str(root / "opt/patchforge/project"), "--tree", str(root / SITE))
    one = next((root / SITE / "vllm").glob("envs.py"))
    one.write_bytes(one.read_bytes().replace(b"import", b"imporT", 1))
    with pytest.raises(AssertionError, match=r"envs\.py"):
        patchforge("verify", "--project", str(root / "opt/patchforge/project"), "--tree", str(root / SITE))


def test_a_second_build_is_equal(image: Any, project: Path, stub_base: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    shutil.copytree(project, again, ignore=shutil.ignore_patterns("build"))
    assert build(again, stub_base, "--check")["digest"] == image["digest"]


def test_rebuilding_after_an_edit_takes_seconds(image: Any, project: Path, stub_base: Path, tmp_path: Path) -> None:
    copy = tmp_path / "edited"
    shutil.copytree(project, copy, ignore=shutil.ignore_patterns("build"))
    patch = copy / "patches/vllm-0.31.0/serve-404-served-names.patch"
    text = patch.read_text()
    assert "Valid aliases: " in text
    patch.write_text(text.replace("Valid aliases: ", "Known names: "))
    patchforge("lock", "--fetch", "--project", str(copy))
    samples = []
    for _ in range(3):  # the quickest: what else the machine does is not measured
        start = time.monotonic()
        edited = build(copy, stub_base, "--allow-dirty")
        samples.append(time.monotonic() - start)
    assert min(samples) < 5, samples
    same = [a["digest"] == b["digest"] for a, b in zip(image["layers"], edited["layers"], strict=True)]
    assert same == [True, True, False, False]


def test_the_bill_of_materials_by_the_strict_schema_with_its_formats(image: Any) -> None:
    text = (Path(image["out"]) / "sbom.cdx.json").read_text()
    valid_sbom(text)
    document = json.loads(text)
    assert len(document["components"][0]["pedigree"]["patches"]) == len(image["patches"])
    document["metadata"]["timestamp"] = "yesterday"
    with pytest.raises(AssertionError):
        valid_sbom(json.dumps(document))


@pytest.mark.parametrize(("flavor", "profiles"), [("cuda", {"single", "batch"}), ("cpu", {"cpu"})])
def test_the_context_of_the_project_as_it_is(flavor: str, profiles: set[str], tmp_path: Path) -> None:
    """Of this repository, pinned to the bases it is released with: by the linter and the schemas of others."""
    out = tmp_path / "out"
    words = ["build-image", "--flavor", flavor, "--allow-dirty", "--format", "json", "--out", str(out)]
    patchforge(*words, "--project", str(ROOT))
    context = out / "context"
    lint_dockerfile(context)
    assert set(yaml.safe_load((context / "compose.yaml").read_text())["services"]) == profiles
    for profile in profiles:
        (service,) = compose(context, "--profile", profile)["services"].values()
        assert service["command"] == [profile]
    documents, _ = kubernetes(context)
    assert [d["kind"] for d in documents] == ["Deployment", "Service"]


def test_push_and_pull(image: Any, project: Path, stub_base: Path, tmp_path: Path) -> None:
    """Through a registry of this machine, where there is one to start."""
    needs("skopeo", "docker-registry")
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    conf = tmp_path / "registry.yml"
    conf.write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {tmp_path / 'registry'}}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}'}}\n"
    )
    registry = subprocess.Popen(
        ["docker-registry", "serve", str(conf)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        name = f"localhost:{port}/patched/vllm:1"
        pushed = build(project, stub_base, "--push", name, "--plain-http", "--out", str(tmp_path / "pushed"))
        command = ["skopeo", "inspect", "--tls-verify=false", f"docker://{name}"]
        shown = subprocess.run(command, check=True, capture_output=True, text=True)
        assert json.loads(shown.stdout)["Digest"] == pushed["digest"] == image["digest"]
    finally:
        registry.terminate()
        registry.wait()
