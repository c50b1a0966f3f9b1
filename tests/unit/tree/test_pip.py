"""A wheel that pip installs, patched, imported, uninstalled: nothing is left behind and nothing is lost."""

from __future__ import annotations

import os
import py_compile
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from installed import FILES, FIRST, SCHEMA, Place, record_row
from patchforge.engine.apply import Applied, ApplyOptions, apply_series
from patchforge.engine.revert import revert_installed
from patchforge.engine.verify import verify
from patchforge.errors import TreeError
from patchforge.tree.locate import locate
from patchforge.tree.target import open_installed
from trees import Snapshot, snapshot
from wheels import Environment, build_wheel

INFO = "demo-1.0.dist-info"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment.create(tmp_path_factory.mktemp("venv"))


@pytest.fixture(scope="module")
def installed(environment: Environment, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what pip makes of the wheel, times included: each test begins with it, and pip runs once for all."""
    empty = set(os.listdir(environment.site))
    environment.install(wheel)
    copy = tmp_path_factory.mktemp("installed")
    for name in set(os.listdir(environment.site)) - empty:
        shutil.copytree(environment.site / name, copy / name)
        shutil.rmtree(environment.site / name)
    return copy


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"), FILES)


class Demo:
    """The demo distribution as pip installed it, and its series."""

    def __init__(self, environment: Environment, wheel: Path, installed: Path, base: Path) -> None:
        self.environment, self.wheel, self.project = environment, wheel, Place(base)
        self.empty = set(os.listdir(environment.site))
        shutil.copytree(installed, environment.site, dirs_exist_ok=True)

    @property
    def site(self) -> Path:
        return self.environment.site

    def apply(self, patches: dict[str, bytes]) -> Applied:
        series = self.project.series(patches)
        with open_installed(locate(["demo"], self.environment.python), "demo", True) as target:
            return apply_series(series, target, SCHEMA, ApplyOptions())

    def revert(self) -> None:
        with open_installed(locate(["demo"], self.environment.python), "demo", True) as target:
            assert revert_installed(target).status == 0

    def sources(self) -> Snapshot:
        """What pip installed, without bytecode and without the directories that only hold it."""
        found = snapshot(self.site)
        return {
            path: entry
            for path, entry in found.items()
            if path.startswith(("demo/", INFO)) and "__pycache__" not in path and entry[0] != "directory"
        }


@pytest.fixture
def demo(environment: Environment, wheel: Path, installed: Path, tmp_path: Path) -> Iterator[Demo]:
    made = Demo(environment, wheel, installed, tmp_path)
    yield made
    for name in set(os.listdir(environment.site)) - made.empty:
        shutil.rmtree(environment.site / name)


def test_it_is_imported_as_patched_and_uninstalled_without_a_trace(demo: Demo) -> None:
    before, record = demo.sources(), (demo.site / INFO / "RECORD").read_bytes()
    assert demo.environment.run("import demo.core as c, demo.old; print(c.x10)") == "10"
    assert demo.apply(FIRST).outcome == "applied"
    assert demo.environment.run("import demo.core as c, demo.new.deep.made as m; print(c.x10, m.MADE)") == "99 1"
    demo.environment.run("try:\n import demo.old\nexcept ImportError: pass\nelse: raise SystemExit('still there')")
    assert "No broken requirements" in demo.environment.pip("check")
    shown = demo.environment.pip("show", "-f", "demo")
    assert "demo/new/deep/made.py" in shown
    assert f"{INFO}/patchforge/state.json" in shown
    assert "demo/old.py" not in shown
    assert "Cannot locate" not in shown
    assert demo.apply(FIRST).outcome == "already"
    demo.revert()
    assert demo.sources() == before
    assert (demo.site / INFO / "RECORD").read_bytes() == record
    assert demo.environment.run("import demo.core as c, demo.old; print(c.x10)") == "10"
    demo.apply(FIRST)
    demo.environment.run("import demo.core, demo.new.deep.made")
    demo.environment.pip("uninstall", "--yes", "demo")
    assert set(os.listdir(demo.site)) == demo.empty


@pytest.mark.parametrize("mode", ["TIMESTAMP", "UNCHECKED_HASH"])
def test_stale_bytecode_is_not_what_runs(demo: Demo, mode: str) -> None:
    """The edit keeps the size, and the old bytecode is made to fit the time of the new source."""
    source = demo.site / "demo/core.py"
    os.utime(source, (2_000_000_000, 2_000_000_000))
    cached = py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode[mode])
    assert cached is not None
    size = source.stat().st_size
    demo.apply(FIRST)
    assert source.stat().st_size == size
    os.utime(source, (2_000_000_000, 2_000_000_000))
    assert demo.environment.run("import demo.core as c; print(c.x10)") == "99"


@pytest.mark.parametrize("left_over", [False, True], ids=["as-pip-does", "state-left-over"])
def test_a_reinstallation_is_noticed(demo: Demo, left_over: bool) -> None:
    before = demo.sources()
    demo.apply(FIRST)
    state = (demo.site / INFO / "patchforge/state.json").read_bytes()
    demo.environment.install(demo.wheel, "--force-reinstall")
    assert demo.sources() == before
    if left_over:
        (demo.site / INFO / "patchforge").mkdir()
        (demo.site / INFO / "patchforge/state.json").write_bytes(state)
    series = demo.project.series(FIRST)
    with open_installed(locate(["demo"], demo.environment.python), "demo", False) as target:
        found = verify(series, target)
        assert found.result == "pristine"
        assert target.reinstalled == left_over
    assert demo.apply(FIRST).outcome == "applied"
    demo.revert()
    assert demo.sources() == before


def test_a_foreign_edit_is_named(demo: Demo) -> None:
    (demo.site / "demo/core.py").write_bytes(FILES["demo/core.py"][0].replace(b"x30 = 30", b"x30 = 31"))
    before = demo.sources()
    done = demo.apply(FIRST)
    assert done.status == 1
    assert [(problem.reason, problem.file) for problem in done.problems] == [("foreign", "core.py")]
    assert demo.sources() == before


def by_hand(demo: Demo, record: bool) -> None:
    """Make one of the changes of the series, with or without RECORD."""
    data = FILES["demo/core.py"][0].replace(b"x10 = 10", b"x10 = 99")
    (demo.site / "demo/core.py").write_bytes(data)
    if record:
        path = demo.site / INFO / "RECORD"
        rows = [row for row in path.read_text().splitlines() if not row.startswith("demo/core.py,")]
        path.write_text("\n".join([*rows, record_row("demo/core.py", data)]) + "\n")


@pytest.mark.parametrize("record", [False, True])
def test_a_tree_partly_patched_by_hand_is_refused(demo: Demo, record: bool) -> None:
    by_hand(demo, record)
    before = demo.sources()
    done = demo.apply(FIRST)
    assert done.status == 1
    failure = done.results[0].failure
    assert failure is not None
    assert (failure.file, failure.hunk) == ("core.py", 1)
    assert demo.sources() == before


@pytest.mark.parametrize("kind", ["edited", "gone", "link", "directory"])
def test_what_is_altered_afterwards_is_named(demo: Demo, kind: str, tmp_path: Path) -> None:
    demo.apply(FIRST)
    path = demo.site / "demo/core.py"
    path.unlink()
    match kind:
        case "edited":
            path.write_bytes(b"x = 1\n")
        case "link":
            path.symlink_to(tmp_path)
        case "directory":
            path.mkdir()
    before = demo.sources()
    with pytest.raises(TreeError, match=r"core\.py") as told:
        demo.apply(FIRST)
    assert told.value.reason in ("altered", "path")
    assert demo.sources() == before


def test_another_version_is_refused(demo: Demo, tmp_path: Path, wheel: Path) -> None:
    from patchforge.cli.targets import Where, opened

    newer = build_wheel(tmp_path / "newer", {**FILES, "demo/core.py": (b"x = 1\n", 0o644)}, version="1.1")
    demo.environment.install(newer)
    where = Where(project=demo.project.project, python=demo.environment.python)
    with (
        pytest.raises(TreeError, match=r"demo 1\.1 is installed") as told,
        opened(where, demo.project.series(FIRST), True),
    ):
        pass
    assert told.value.reason == "version"
    demo.environment.pip("uninstall", "--yes", "demo")
    assert set(os.listdir(demo.site)) == demo.empty


def test_an_upgrade_over_a_patched_tree_leaves_nothing_of_ours(demo: Demo, tmp_path: Path) -> None:
    demo.apply(FIRST)
    newer = build_wheel(tmp_path / "newer", {"demo/__init__.py": (b"VERSION = 2\n", 0o644)}, version="1.1")
    demo.environment.install(newer)
    found = {path for path, entry in snapshot(demo.site).items() if entry[0] == "file" and path.startswith("demo")}
    assert {path for path in found if not path.startswith("demo-1.1.dist-info/") and "__pycache__" not in path} == {
        "demo/__init__.py"
    }


def test_rows_of_pip_are_kept_byte_for_byte(demo: Demo) -> None:
    """Whatever its line ends and order are: only the rows of touched files differ."""
    path = demo.site / INFO / "RECORD"
    before = path.read_bytes().split(b"\n")
    demo.apply(FIRST)
    after = path.read_bytes().split(b"\n")
    gone = {row.partition(b",")[0].decode() for row in before if row not in after}
    touched = {"demo/core.py", "demo/plain.txt", "demo/old.py", "demo/sub/only.py", "demo/moved.txt"}
    assert touched <= gone <= touched | {"demo/run.sh"}
    assert {row.endswith(b"\r") for row in after if row} == {row.endswith(b"\r") for row in before if row}
