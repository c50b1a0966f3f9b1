"""A journal found in a tree: believed only when a run on this tree could have written it, and never a dead end."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from installed import FIRST, SECOND, Place, patch
from patchforge.errors import TreeError
from patchforge.tree.journal import COMMIT, PREPARE, Journal, Op, parse_journal, temp_name
from trees import snapshot

INFO = "demo-1.0.dist-info"
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.install()
    (tmp_path / "outside").write_bytes(b"precious")
    (made.site / "other").mkdir()
    (made.site / "other/module.py").write_bytes(b"OTHER = 1\n")
    (made.site / "other/empty").mkdir()
    (made.site / "demo/lib.so").write_bytes(b"library")
    (made.site / "demo/linked").symlink_to(tmp_path)
    return made


def gone(path: str) -> dict[str, Any]:
    return {"ops": [{"path": path, "before": None, "after": None}]}


HOSTILE: dict[str, Any] = {
    "up": gone("../outside"),
    "up from inside": gone("demo/../../outside"),
    "absolute": gone("/outside"),
    "dot": gone("demo/./core.py"),
    "another package": gone("other/module.py"),
    "a name that starts alike": gone("demolition/module.py"),
    "its metadata": gone(f"{INFO}/METADATA"),
    "other metadata": gone("other-1.0.dist-info/RECORD"),
    "a library": gone("demo/lib.so"),
    "git": gone("demo/.git/config"),
    "not a string": gone(7),  # type: ignore[arg-type]
    "the tree itself": gone("demo"),
    "nothing": gone(""),
    "a hash that is none": {"ops": [{"path": "demo/core.py", "before": 7, "after": None}]},
    "twice": {"ops": gone("demo/core.py")["ops"] * 2},
    "ops a string": {"ops": "x"},
    "op a string": {"ops": ["x"]},
    "remove up": {"remove": ["../../outside"]},
    "remove source": {"remove": ["demo/core.py"]},
    "remove of another package": {"remove": ["other/__pycache__/module.cpython-311.pyc"]},
    "remove behind a parent": {"remove": ["demo/__pycache__/../../other/x.pyc"]},
    "remove a number": {"remove": [7]},
    "remove a string": {"remove": "x.pyc"},
    "made up": {"made": ["../empty"]},
    "made elsewhere": {"made": ["other/empty"]},
    "made nothing": {"made": [""]},
    "an escape for the terminal": {"what": "\x1b[2J"},
    "what is no text": {"what": 7},
    "another schema": {"schema": 2},
    "a list": ["x"],
    "a number": 7,
}


def everything(place: Place) -> dict[str, object]:
    found: dict[str, object] = dict(snapshot(place.base))
    return {path: entry for path, entry in found.items() if not path.endswith((COMMIT, PREPARE))}


@pytest.mark.parametrize("journal", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", [COMMIT, PREPARE])
def test_a_hostile_journal_reaches_nothing(place: Place, journal: Any, name: str) -> None:
    if isinstance(journal, dict):
        journal = {"schema": 1, "what": "x", "ops": [], "remove": [], "made": [], **journal}
    (place.site / INFO / name).write_text(json.dumps(journal))
    before = everything(place)
    if name == COMMIT:
        with pytest.raises(TreeError, match="cannot be believed") as told:
            place.recover()
        assert str(told.value).replace("\n", "").isprintable()
        assert "delete this file" in str(told.value)
    else:
        assert place.recover() == "an interrupted run had changed nothing; its journal was removed"
        assert not (place.site / INFO / PREPARE).exists()
    assert everything(place) == before


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff", b"[" * 100_000, b'{"schema": 1'], ids=["empty", "cut", "latin", "deep", "half"]
)
@pytest.mark.parametrize("name", [COMMIT, PREPARE])
def test_a_journal_that_is_none(place: Place, data: bytes, name: str) -> None:
    (place.site / INFO / name).write_bytes(data)
    before = everything(place)
    try:
        place.recover()
    except TreeError as error:
        assert name == COMMIT
        assert error.reason == "journal"
    assert everything(place) == before


@pytest.mark.parametrize("kind", ["link", "pipe", "directory", "huge"])
@pytest.mark.parametrize("name", [COMMIT, PREPARE])
def test_only_a_small_regular_file_is_a_journal(place: Place, kind: str, name: str) -> None:
    path = place.site / INFO / name
    match kind:
        case "link":
            path.symlink_to(place.base / "outside")
        case "pipe":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case _:
            with path.open("wb") as stream:
                stream.truncate(65 << 20)
    before = None if kind == "huge" else snapshot(place.base)
    with pytest.raises(TreeError):
        place.recover()
    assert before is None or snapshot(place.base) == before


@pytest.mark.parametrize("path", ["demo/linked/outside", "demo/linked/__pycache__/x.pyc"])
def test_a_journal_is_not_followed_through_links(place: Place, path: str) -> None:
    key = {"remove": [path]} if path.endswith("pyc") else gone(path)
    (place.base / "__pycache__").mkdir()
    (place.base / "__pycache__/x.pyc").write_bytes(b"precious")
    (place.site / INFO / COMMIT).write_text(
        json.dumps({"schema": 1, "what": "x", "ops": [], "remove": [], "made": [], **key})
    )
    with pytest.raises(TreeError, match="symbolic link"):
        place.recover()
    assert (place.base / "outside").read_bytes() == (place.base / "__pycache__/x.pyc").read_bytes() == b"precious"


@pytest.mark.parametrize("kind", ["link", "link to nothing", "file", "directory"])
def test_what_lies_where_a_new_file_waits(place: Place, kind: str) -> None:
    """It is removed and not written through; a directory stops the change, and stays."""
    waiting = place.site / "demo/.core.py.patchforge-tmp"
    match kind:
        case "file":
            waiting.write_bytes(b"x")
        case "directory":
            waiting.mkdir()
        case _:
            waiting.symlink_to(place.base / ("outside" if kind == "link" else "none"))
    old = place.look()
    if kind == "directory":
        with pytest.raises(TreeError, match="nothing was changed"):
            place.apply(FIRST)
        assert place.look() == old
        assert place.recover() is None
        return
    place.apply(FIRST)
    assert not (place.base / "none").exists()
    assert (place.base / "outside").read_bytes() == b"precious"
    assert not (place.site / "demo/core.py").is_symlink()
    assert not os.path.lexists(waiting)


def test_a_journal_is_read_back_as_it_was_written() -> None:
    ops = (Op("demo/ä b.py", None, "1"), Op("i/RECORD", "2", "3"), Op("i/patchforge/state.json", None, "4"))
    remove = ("demo/__pycache__/x.cpython-311.opt-1.pyc", "demo/x.pyc")
    journal = Journal("apply 1 patches", ops, remove, ("demo/new.so", "i/patchforge", "demo"))
    assert parse_journal(journal.dump(), "demo", "i") == journal
    bare = Journal("x", (Op("a", None, "1"),), ("__pycache__/a.x.pyc",), ("b", "b/c"))
    assert parse_journal(bare.dump(), "", "") == bare


@pytest.mark.parametrize("name", ["x" * 255, "ä" * 127, "y" * 240, "short"])
def test_the_longest_names_have_room_to_wait(name: str) -> None:
    waiting = temp_name(f"demo/{name}")
    assert waiting.startswith("demo/.") and waiting.endswith(".patchforge-tmp")
    assert len(waiting.removeprefix("demo/").encode()) <= 255
    assert temp_name(f"demo/{name[:-1]}z") != waiting


def half_done(place: Place, patches: dict[str, bytes], after: int, revert: bool = False) -> None:
    """Kill a run when it has put ``after`` files in their place."""
    child = os.fork()
    if child == 0:
        try:
            count = 0

            def hook(step: str) -> None:
                nonlocal count
                count += step.startswith(("done ", "removed demo/"))
                if count > after:
                    os.kill(os.getpid(), signal.SIGKILL)

            place.revert(hook) if revert else place.apply(patches, hook)
        finally:
            os._exit(7)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)


def reinstall(place: Place, record: bool) -> None:
    """Put the installed files back as an installer does, which knows nothing of our files."""
    fresh = Place(place.base / "fresh")
    fresh.install()
    if not record:
        # Another installer writes its rows in another order.
        path = fresh.site / INFO / "RECORD"
        path.write_text("\n".join(reversed(path.read_text().splitlines())) + "\n")
    shutil.copytree(fresh.site, place.site, dirs_exist_ok=True)
    shutil.rmtree(fresh.base)


@pytest.mark.parametrize("same_record", [True, False], ids=["same-record", "other-record"])
@pytest.mark.parametrize("what", ["apply", "revert", "replace"])
@pytest.mark.parametrize("after", [0, 1, 3, 5])
def test_a_reinstallation_gets_one_out_of_a_half_done_change(
    tmp_path: Path, what: str, after: int, same_record: bool
) -> None:
    place = Place(tmp_path)
    place.install()
    pristine = place.look()
    if what != "apply":
        place.apply(FIRST)
    half_done(place, SECOND if what == "replace" else FIRST, after, revert=what == "revert")
    reinstall(place, same_record)
    told = place.recover()
    assert told is not None
    assert place.recover() is None
    place.apply(SECOND)
    place.revert()
    found = place.look()
    if not same_record:
        for files in (found, pristine):
            files.pop(f"{INFO}/RECORD")
    assert found == pristine


def test_a_foreign_edit_of_a_half_done_tree_is_named_and_kept(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install()
    half_done(place, FIRST, 1)
    for name in ("core.py", "plain.txt", "sub/only.py"):
        (place.site / "demo" / name).write_bytes(b"mine\n")
    before = place.look()
    with pytest.raises(TreeError, match=r"changed by someone else.*demo/core\.py, demo/plain\.txt, demo/sub/only\.py"):
        place.apply(FIRST)
    assert place.look() == before


def test_new_bytes_that_were_damaged_are_not_put_in_place(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install()
    half_done(place, FIRST, 0)
    waiting = next(place.site.glob("demo/.plain.txt.patchforge-tmp"))
    waiting.write_bytes(waiting.read_bytes()[:-1])
    with pytest.raises(TreeError, match=r"demo/plain\.txt"):
        place.recover()
    assert (place.site / "demo/plain.txt").read_bytes() == b"plain\ntext\n"


def test_a_file_changed_while_the_run_is_at_work_is_not_lost(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install()
    old = place.look()

    def hook(step: str) -> None:
        if step == "flushed demo/core.py":
            (place.site / "demo/plain.txt").write_bytes(b"changed meanwhile\n")

    with pytest.raises(TreeError, match="changed by someone else a moment ago; nothing was changed"):
        place.apply(FIRST, hook)
    old["demo/plain.txt"] = ("file", 0o640, b"changed meanwhile\n")
    assert place.look() == old


def test_a_file_made_while_the_run_is_at_work_is_not_lost(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install()

    def hook(step: str) -> None:
        if step == "flushed demo/core.py":
            (place.site / "demo/tool.sh").write_bytes(b"mine\n")

    with pytest.raises(TreeError, match="a moment ago"):
        place.apply(FIRST, hook)
    assert (place.site / "demo/tool.sh").read_bytes() == b"mine\n"


def test_looking_only_says_that_a_run_was_interrupted(tmp_path: Path) -> None:
    from patchforge.tree.locate import in_directory
    from patchforge.tree.target import open_installed

    place = Place(tmp_path)
    place.install()
    half_done(place, FIRST, 1)
    before = snapshot(place.site)
    installed = in_directory(place.site, ["demo"], "demo")
    assert installed is not None
    with open_installed(installed, "demo", False) as target:
        assert "interrupted run left its journal (commit)" in (target.recovered or "")
    assert snapshot(place.site) == before


def test_a_series_of_many_directories(tmp_path: Path) -> None:
    """More than the descriptors that are kept open, or than a process may have."""
    place = Place(tmp_path)
    place.install()
    old = place.look()
    diff = "".join(
        f"diff --git a/d{n}/f b/d{n}/f\nnew file mode 100644\n--- /dev/null\n+++ b/d{n}/f\n@@ -0,0 +1 @@\n+{n}\n"
        for n in range(600)
    )
    place.apply({"many": patch("many", diff)})
    assert (place.site / "demo/d599/f").read_bytes() == b"599\n"
    place.revert()
    assert place.look() == old
