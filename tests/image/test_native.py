"""The native backend: what the layers hold, that they are the same everywhere, and that the image says what it is."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import time
from pathlib import Path

import pytest
from shop import SITE, Shop, config_of, layer_of, pyc
from stubs import folder, member, tar_of

from patchforge.image.layer import MTIME


def built(shop: Shop, *words: str) -> Path:
    done = shop.build(*words)
    assert done.status == 0, done.out
    return shop.out / "layout"


def test_the_patch_layer_holds_the_changed_files_and_nothing_else(shop: Shop) -> None:
    members, read = layer_of(built(shop), 4)
    kinds = {m.name: "dir" if m.isdir() else "file" for m in members}
    files = {name for name, kind in kinds.items() if kind == "file"}
    info = f"{SITE}/demo-1.0.dist-info"
    assert files == {
        f"{SITE}/demo/core.py",
        f"{SITE}/demo/data/text.txt",
        f"{SITE}/demo/extra.py",
        f"{SITE}/demo/.wh.gone",
        f"{SITE}/demo/__pycache__/.wh.core.cpython-312.pyc",
        f"{info}/RECORD",
        f"{info}/patchforge/state.json",
    }
    assert b"self.starts = 1" in read(f"{SITE}/demo/core.py")
    assert read(f"{SITE}/demo/data/text.txt") == b"one\nzwei\nthree\nfour\nfive\n"
    assert [m.name for m in members] == sorted(m.name for m in members)
    for m in members:
        assert (m.mtime, m.uname, m.gname) == (MTIME, "", "")
        for above in Path(m.name).parents:
            assert str(above) == "." or kinds[str(above)] == "dir"


def test_directories_keep_the_owner_and_mode_of_the_base(shop: Shop) -> None:
    members, _ = layer_of(built(shop), 4)
    by_name = {m.name: m for m in members}
    assert (by_name[f"{SITE}/demo"].uid, by_name[f"{SITE}/demo"].mode) == (7, 0o755)
    assert by_name[f"{SITE}/demo/core.py"].uid == 0


def test_a_deleted_file_takes_its_bytecode_and_its_empty_directory_along(shop: Shop) -> None:
    members, _ = layer_of(built(shop), 4)
    gone = {m.name for m in members if "/.wh." in m.name}
    assert gone == {f"{SITE}/demo/.wh.gone", f"{SITE}/demo/__pycache__/.wh.core.cpython-312.pyc"}


def test_a_directory_that_still_holds_something_stays(shop: Shop) -> None:
    tars = shop.tars()
    shop.rebase([*tars, tar_of([member(f"{SITE}/demo/gone/kept.txt", b"x")])])
    members, _ = layer_of(built(shop), 5)
    gone = {m.name for m in members if "/.wh." in m.name}
    assert gone == {
        f"{SITE}/demo/gone/.wh.old.py",
        f"{SITE}/demo/gone/.wh.__pycache__",
        f"{SITE}/demo/__pycache__/.wh.core.cpython-312.pyc",
    }


def test_record_lists_what_is_there_now(shop: Shop) -> None:
    _, read = layer_of(built(shop), 4)
    rows = read(f"{SITE}/demo-1.0.dist-info/RECORD").decode().splitlines()
    paths = {row.split(",")[0] for row in rows}
    assert {"demo/extra.py", "demo-1.0.dist-info/INSTALLER"} <= paths
    assert "demo/gone/old.py" not in paths


def test_an_image_verifies_itself_when_unpacked(shop: Shop, tmp_path: Path) -> None:
    root = tmp_path / "unpacked"
    layout = built(shop)
    for number in range(6):
        unpack(layout, number, root)
    project = root / "opt/patchforge/project"
    assert run_verify(shop, project, root / SITE) == 0
    assert not (root / SITE / "demo/gone").exists()
    assert not (root / pyc("demo/core.py")).exists()
    assert (root / pyc("demo/__init__.py")).exists()
    (root / SITE / "demo/core.py").write_bytes(b"tampered = True\n")
    assert run_verify(shop, project, root / SITE) == 1


def run_verify(shop: Shop, project: Path, site: Path) -> int:
    from patchforge import cli

    status = cli.run(["verify", "--full", "--project", str(project), "--tree", str(site)])
    shop.demo.capture()
    return status


def unpack(layout: Path, number: int, root: Path) -> None:
    """A small unpacker that honours whiteouts."""
    members, read = layer_of(layout, number)
    for m in members:
        path = root / m.name
        if path.name.startswith(".wh."):
            hidden = path.with_name(path.name[4:])
            shutil.rmtree(hidden) if hidden.is_dir() else hidden.unlink()
        elif m.isdir():
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(read(m.name))


def test_the_same_inputs_give_the_same_digest(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = (built(shop), (shop.out / "image.digest").read_text())[1]
    copy = tmp_path / "elsewhere" / "deeper"
    shutil.copytree(shop.root, copy)
    shutil.rmtree(copy / "build")
    shop.demo.root = copy
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    shutil.copytree(shop.cache / "wheels", tmp_path / "other/patchforge/wheels")
    for path in copy.rglob("*.patch"):
        os.utime(path, (1, 1))
    old = os.umask(0o077)
    try:
        layout = built(shop)
    finally:
        os.umask(old)
        monkeypatch.delenv("TZ")
        time.tzset()
    assert (shop.out / "image.digest").read_text() == first
    assert (shop.out / "image.digest").read_text().strip() == json.loads((layout / "index.json").read_text())[
        "manifests"
    ][0]["digest"]


def test_the_layer_writer_has_not_changed() -> None:
    """A golden value: a change here changes the digest of everybody's images."""
    from patchforge.image.layer import Entry, directory, file, make_layer

    made = make_layer(
        "x",
        [
            file("b/run", b"#!", True),
            directory("b"),
            Entry("b/old", "gone"),
            Entry("b/l", "link", target="run"),
            file("ä", b""),
        ],
    )
    assert made.diff_id == GOLDEN
    assert made.diff_id != made.digest


GOLDEN = "sha256:814e33a2d593b920d89a3642871a89c9a67444663aa3cbfcd0ea966f78f21980"


def test_a_changed_patch_changes_two_layers_only(shop: Shop) -> None:
    first = json.loads(shop.build().out)["layers"]
    log = shop.demo.patches / "log.patch"
    log.write_bytes(log.read_bytes().replace(b"self.starts = 1", b"self.starts = 2"))
    tree = shop.root.parent / "pristine"
    assert shop.run("lock", "--tree", str(tree)).status == 0
    shop.commit()
    second = json.loads(shop.build().out)["layers"]
    same = [a["digest"] == b["digest"] for a, b in zip(first, second, strict=True)]
    assert same == [True, True, True, True, False, False]


def test_the_configuration_says_what_the_image_is(shop: Shop) -> None:
    layout = built(shop)
    config = config_of(layout)
    own = config["config"]
    assert own["Entrypoint"] == ["patchforge", "serve"]
    assert own["User"] == "65532:65532"
    assert own["Healthcheck"]["Test"] == ["CMD", "patchforge", "health", "--quiet"]
    assert own["Healthcheck"]["StartPeriod"] == 900 * 10**9
    assert "LANG=C.UTF-8" in own["Env"]
    assert next(e for e in own["Env"] if e.startswith("PATH=")).startswith("PATH=/opt/patchforge/bin:/opt/engine/bin:")
    assert own["Labels"]["io.patchforge.dirty"] == "false"
    assert own["Labels"]["io.patchforge.patches"] == "3"
    assert config["created"] == "2025-10-09T08:53:20Z"
    assert len(config["rootfs"]["diff_ids"]) == 6
    assert sum(not h.get("empty_layer") for h in config["history"]) == 6
    members, read = layer_of(layout, 3)
    program = next(m for m in members if m.name == "opt/patchforge/bin/patchforge")
    assert program.mode == 0o755
    assert read(program.name).startswith(b"#!/opt/engine/bin/python3.12 -I\n")
    assert {"opt/patchforge/lib/tiny/__init__.py", "opt/patchforge/lib/patchforge/cli/__init__.py"} <= {
        m.name for m in members
    }


def test_every_patch_is_an_annotation_in_order(shop: Shop) -> None:
    layout = built(shop)
    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads((layout / "blobs/sha256" / index["manifests"][0]["digest"][7:]).read_text())
    found = {k.split(".", 3)[3]: v for k, v in manifest["annotations"].items() if ".patch." in k}
    assert sorted(found) == ["001.log", "002.names", "003.drop"]
    assert found["001.log"] == "feature: the engine counts its starts [demo #12 (open)]"


def test_a_whiteout_of_a_lower_layer_is_honoured(shop: Shop) -> None:
    """A base that removes a module of the wheel again does not hold the pinned release."""
    shop.rebase([*shop.tars(), tar_of([folder(f"{SITE}/demo"), member(f"{SITE}/demo/.wh.core.py")])])
    done = shop.build()
    assert done.status == 1
    assert done.json["problems"][0]["reason"] == "base-not-pristine"
    assert "demo/core.py is missing" in done.json["problems"][0]["message"]


def test_an_opaque_directory_hides_what_lies_below(shop: Shop) -> None:
    shop.rebase([*shop.tars(), tar_of([member(f"{SITE}/demo/data/.wh..wh..opq")])])
    assert "demo/data/text.txt is missing" in shop.build().json["problems"][0]["message"]


def test_plain_layers_are_read_too(shop: Shop) -> None:
    shop.rebase(shop.tars(), gz=False)
    built(shop)


def test_the_scan_of_a_layer_is_remembered_and_a_damaged_note_is_not_believed(shop: Shop) -> None:
    first = (built(shop), (shop.out / "image.digest").read_text())[1]
    notes = sorted((shop.cache / "layers").iterdir())
    assert len(notes) == 3
    for note in notes:
        note.write_bytes(note.read_bytes()[:-20])
    built(shop)
    assert (shop.out / "image.digest").read_text() == first


def test_bytecode_is_checked_and_names_the_path_in_the_image(shop: Shop) -> None:
    import marshal
    import sys

    mine = f"3.{sys.version_info.minor}"
    shop.edit_pin('python = "3.12"', f'python = "{mine}"\nbytecode = "checked-hash"')
    for name in ("default", "default-tool"):
        path = shop.demo.series / f"image/{name}.txt"
        needs = ("demo==1.0",) if name == "default" else ("tiny>=1",)
        from patchforge.image.requirements import head
        from patchforge.series.pin import read_pin

        body = path.read_text().split("\n", 3)[3]
        path.write_text(head(read_pin(shop.pin, "x").images[0], needs) + body)
    from stubs import installed_tar

    site = SITE.replace("3.12", mine)
    shop.rebase([installed_tar(shop.wheel, site, f"python{mine}")])
    first = shop.build()
    assert first.status == 0, first.out
    members, read = layer_of(shop.out / "layout", 2)
    compiled = [m.name for m in members if m.name.endswith(".pyc")]
    assert compiled == [
        f"{site}/demo/__pycache__/{name}.cpython-3{sys.version_info.minor}.pyc" for name in ("core", "extra")
    ]
    data = read(compiled[0])
    assert data[4:8] == b"\3\0\0\0"
    assert marshal.loads(data[16:]).co_filename == f"/{site}/demo/core.py"
    assert shop.build("--check").json["digest"] == first.json["digest"]


def holding(top: Path, needle: bytes) -> list[str]:
    """The files below ``top`` that hold ``needle``, layers unpacked."""
    found = []
    for path in top.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            if needle in (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data):
                found.append(path.relative_to(top).as_posix())
    return found


@pytest.mark.parametrize("backend", ["oci", "context"])
def test_the_builders_key_is_nowhere(shop: Shop, monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    """Neither the one in the environment nor the one in a settings file of the project."""
    keys = ("0123456789feedfacecafe00", "00cafefacefeed9876543210")
    monkeypatch.setenv("VLLM_API_KEY", keys[0])
    for place in (shop.root, shop.demo.series, shop.demo.patches):
        (place / ".env").write_text(f"VLLM_API_KEY={keys[1]}\n")
    base = ("--base", str(shop.base)) if backend == "oci" else ()
    done = shop.run("build-image", "--backend", backend, *base)
    assert done.status == 0, done.err
    for key in keys:
        assert key not in done.out + done.err
        assert holding(shop.out, key.encode()) == []
    # The same look finds what is there: a line of the patched module in a layer, of the patch in a context.
    line = b"\n        self.starts = 1\n        return" if backend == "oci" else b"\n+        self.starts = 1\n"
    (place,) = (path for path in holding(shop.out, line) if not path.endswith(".json"))
    assert place.startswith("layout/blobs/sha256/" if backend == "oci" else "context/project/patches/")


def test_the_base_is_not_changed(shop: Shop) -> None:
    before = {p: hashlib.sha256(p.read_bytes()).hexdigest() for p in shop.base.rglob("*") if p.is_file()}
    built(shop)
    built(shop)
    assert {p: hashlib.sha256(p.read_bytes()).hexdigest() for p in shop.base.rglob("*") if p.is_file()} == before
