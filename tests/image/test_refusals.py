"""What is refused, each by its name, before anything is written."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shop import SITE, Shop, make_wheel
from stubs import Layout, folder, installed_tar, member, tar_of

from patchforge.image.layer import Entry, codec

Change = Callable[[Shop], object]


def refused(shop: Shop, *words: str) -> dict[str, Any]:
    done = shop.build(*words)
    assert done.status in (1, 2), done.out
    assert not shop.out.exists()
    assert not list(shop.root.rglob("*.partial"))
    (problem,) = done.json["problems"]
    assert problem["message"]
    return {**problem, "status": done.status}


def lock(shop: Shop, name: str = "default") -> Path:
    return shop.demo.series / f"image/{name}.txt"


def swap(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def unpinned(shop: Shop) -> None:
    text = shop.pin.read_text()
    start = text.index("@sha256:")
    shop.pin.write_text(text[:start] + text[start + 72 :])


INPUTS: dict[str, tuple[Change, str, int]] = {
    "a base by tag": (unpinned, "base-unpinned", 2),
    "no image table": (lambda s: s.edit_pin("[image.default]", "[flavor.other]"), "image-missing", 2),
    "no lock": (lambda s: lock(s).unlink(), "lock-missing", 1),
    "no lock of the tool": (lambda s: lock(s, "default-tool").unlink(), "lock-missing", 1),
    "a line without hash": (lambda s: swap(lock(s), f" \\\n    --hash=sha256:{'a' * 64} \\\n    --hash=sha256:{'b' * 64}", ""), "lock-unhashed", 2),
    "a version that is not exact": (lambda s: swap(lock(s), "dep==2.0", "dep>=2.0"), "lock-unhashed", 2),
    "an index in the lock": (lambda s: swap(lock(s), "dep==", "--index-url x\ndep=="), "lock-index", 2),
    "an address in the lock": (lambda s: swap(lock(s), "dep==2.0", "dep @ https://x.example/dep.whl"), "lock-index", 2),
    "a lock for other requirements": (lambda s: s.edit_pin('python = "3.12"', 'python = "3.12"\nrequire = ["more>=1"]'), "lock-stale", 1),
    "a lock for another Python": (lambda s: s.edit_pin('python = "3.12"', 'python = "3.13"'), "lock-stale", 1),
    "another wheel than the pin's": (lambda s: swap(lock(s), s.pin.read_text().partition('.whl", sha256 = "')[2][:64], "c" * 64), "wheel-hash", 1),
    "a patch that is not locked": (lambda s: swap(s.demo.patches / "log.patch", "self.starts = 1", "self.starts = 3"), "lock", 1),
    "no table": (lambda s: (s.root / "PATCHES.md").unlink(), "table-drift", 1),
    "a date before 1980": (lambda s: s.edit_pin("epoch = 1760000000", "epoch = 0"), "epoch-early", 2),
    "a secret in the environment": (lambda s: s.edit_pin("epoch", 'env = {API_TOKEN = "x"}\nepoch'), "leak", 2),
    "credentials in the environment": (lambda s: s.edit_pin("epoch", 'env = {INDEX = "http://me:pw@x/"}\nepoch'), "leak", 2),
    "an apt package without version": (lambda s: s.edit_pin("epoch", 'apt = ["gcc"]\nepoch'), "pin", 2),
    "an unknown key": (lambda s: s.edit_pin("epoch", 'bass = "x"\nepoch'), "pin", 2),
    "an environment that a Dockerfile would expand": (lambda s: s.edit_pin("epoch", 'env = {A = "$HOME"}\nepoch'), "pin", 2),
}  # fmt: skip


@pytest.mark.parametrize("case", INPUTS)
def test_inputs(shop: Shop, case: str) -> None:
    change, reason, status = INPUTS[case]
    change(shop)
    found = refused(shop, "--allow-dirty")
    assert (found["reason"], found["status"]) == (reason, status)
    assert found.get("file") or found.get("hint")


def test_another_compressor_than_the_pinned_one(shop: Shop, tmp_path: Path) -> None:
    """The content is the same, and is named; the digests would not be."""
    shop.edit_pin("epoch", f'codec = "{codec()}"\nepoch')
    shop.commit()
    first = shop.build("--out", str(tmp_path / "same"))
    assert first.status == 0, first.out
    shop.edit_pin(codec(), "gzip-6 zlib 9.9.9 probe 0123456789ab")
    shop.commit()
    problem = refused(shop)
    assert (problem["reason"], problem["status"]) == ("codec-drift", 1)
    blobs = tmp_path / "same/layout/blobs/sha256"
    manifest = json.loads((blobs / first.json["digest"][7:]).read_text())
    config = json.loads((blobs / manifest["config"]["digest"][7:]).read_text())
    # The third layer is the project, and with it the pin that was edited.
    assert all(diff_id in problem["message"] for diff_id in config["rootfs"]["diff_ids"][-3:-1])


def test_a_table_that_drifts(shop: Shop) -> None:
    swap(shop.root / "PATCHES.md", "the engine counts its starts", "the engine counts")
    found = refused(shop, "--allow-dirty")
    assert (found["reason"], found["file"]) == ("table-drift", "patches/demo-1.0/log.patch")


def test_no_lock_toml(shop: Shop) -> None:
    (shop.demo.series / "lock.toml").unlink()
    assert refused(shop, "--allow-dirty")["reason"] == "lock"


BASES: dict[str, tuple[Callable[[Shop], list[bytes]], str, str]] = {
    "without the distribution": (lambda s: s.tars()[:1], "dist-missing", ""),
    "with it twice": (
        lambda s: [*s.tars(), installed_tar(s.wheel, "usr/lib/python3.12/site-packages", "python3.12")],
        "dist-twice",
        "usr/lib/python3.12/site-packages",
    ),
    "with an editable one": (
        lambda s: [*s.tars(), tar_of([member(f"{SITE}/demo-1.0.dist-info/direct_url.json", b'{"dir_info": {"editable": true}}')])],
        "dist-editable",
        "",
    ),
    "with a changed file": (lambda s: [*s.tars(), tar_of([member(f"{SITE}/demo/core.py", b"x")])], "base-not-pristine", "demo/core.py"),
    "with a link for a file": (
        lambda s: [*s.tars(), tar_of([member(f"{SITE}/demo/core.py", type=b"2", linkname="/etc/x")])],
        "base-not-pristine",
        "demo/core.py",
    ),
    "with a series applied": (
        lambda s: [*s.tars(), tar_of([member(f"{SITE}/demo-1.0.dist-info/patchforge/state.json", b"{}")])],
        "base-not-pristine",
        "already",
    ),
    "with a file where a new one goes": (lambda s: [*s.tars(), tar_of([member(f"{SITE}/demo/extra.py", b"x")])], "base-not-pristine", "demo/extra.py"),
    "of another Python": (lambda s: [installed_tar(s.wheel, SITE.replace("3.12", "3.11"), "python3.11")], "python-mismatch", "3.11"),
    "without an interpreter": (lambda s: [*s.tars(), tar_of([member("opt/engine/bin/.wh.python3.12")])], "python-mismatch", ""),
    "that climbs out": (lambda s: [*s.tars(), tar_of([member("a/../../etc/passwd", b"x")])], "base-corrupt", "leaves the image"),
    "that is no tar": (lambda s: [*s.tars(), b"nonsense" * 200], "base-corrupt", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", BASES)
def test_bases(shop: Shop, case: str) -> None:
    make, reason, said = BASES[case]
    shop.rebase(make(shop))
    found = refused(shop)
    assert (found["reason"], found["status"]) == (reason, 1)
    assert said in found["message"]


def test_a_base_for_another_machine(shop: Shop) -> None:
    shop.rebase(shop.tars(), architecture="arm64")
    assert refused(shop)["reason"] == "platform-mismatch"


def test_another_release_in_the_base(shop: Shop, tmp_path: Path) -> None:
    make_wheel(tmp_path / "demo-2.0-py3-none-any.whl", version="2.0")
    shop.rebase([installed_tar(tmp_path / "demo-2.0-py3-none-any.whl", SITE, "python3.12")])
    assert "demo 2.0" in refused(shop)["message"]


def test_a_layout_without_the_pinned_base(shop: Shop, tmp_path: Path) -> None:
    Layout(tmp_path / "other").image([tar_of([folder("etc")])])
    shop.base = tmp_path / "other"
    assert refused(shop)["reason"] == "base-missing"


def test_no_layout_at_all(shop: Shop, tmp_path: Path) -> None:
    shop.base = tmp_path
    assert refused(shop)["reason"] == "base-missing"


@pytest.mark.parametrize("what", ["layer", "config", "manifest", "cut"])
def test_a_corrupt_base(shop: Shop, what: str) -> None:
    blobs = shop.base / "blobs/sha256"
    manifest = blobs / json.loads((shop.base / "index.json").read_text())["manifests"][0]["digest"][7:]
    document = json.loads(manifest.read_text())
    if what == "manifest":
        swap(manifest, '"schemaVersion": 2', '"schemaVersion": 3')
    elif what == "config":
        swap(blobs / document["config"]["digest"][7:], "LANG=C", "LANG=D")
    else:
        layer = blobs / document["layers"][1]["digest"][7:]
        data = layer.read_bytes()
        layer.write_bytes(data[:-100] if what == "cut" else data[:-8] + bytes(4) + data[-4:])
    assert refused(shop)["reason"] == "base-corrupt"


def test_an_index_gives_the_manifest_of_the_platform(shop: Shop) -> None:
    """A base pinned as registries publish it: by the digest of its index over several platforms."""
    layout = Layout.__new__(Layout)
    layout.path = shop.base
    entries = json.loads((shop.base / "index.json").read_text())["manifests"]
    entries[0]["platform"] = {"os": "linux", "architecture": "amd64"}
    other = {**entries[0], "platform": {"os": "linux", "architecture": "arm64"}}
    kind = "application/vnd.oci.image.index.v1+json"

    def publish(below: list[dict[str, Any]]) -> None:
        raw = json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": below}).encode()
        old = shop.pin.read_text().partition("@sha256:")[2][:64]
        digest = layout.put(raw)
        layout.index([{"mediaType": kind, "digest": digest, "size": len(raw)}])
        shop.edit_pin(old, digest[7:])
        shop.commit()

    publish([other, other])
    assert refused(shop)["reason"] == "platform-mismatch"
    publish([other, entries[0]])
    assert shop.build().status == 0


def test_an_untracked_patch(shop: Shop) -> None:
    shop.git("rm", "--quiet", "--cached", "patches/demo-1.0/log.patch")
    shop.git("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "--quiet", "-m", "x")
    found = refused(shop)
    assert (found["reason"], found["file"]) == ("series-untracked", "patches/demo-1.0/log.patch")


def test_an_ignored_lock(shop: Shop) -> None:
    shop.git("rm", "--quiet", "--cached", "series/demo-1.0/image/default.txt")
    (shop.root / ".gitignore").write_text("/build/\nimage/\n")
    shop.commit()
    assert refused(shop)["reason"] == "series-untracked"


def test_an_uncommitted_change(shop: Shop) -> None:
    shop.edit_pin("# what we build on", "# what")
    found = refused(shop)
    assert (found["reason"], found["file"]) == ("series-dirty", "series/demo-1.0/pin.toml")


def test_no_repository(shop: Shop) -> None:
    import shutil

    shutil.rmtree(shop.root / ".git")
    assert refused(shop)["reason"] == "series-untracked"


def test_dirty_is_allowed_marked_and_never_pushed(shop: Shop) -> None:
    shop.edit_pin("# what we build on", "# what")
    found = refused(shop, "--allow-dirty", "--push", "localhost/demo:1")
    assert found["reason"] == "series-dirty"
    done = shop.build("--allow-dirty")
    assert done.status == 0
    assert done.json["dirty"] is True
    from shop import config_of

    assert config_of(shop.out / "layout")["config"]["Labels"]["io.patchforge.dirty"] == "true"


def test_files_that_do_not_belong_to_the_image_may_be_dirty(shop: Shop) -> None:
    (shop.root / "notes.txt").write_text("x")
    assert shop.build().status == 0


def test_a_patch_that_does_not_land(shop: Shop) -> None:
    """The lock says it does: the engine is asked all the same."""
    patch = shop.demo.patches / "log.patch"
    swap(patch, "self.running = True", "self.runs = True")
    import hashlib

    from patchforge.series.lock import dump_lock, read_lock
    from patchforge.series.project import find_project, load_series

    old = read_lock(shop.demo.series / "lock.toml", "x")
    assert old is not None
    series = load_series(find_project(shop.root), None)
    sha = hashlib.sha256(patch.read_bytes()).hexdigest()
    patches = tuple(replace(p, sha256=sha) if p.name == "log" else p for p in old.patches)
    (shop.demo.series / "lock.toml").write_bytes(dump_lock(replace(old, patches=patches, series=series.sha256)))
    shop.commit()
    found = refused(shop)
    assert (found["reason"], found["patch"], found["file"]) == ("context", "log", "patches/demo-1.0/log.patch")


@pytest.mark.parametrize("what", ["other bytes", "left out", "kept"])
def test_a_layer_that_is_not_what_the_lock_says(shop: Shop, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """The layer as written is read back: a bug in what writes it ends here."""
    from patchforge.image import native
    from patchforge.image.layer import make_layer

    original = native.patch_layer

    def wrong(*words: Any) -> Any:
        layer, done = original(*words)
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(layer.blob))) as archive:
            entries = [as_entry(archive, info) for info in archive]
        if what == "other bytes":
            entries = [replace(e, data=e.data + b"#") if e.path.endswith("core.py") else e for e in entries]
        elif what == "left out":
            entries = [e for e in entries if not e.path.endswith("extra.py")]
        else:
            entries = [e for e in entries if not e.path.endswith("gone")]
        return make_layer("patches", entries), done

    monkeypatch.setattr(native, "patch_layer", wrong)
    found = refused(shop)
    assert found["reason"] == "tree-mismatch"
    name = {"other bytes": "core.py", "left out": "extra.py", "kept": "gone/old.py"}[what]
    assert name in found["message"]


def as_entry(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Entry:
    folder, _, name = info.name.rpartition("/")
    if name.startswith(".wh."):
        return Entry(f"{folder}/{name[4:]}", "gone")
    stream = archive.extractfile(info) if info.isfile() else None
    return Entry(info.name, "dir" if info.isdir() else "file", stream.read() if stream else b"", info.mode)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--name", "demo"), "full image name"),
        (("--name", "Host/demo:1"), "full image name"),
        (("--push", "x; rm"), "full image name"),
        (("--flavor", "nope"), "no flavor"),
        (("--build-option", "x"), "for a client"),
    ],
)
def test_usage(shop: Shop, words: tuple[str, ...], said: str) -> None:
    found = refused(shop, *words)
    assert found["reason"] == "usage"
    assert said in found["message"]


def test_the_context_cannot_be_pushed(shop: Shop) -> None:
    done = shop.run("build-image", "--push", "localhost/demo:1", "--format", "json")
    assert (done.status, done.json["problems"][0]["reason"]) == (2, "usage")


def test_a_client_that_is_missing(shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import shutil

    (tmp_path / "bin").mkdir()
    git = shutil.which("git")
    assert git is not None
    (tmp_path / "bin/git").symlink_to(git)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for backend in ("buildah", "podman", "buildx"):
        done = shop.run("build-image", "--backend", backend, "--format", "json")
        assert (done.status, done.json["problems"][0]["reason"]) == (1, "backend")
        assert not shop.out.exists()
