"""What an apply does to an installed distribution beyond the bytes of the patches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zipfile
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
    if os.geteuid() == 0:
        os.chown(place.site / "demo/plain.txt", 1234, 2345)
    place.apply(FIRST)
    info = (place.site / "demo/plain.txt").stat()
    assert info.st_mode & 0o777 == 0o640
    if os.geteuid() == 0:
        assert (info.st_uid, info.st_gid) == (1234, 2345)
    assert (place.site / "demo/run.sh").stat().st_mode & 0o777 == 0o644
    assert (place.site / "demo/tool.sh").stat().st_mode & 0o111
    place.revert()
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


JOURNALS = [
    {"ops": [{"path": "../outside", "before": None, "after": None}], "remove": [], "made": []},
    {"ops": [], "remove": ["../../outside"], "made": []},
    {"ops": [{"path": "/outside", "before": None, "after": None}], "remove": [], "made": []},
    {"ops": [{"path": "demo/./core.py", "before": None, "after": None}], "remove": [], "made": []},
    {"ops": [], "remove": [7], "made": []},
    {"ops": "x", "remove": [], "made": []},
    ["x"],
    "not json",
]


@pytest.mark.parametrize("journal", JOURNALS, ids=[str(n) for n in range(len(JOURNALS))])
@pytest.mark.parametrize("name", [".patchforge-commit", ".patchforge-prepare"])
def test_a_hostile_journal_reaches_nothing(place: Place, tmp_path: Path, journal: object, name: str) -> None:
    (tmp_path / "outside").write_bytes(b"precious")
    document = (
        journal
        if isinstance(journal, str)
        else json.dumps({"schema": 1, "what": "evil", **journal} if isinstance(journal, dict) else journal)
    )
    (place.site / "demo-1.0.dist-info" / name).write_text(document)
    core = (place.site / "demo/core.py").read_bytes()
    try:
        place.recover()
    except TreeError as error:
        assert "journal" in str(error)
    assert (tmp_path / "outside").read_bytes() == b"precious"
    assert (place.site / "demo/core.py").read_bytes() == core


def test_a_journal_is_not_followed_through_links(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_bytes(b"precious")
    (place.site / "demo/link").symlink_to(outside)
    document = {
        "schema": 1,
        "what": "evil",
        "ops": [{"path": "demo/link/victim", "before": None, "after": None}],
        "remove": ["demo/link/victim"],
        "made": [],
    }
    (place.site / "demo-1.0.dist-info/.patchforge-commit").write_text(json.dumps(document))
    with pytest.raises(TreeError):
        place.recover()
    assert (outside / "victim").read_bytes() == b"precious"


def test_editable_installs_are_refused(place: Place) -> None:
    (place.site / "demo-1.0.dist-info/direct_url.json").write_text(
        '{"url": "file:///x", "dir_info": {"editable": true}}'
    )
    with pytest.raises(TreeError, match="editable"):
        in_directory(place.site, ["demo"], "demo")


def test_without_record_nothing_is_proved(place: Place) -> None:
    (place.site / "demo-1.0.dist-info/RECORD").unlink()
    with pytest.raises(TreeError, match="no RECORD"):
        in_directory(place.site, ["demo"], "demo")


def test_a_distribution_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(TreeError, match="not installed"):
        locate(["demo"], None)


def test_a_zipped_tree_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "demo.zip", "w") as archive:
        archive.writestr("demo/__init__.py", "")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "demo.zip")])
    with pytest.raises(TreeError, match="zipped"):
        locate(["demo"], None)


def test_two_versions_side_by_side_are_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.site / "demo-0.9.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(place.site)])
    with pytest.raises(TreeError, match="several"):
        locate(["demo"], None)


def test_the_environment_of_another_interpreter(place: Place, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    site = next(venv.glob("lib/python*/site-packages"))
    place.site.rename(tmp_path / "away")
    for item in (tmp_path / "away").iterdir():
        item.rename(site / item.name)
    found = locate(["Demo"], str(venv / "bin/python"))
    assert (found.site, found.version) == (site, "1.0")


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
