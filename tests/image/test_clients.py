"""Other builders through their own clients, pushing, and the second build that must be equal."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import tarfile
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path
from typing import Any

import pytest
from shop import SITE, Shop
from stubs import Layout, member, tar_of

from patchforge.cli import building
from patchforge.errors import Refused
from patchforge.image import clients
from patchforge.image.layer import Entry, file, make_layer

DOCKER = """#!/bin/sh
printf '%s\\n' "$@" >> {log}
for word; do case "$word" in type=oci,*) to="${{word#*dest=}}"; cp -r {layout} "${{to%%,*}}";; esac; done
"""


def fake(directory: Path, name: str, text: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(text)
    (directory / name).chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    import os

    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path / "bin"


def test_the_words_for_each_client(tmp_path: Path) -> None:
    made = {
        backend: clients.commands(
            backend, tmp_path, tmp_path / "l", "localhost/x:1", "linux/amd64", ("-v", "a b"), tmp_path / "p"
        )
        for backend in ("buildah", "podman", "buildx")
    }
    for commands in made.values():
        assert "SOURCE_DATE_EPOCH=315532800" in commands[0]
        assert "a b" in commands[0]
        assert f"id=pip.conf,src={tmp_path / 'p'}" in commands[0]
    for backend in ("buildah", "podman"):
        assert made[backend][0][made[backend][0].index("--timestamp") + 1] == "315532800"
        assert made[backend][1][-1] == f"oci:{tmp_path / 'l'}:1"
    assert any("rewrite-timestamp=true" in word for word in made["buildx"][0])
    assert "--provenance=false" in made["buildx"][0]


def test_an_image_by_a_client(shop: Shop, path: Path, tmp_path: Path) -> None:
    native = shop.build("--out", str(tmp_path / "native"))
    assert native.status == 0, native.out
    fake(path, "docker", DOCKER.format(log=tmp_path / "log", layout=tmp_path / "native/layout"))
    done = shop.run("build-image", "--backend", "buildx", "--format", "json")
    assert done.status == 0, done.out
    assert done.json["digest"] == native.json["digest"]
    assert (shop.out / "image.digest").read_text().strip() == done.json["digest"]
    manifest = (shop.out / "kubernetes/deployment.yaml").read_text()
    assert f'image: "localhost/demo-patched@{done.json["digest"]}"' in manifest


def test_a_client_that_left_the_patches_out_is_found_out(shop: Shop, path: Path, tmp_path: Path) -> None:
    fake(path, "docker", DOCKER.format(log=tmp_path / "log", layout=shop.base))
    done = shop.run("build-image", "--backend", "buildx", "--format", "json")
    (problem,) = done.json["problems"]
    assert (done.status, problem["reason"]) == (1, "tree-mismatch")
    assert "demo/core.py" in problem["message"]
    assert not shop.out.exists()


@pytest.mark.parametrize("layer", ["over it", "deleted again", "made again"])
def test_a_layer_over_the_patches_counts(shop: Shop, path: Path, tmp_path: Path, layer: str) -> None:
    """What the topmost layer says of a file is what a container has."""
    assert shop.build("--out", str(tmp_path / "native")).status == 0
    tars = [gzip.decompress(data) for data in layers(tmp_path / "native/layout")]
    changed = {
        "over it": member(f"{SITE}/demo/core.py", b"other"),
        "deleted again": member(f"{SITE}/demo/.wh.extra.py"),
        "made again": member(f"{SITE}/demo/gone/old.py", b"OLD = 1\n"),
    }
    Layout(tmp_path / "changed").image([*tars, tar_of([changed[layer]])])
    fake(path, "docker", DOCKER.format(log=tmp_path / "log", layout=tmp_path / "changed"))
    done = shop.run("build-image", "--backend", "buildx", "--format", "json")
    assert done.json["problems"][0]["reason"] == "tree-mismatch"
    name = {"over it": "core.py", "deleted again": "extra.py", "made again": "gone/old.py"}[layer]
    assert f"demo/{name}" in done.json["problems"][0]["message"]


CACHED = "__pycache__/core.cpython-312.pyc"


def pyc(source: bytes, flags: int = 3) -> bytes:
    """Bytecode of no consequence with a header as an interpreter writes it."""
    return MAGIC_NUMBER + flags.to_bytes(4, "little") + source_hash(source) + b"code"


@pytest.mark.parametrize(
    ("name", "flags", "of", "said"),
    [
        (CACHED, 3, b"", ""),
        (CACHED, 3, b"another", "is not of the source beside it"),
        (CACHED, 1, b"", "is not checked against its source"),
        (CACHED, 0, b"", "is not checked against its source"),
        ("core.pyc", 1, b"", "is not checked against its source"),
        ("gone/__pycache__/old.cpython-312.pyc", 0, b"", ""),  # without its source nobody reads it
        ("gone/old.pyc", 3, b"", "the module it is of is gone"),
        ("__pycache__/other.cpython-312.pyc", 0, b"", ""),  # no patch touches that module
    ],
)
def test_bytecode_that_would_hide_a_patch(
    shop: Shop, path: Path, tmp_path: Path, name: str, flags: int, of: bytes, said: str
) -> None:
    assert shop.build("--out", str(tmp_path / "native")).status == 0
    tars = [gzip.decompress(data) for data in layers(tmp_path / "native/layout")]
    source = read_member(tars, f"{SITE}/demo/core.py")
    layer = tar_of([member(f"{SITE}/demo/{name}", pyc(source + of, flags))])
    Layout(tmp_path / "changed").image([*tars, layer])
    fake(path, "docker", DOCKER.format(log=tmp_path / "log", layout=tmp_path / "changed"))
    done = shop.run("build-image", "--backend", "buildx", "--format", "json")
    if not said:
        assert done.status == 0, done.out
        return
    (problem,) = done.json["problems"]
    assert (done.status, problem["reason"]) == (1, "bytecode-stale")
    assert name in problem["message"] and said in problem["message"]
    assert not shop.out.exists()


def test_bytecode_that_a_later_layer_takes_away(shop: Shop, path: Path, tmp_path: Path) -> None:
    assert shop.build("--out", str(tmp_path / "native")).status == 0
    tars = [gzip.decompress(data) for data in layers(tmp_path / "native/layout")]
    stale = tar_of([member(f"{SITE}/demo/{CACHED}", pyc(b"", 1))])
    for away in (f"{SITE}/demo/__pycache__/.wh.core.cpython-312.pyc", f"{SITE}/demo/.wh.__pycache__"):
        layout = tmp_path / away.replace("/", "_")
        Layout(layout).image([*tars, stale, tar_of([member(away)])])
        fake(path, "docker", DOCKER.format(log=tmp_path / "log", layout=layout))
        assert shop.run("build-image", "--backend", "buildx", "--format", "json").status == 0


def read_member(tars: list[bytes], name: str) -> bytes:
    """A file as the topmost layer has it."""
    for data in reversed(tars):
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for info in archive:
                if info.name == name:
                    stream = archive.extractfile(info)
                    assert stream is not None
                    return stream.read()
    raise AssertionError(name)


def layers(layout: Path) -> list[bytes]:
    blobs = layout / "blobs/sha256"
    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads((blobs / index["manifests"][0]["digest"][7:]).read_text())
    return [(blobs / layer["digest"][7:]).read_bytes() for layer in manifest["layers"]]


def test_a_client_that_fails_is_quoted_without_credentials(shop: Shop, path: Path) -> None:
    fake(path, "docker", "#!/bin/sh\necho 'no route to https://me:secret@x.example/'\nexit 7\n")
    done = shop.run("build-image", "--backend", "buildx", "--format", "json")
    (problem,) = done.json["problems"]
    assert problem["reason"] == "backend"
    assert "no route to https://x.example/" in problem["message"]
    assert "secret" not in done.out
    assert not shop.out.exists()


def test_push_goes_through_skopeo(shop: Shop, path: Path, tmp_path: Path) -> None:
    fake(path, "skopeo", f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {tmp_path / 'log'}\n")
    done = shop.build("--push", "localhost:5000/demo:1")
    assert (done.status, done.json["pushed"]) == (0, "localhost:5000/demo:1")
    words = (tmp_path / "log").read_text().split("\n")
    assert words[:2] == ["copy", "--preserve-digests"]
    assert words[-2] == "docker://localhost:5000/demo:1"
    assert "--dest-tls-verify=false" not in words


def test_a_failed_push_leaves_nothing(shop: Shop, path: Path) -> None:
    fake(path, "skopeo", "#!/bin/sh\necho denied\nexit 1\n")
    done = shop.build("--push", "localhost:5000/demo:1")
    assert (done.status, done.json["problems"][0]["reason"]) == (1, "backend")
    assert not shop.out.exists()


def test_check_builds_twice(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    places = []
    original = building.append

    def append(inputs: Any, schema: Any, base: Any, wheel: Any, target: Path, *more: Any) -> Any:
        places.append(target)
        return original(inputs, schema, base, wheel, target, *more)

    monkeypatch.setattr(building, "append", append)
    done = shop.build("--check")
    assert (done.status, done.json["checked"]) == (0, True)
    assert len({p.parent.parent for p in places}) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda e, n: Entry(e.path, e.kind, e.data, 0o640 if n else 0o644), "mode"),
        (lambda e, n: Entry(e.path, e.kind, e.data + bytes(str(n), "ascii")), "other bytes"),
        (lambda e, n: Entry(e.path, e.kind, e.data, uid=n), "uid"),
        (lambda e, n: Entry(f"{e.path}{n}", e.kind, e.data), "one build only"),
    ],
)
def test_check_names_the_first_difference(shop: Shop, monkeypatch: pytest.MonkeyPatch, change: Any, said: str) -> None:
    from patchforge.image import native

    count = itertools.count()

    def project(_: object) -> Any:
        return make_layer("project", [file("opt/a", b"same"), change(file("opt/b", b"x"), next(count))])

    monkeypatch.setattr(native, "project_layer", project)
    done = shop.build("--check")
    (problem,) = done.json["problems"]
    assert (done.status, problem["reason"]) == (1, "not-reproducible")
    assert "layer 6" in problem["message"]
    assert "opt/b" in problem["message"]
    assert said in problem["message"]
    assert not shop.out.exists()


def test_check_of_a_context(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shop.run("build-image", "--check").status == 0
    count = itertools.count()
    monkeypatch.setattr("patchforge.image.tool.make_wheel", lambda: bytes(str(next(count)), "ascii"))
    done = shop.run("build-image", "--check", "--format", "json")
    assert done.json["problems"][0]["reason"] == "not-reproducible"
    assert "wheels/patchforge" in done.json["problems"][0]["message"]


def test_a_registry_is_asked_for_the_digest(path: Path) -> None:
    import hashlib
    import os

    fake(path, "skopeo", "#!/bin/sh\nprintf '{}'\n")
    assert clients.resolve("python:3.12", os.environ) == f"sha256:{hashlib.sha256(b'{}').hexdigest()}"
    fake(path, "skopeo", "#!/bin/sh\necho 'unauthorized: https://u:p@x/' >&2\nexit 1\n")
    with pytest.raises(Refused, match="unauthorized") as caught:
        clients.resolve("python:3.12", os.environ)
    assert "u:p" not in caught.value.message
