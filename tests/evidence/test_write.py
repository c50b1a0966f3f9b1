"""``retire-scan --write``: what goes, what the project says afterwards, and everything that keeps a patch."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from demo import CORE, LOG, NAMES, TEXT, Demo

from patchforge import cli

STARTS = CORE.replace(b"        self.running = True\n", b"        self.running = True\n        self.starts = 1\n", 1)
ON_TOP = LOG.replace(b"carries #12", b"never").replace(b"starts = 1\n", b"starts = 1\n+        self.ready = 1\n")
ON_TOP = (
    ON_TOP.replace(b"@@ -4,6 +4,7 @@", b"@@ -5,6 +5,7 @@")
    .replace(b" class Engine:\n     def start", b"     def start")
    .replace(b"+        self.starts = 1\n", b"         self.starts = 1\n")
    .replace(b" \n     def stop(self):\n", b" \n     def stop(self):\n         self.running = False\n")
    .replace(b"@@ -5,6 +5,7 @@", b"@@ -5,7 +5,8 @@")
    .replace(b"contains starts", b"contains ready")
)


def release(demo: Demo, tmp_path: Path, core: bytes = CORE, text: bytes = TEXT, extra: bool = False) -> str:
    """A release in a directory whose name is a version."""
    other = tmp_path / "1.1"
    shutil.copytree(demo.site / "demo", other / "demo")
    (other / "demo/core.py").write_bytes(core)
    (other / "demo/data/text.txt").write_bytes(text)
    if extra:
        (other / "demo/extra.py").write_bytes(b"NEW = True\n")
    return str(other)


def files(demo: Demo) -> dict[str, bytes]:
    """The project's; what is proposed lies beside them, under build/."""
    every = {p.relative_to(demo.root).as_posix(): p.read_bytes() for p in demo.root.rglob("*") if p.is_file()}
    return {path: data for path, data in every.items() if not path.startswith("build/")}


def prepared(demo: Demo) -> None:
    for word in ("lock", "table"):
        done = demo.run(word, tree=word == "lock")
        assert done.status == 0, done.err


def test_a_landed_patch_goes_and_leaves_a_record(demo: Demo, tmp_path: Path) -> None:
    prepared(demo)
    before = files(demo)
    target = release(demo, tmp_path, core=STARTS)
    done = demo.run("retire-scan", "--against", target, "--write", "--format", "json")
    assert done.status == 0, done.err
    assert done.json["removed"] == ["log"]
    (log,) = [p for p in done.json["patches"] if p["name"] == "log"]
    assert log["retires"] == {"allowed": True, "why": "it comes off the release, every hunk at one place"}
    after = files(demo)
    assert set(before) - set(after) == {"patches/demo-1.0/log.patch"} and not set(after) - set(before)
    assert after["series/demo-1.0/series"] == b"names.patch\n"
    document = after["PATCHES.md"].decode()
    assert document.startswith("# Patches\n") and document.endswith("\nThe end.\n")
    begin = document.index("<!-- patchforge:retired demo-1.0 -->")
    record = document[begin : document.index("<!-- /patchforge:retired -->", begin)]
    assert "| Patch | Kind | What | Upstream | Retired at | Because |" in record
    (row,) = [line for line in record.splitlines() if line.startswith("| log ")]
    assert "| the engine counts its starts |" in row and "| 1.1 |" in row
    for word in ("check-table", "lint", "status", "apply", "verify"):
        done = demo.run(word, tree=word not in ("check-table", "lint"))
        assert done.status == 0, (word, done.err)
    assert demo.run("lock", "--check").status == 0


def test_the_record_grows_and_is_kept(demo: Demo, tmp_path: Path) -> None:
    prepared(demo)
    names = NAMES.replace(b"Retires-when: version >=1.1", b"Retires-when: carries #9")
    demo.write_patches(log=LOG, names=names)
    prepared(demo)
    assert demo.run("retire-scan", "--against", release(demo, tmp_path, core=STARTS), "--write").status == 0
    first = (demo.root / "PATCHES.md").read_text()
    shutil.rmtree(tmp_path / "1.1")
    target = release(demo, tmp_path, core=STARTS, text=TEXT.replace(b"two", b"zwei"), extra=True)
    done = demo.run("retire-scan", "--against", target, "--write")
    assert done.status == 0, done.err
    assert "retired names" in done.out, demo.run("retire-scan", "--against", target, "--explain", "names").out
    text = (demo.root / "PATCHES.md").read_text()
    assert [line[: line.index(" |")] for line in text.splitlines() if line.startswith(("| log", "| names"))] == [
        "| log",
        "| names",
    ]
    assert next(line for line in first.splitlines() if line.startswith("| log")) in text.splitlines()
    assert (demo.series / "series").read_bytes() == b""
    # A table made again leaves the record alone.
    assert demo.run("table", tree=False).status == 0
    assert (demo.root / "PATCHES.md").read_text() == text


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        (b"never", "its Retires-when says otherwise: never"),
        (b"version >=1.2", "whether its Retires-when holds cannot be told"),
        (b"when the maintainers agree", "its Retires-when is prose, which a person has to judge"),
    ],
)
def test_retires_when_has_the_last_word(demo: Demo, tmp_path: Path, condition: bytes, why: str) -> None:
    demo.write_patches(log=LOG.replace(b"carries #12", condition), names=NAMES)
    prepared(demo)
    before = files(demo)
    target = release(demo, tmp_path, core=STARTS)
    shutil.move(target, tmp_path / "elsewhere")
    done = demo.run("retire-scan", "--against", str(tmp_path / "elsewhere"), "--write")
    assert done.status == 0, done.err
    assert f"kept log: {why}" in done.out
    assert files(demo) == before


def test_nothing_landed_nothing_changed(demo: Demo, tmp_path: Path) -> None:
    prepared(demo)
    before = files(demo)
    done = demo.run("retire-scan", "--against", release(demo, tmp_path), "--write")
    assert done.status == 0
    assert "no patch landed at high confidence: nothing was changed" in done.out
    assert files(demo) == before


def test_a_patch_others_stand_on_is_not_torn_out(demo: Demo, tmp_path: Path) -> None:
    """It landed; but the pin, which the series is still for, needs it under the next one."""
    demo.write_patches(log=LOG, ready=ON_TOP)
    prepared(demo)
    before = files(demo)
    done = demo.run("retire-scan", "--against", release(demo, tmp_path, core=STARTS), "--write")
    assert done.status == 1, done.out
    assert "nothing was dropped: without log the series does not apply to its pin" in done.err
    assert "port the patch that needs it" in done.err
    assert files(demo) == before


def test_what_another_requires_is_kept(demo: Demo, tmp_path: Path) -> None:
    names = NAMES.replace(b"Cut-against", b"Requires: log\nCut-against")
    demo.write_patches(log=LOG, names=names)
    prepared(demo)
    before = files(demo)
    done = demo.run("retire-scan", "--against", release(demo, tmp_path, core=STARTS), "--write")
    assert "kept log: names requires it, and stays" in done.out
    assert files(demo) == before


def test_a_write_that_fails_half_way_leaves_the_project(demo: Demo, tmp_path: Path) -> None:
    prepared(demo)
    (demo.root / "PATCHES.md").write_text(
        (demo.root / "PATCHES.md").read_text() + "\n<!-- patchforge:retired demo-1.0 -->\nnever closed\n"
    )
    before = files(demo)
    done = demo.run("retire-scan", "--against", release(demo, tmp_path, core=STARTS), "--write")
    assert done.status == 2
    assert "PATCHES.md" in done.err and "the record of retired patches is not closed" in done.err
    assert files(demo) == before


def test_write_takes_a_project_and_one_release(demo: Demo, tmp_path: Path) -> None:
    target = release(demo, tmp_path, core=STARTS)
    done = demo.run("retire-scan", "--against", target, "--against", str(demo.site), "--write")
    assert done.status == 2 and "--write takes a project and one release" in done.err
    shutil.copy(demo.series / "series", demo.patches / "series")
    words = ["retire-scan", "--quilt", str(demo.patches), "--old", str(demo.site / "demo"), "--new", target, "--write"]
    assert cli.run(words) == 2
