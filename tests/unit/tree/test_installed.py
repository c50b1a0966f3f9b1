"""What an apply does to an installed distribution beyond the bytes of the patches."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from installed import FILES, FIRST, SECOND, Place, patch, record_row
from patchforge.errors import TreeError
from patchforge.tree.locate import in_directory, locate
from trees import snapshot


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.install()
    return made


def rows(place: Place) -> dict[str, str]:
    text = (place.site / "demo-1.0.dist-info/RECORD").read_text()
    return {line.partition(",")[0]: line for line in text.splitlines()}


def test_record_is_true_after_apply_and_pristine_after_revert(place: Place) -> None:
    before = (place.site / "demo-1.0.dist-info/RECORD").read_bytes()
    old = place.look()
    place.apply(FIRST)
    found = rows(place)
    files = {k: v for k, v in place.look().items() if v[0] == "file"}
    assert set(found) == set(files)
    for path, (_, _, data) in files.items():
        if not path.endswith("/RECORD"):
            assert found[path] == record_row(path, data)
    place.revert()
    assert (place.site / "demo-1.0.dist-info/RECORD").read_bytes() == before
    assert place.look() == old


def test_hard_links_elsewhere_keep_their_bytes(place: Place, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    for path in FILES:
        os.link(place.site / path, cache / path.replace("/", "-"))
    record = cache / "RECORD"
    os.link(place.site / "demo-1.0.dist-info/RECORD", record)
    before = snapshot(cache)
    place.apply(FIRST)
    assert snapshot(cache) == before
    place.revert()
    assert snapshot(cache) == before


def test_modes_and_owners_are_kept(place: Place) -> None:
    own = (os.getuid(), os.getgid())
    with contextlib.suppress(PermissionError):
        os.chown(place.site / "demo/plain.txt", 1234, 2345)
        own = (1234, 2345)
    place.apply(FIRST)
    info = (place.site / "demo/plain.txt").stat()
    assert info.st_mode & 0o777 == 0o640
    assert (info.st_uid, info.st_gid) == own
    assert (place.site / "demo/run.sh").stat().st_mode & 0o777 == 0o644
    assert (place.site / "demo/tool.sh").stat().st_mode & 0o111
    place.revert()
    info = (place.site / "demo/plain.txt").stat()
    assert (info.st_uid, info.st_gid) == own
    assert (place.site / "demo/run.sh").stat().st_mode & 0o777 == 0o755


def test_the_time_of_a_changed_file_changes(place: Place) -> None:
    path = place.site / "demo/core.py"
    os.utime(path, (1000, 1000))
    place.apply(FIRST)
    assert path.stat().st_mtime > 1000
    now = path.stat().st_mtime_ns
    place.revert()
    assert path.stat().st_mtime_ns != now


def run(place: Place, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=place.site,
        env={**os.environ, "PYTHONPATH": str(place.site)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_stale_bytecode_is_not_run(place: Place) -> None:
    """A same-size edit within the same second: Python would trust the old bytecode if it stayed and the times agreed."""
    assert run(place, "import demo.core as c; print(c.x10)") == "10"
    place.apply(FIRST)
    assert run(place, "import demo.core as c; print(c.x10)") == "99"
    place.revert()
    assert run(place, "import demo.core as c; print(c.x10)") == "10"


def test_every_kind_of_bytecode_of_a_changed_module_goes(place: Place) -> None:
    cache = place.site / "demo/__pycache__"
    source = place.site / "demo/core.py"
    kept = ["corex.cpython-311.pyc", "core.txt", "__init__.cpython-311.pyc"]
    gone = ["core.cpython-311.pyc", "core.cpython-312.opt-1.pyc", "core.cpython-39.opt-2.pyc", "core.pypy310-pp73.pyc"]
    for name in kept + gone:
        (cache / name).write_bytes(b"x")
    (place.site / "demo/core.pyc").write_bytes(b"x")
    import py_compile

    py_compile.compile(
        str(source),
        cfile=str(cache / "core.cpython-313.pyc"),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    place.apply(FIRST)
    left = {p.name for p in cache.iterdir()}
    assert set(kept) <= left
    assert not left & {*gone, "core.cpython-313.pyc"}
    assert not (place.site / "demo/core.pyc").exists()


def test_directories_that_become_empty_go_and_come_back(place: Place) -> None:
    place.apply(FIRST)
    assert not (place.site / "demo/sub").exists()
    assert (place.site / "demo/new/deep").is_dir()
    place.revert()
    assert (place.site / "demo/sub/only.py").exists()
    assert not (place.site / "demo/new").exists()
    assert not (place.site / "demo-1.0.dist-info/patchforge").exists()


def test_the_state_names_no_time_and_no_path_of_the_machine(place: Place, tmp_path: Path) -> None:
    place.apply(FIRST)
    data = (place.site / "demo-1.0.dist-info/patchforge/state.json").read_bytes()
    assert str(tmp_path).encode() not in data
    other = Place(tmp_path / "other")
    time.sleep(0.01)
    other.install()
    other.apply(FIRST)
    assert (other.site / "demo-1.0.dist-info/patchforge/state.json").read_bytes() == data
    assert other.look() == place.look()


def test_a_newer_series_on_top_of_an_older_equals_a_fresh_one(place: Place, tmp_path: Path) -> None:
    place.apply(FIRST)
    done = place.apply(SECOND)
    assert done.status == 0
    fresh = Place(tmp_path / "fresh")
    fresh.install()
    fresh.apply(SECOND)
    assert place.look() == fresh.look()
    place.revert()
    pristine = Place(tmp_path / "pristine")
    pristine.install()
    assert place.look() == pristine.look()


def test_a_damaged_state_is_said_and_changes_nothing(place: Place) -> None:
    place.apply(FIRST)
    state = place.site / "demo-1.0.dist-info/patchforge/state.json"
    for damage in (b"{", b"[]", b'{"schema": 99, "tool": "x"}', b'{"schema": 1}'):
        state.write_bytes(damage)
        before = place.look()
        for action in (lambda: place.apply(FIRST), place.revert):
            with pytest.raises(TreeError):
                action()
        assert place.look() == before


def test_a_state_that_lies_about_the_pristine_bytes_is_found_out(place: Place) -> None:
    place.apply(FIRST)
    path = place.site / "demo-1.0.dist-info/patchforge/state.json"
    document = json.loads(path.read_bytes())
    for file in document["files"]:
        if file["path"] == "core.py":
            file["edits"][0][2] = ["x10 = 66"]
    path.write_text(json.dumps(document))
    before = place.look()
    assert place.revert().status == 1
    assert place.look() == before


def test_without_record_nothing_is_proved(place: Place) -> None:
    (place.site / "demo-1.0.dist-info/RECORD").unlink()
    with pytest.raises(TreeError, match="no RECORD"):
        in_directory(place.site, ["demo"], "demo")


def test_a_distribution_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(TreeError, match="not installed"):
        locate(["demo"], None)


@pytest.mark.parametrize("name", ["a/b", "a"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_file_where_another_patch_needs_a_directory(place: Place, name: str, turned: bool) -> None:
    made = {
        "one": patch(
            "one",
            f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n",
        ),
        "two": patch(
            "two", "diff --git a/a/b/c b/a/b/c\nnew file mode 100644\n--- /dev/null\n+++ b/a/b/c\n@@ -0,0 +1 @@\n+x\n"
        ),
    }
    if turned:
        made = dict(reversed(made.items()))
    before = place.look()
    done = place.apply(made)
    assert done.status == 1
    failure = done.results[1].failure
    assert failure is not None
    assert "both a file and a directory" in failure.message
    assert place.look() == before


def test_new_modules_are_imported(place: Place) -> None:
    place.apply(FIRST)
    assert run(place, "import demo.new.deep.made as m; print(m.MADE)") == "1"


def write_record(place: Place, change: Callable[[list[str]], list[str]]) -> None:
    path = place.site / "demo-1.0.dist-info/RECORD"
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")


def unhashed(algorithm: str) -> Callable[[list[str]], list[str]]:
    return lambda rows: [f"demo/core.py,{algorithm},9" if row.startswith("demo/core.py,") else row for row in rows]


TAMPERED: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "row missing": (lambda rows: [row for row in rows if not row.startswith("demo/core.py,")], "does not list it"),
    "row twice": (lambda rows: [*rows, rows[1]], "twice"),
    "row without hash": (unhashed(""), "no sha256"),
    "row with another hash": (unhashed("sha512=abc"), "no sha256"),
    "row with a wrong hash": (unhashed("sha256=abc"), "not those that were installed"),
    "file of a patch listed": (lambda rows: [*rows, "demo/tool.sh,sha256=abc,3"], "is missing"),
}


@pytest.mark.parametrize(("change", "message"), TAMPERED.values(), ids=TAMPERED)
def test_a_record_that_proves_nothing_is_refused(
    place: Place, change: Callable[[list[str]], list[str]], message: str
) -> None:
    write_record(place, change)
    before = place.look()
    try:
        told = str(place.apply(FIRST))
    except TreeError as error:
        told = str(error)
    assert message in told
    assert place.look() == before


def test_a_record_changed_after_the_apply_is_not_guessed_at(place: Place) -> None:
    place.apply(FIRST)
    write_record(place, lambda rows: [row for row in rows if "core.py" not in row])
    before = place.look()
    for action in (lambda: place.apply(SECOND), place.revert):
        with pytest.raises(TreeError, match="RECORD was changed after the series was applied"):
            action()
    assert place.look() == before


@pytest.mark.parametrize("path", ["../../outside", "../other/module.py", "/outside", "../demo-1.0.dist-info/METADATA"])
def test_a_state_that_points_outside_reaches_nothing(place: Place, tmp_path: Path, path: str) -> None:
    """Else ``revert`` would write what a hostile wheel says, wherever it says."""
    (tmp_path / "outside").write_bytes(b"precious")
    (place.site / "other").mkdir()
    (place.site / "other/module.py").write_bytes(b"precious")
    place.apply(FIRST)
    state = place.site / "demo-1.0.dist-info/patchforge/state.json"
    document = json.loads(state.read_bytes())
    sha = hashlib.sha256(b"precious").hexdigest()
    document["files"].append({"path": path, "before": None, "after": sha})
    state.write_text(json.dumps(document))
    before = snapshot(tmp_path)
    for action in (lambda: place.apply(SECOND), place.revert, place.recover):
        with pytest.raises(TreeError, match="state file is damaged"):
            action()
    assert {k: v for k, v in snapshot(tmp_path).items() if "project" not in k} == {
        k: v for k, v in before.items() if "project" not in k
    }


SWAPS = [
    "demo/core.py",
    "demo/sub",
    "demo",
    "demo/__pycache__",
    "demo-1.0.dist-info/RECORD",
    "demo-1.0.dist-info/patchforge",
]


@pytest.mark.parametrize("path", SWAPS)
@pytest.mark.parametrize("applied", [False, True], ids=["apply", "revert"])
def test_a_link_in_the_tree_is_never_followed(place: Place, tmp_path: Path, path: str, applied: bool) -> None:
    if applied:
        place.apply(FIRST)
    target = place.site / path
    if not target.exists():
        if path.endswith("patchforge"):
            (tmp_path / "elsewhere").mkdir()
            target.symlink_to(tmp_path / "elsewhere")
        else:
            pytest.skip("not part of this change")
    else:
        target.rename(tmp_path / "elsewhere")
        target.symlink_to(tmp_path / "elsewhere")
    place.series(FIRST)
    before = snapshot(tmp_path)
    try:
        done = place.revert() if applied else place.apply(FIRST)
        assert done.status == 1
    except TreeError as error:
        assert "link" in str(error)
    assert snapshot(tmp_path) == before
