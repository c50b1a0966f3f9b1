"""The releases a scan may be pointed at, the matrix of several, and the reports as Markdown and JSON."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from demo import CORE, TEXT, Demo

from patchforge import cli
from repository import Upstream
from wheels import build_wheel

STARTS = CORE.replace(b"        self.running = True\n", b"        self.running = True\n        self.starts = 1\n", 1)


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    """1.0 is the pin; 1.1 moves the place and has a fix of its own branch; 1.2 has the patch; 1.3 took it back."""
    made = Upstream.create(tmp_path / "up")
    base = {"src/demo/__init__.py": b"", "src/demo/core.py": CORE, "src/demo/data/text.txt": TEXT}
    made.commit("Begin", base)
    made.git("checkout", "--quiet", "-b", "releases/1.0")
    made.commit("A fix for this branch alone (#40)")
    made.tag("v1.0")
    made.git("checkout", "--quiet", "main")
    made.commit("Move it (#10)", {"src/demo/core.py": b"# later\n" * 9 + CORE})
    made.tag("v1.1")
    landed = made.commit("Count the starts (#12)", {"src/demo/core.py": b"# later\n" * 9 + STARTS})
    made.tag("v1.2")
    made.commit(
        f'Revert "Count the starts (#12)" (#14)\n\nThis reverts commit {landed}.',
        {"src/demo/core.py": b"# later\n" * 9 + CORE},
    )
    made.tag("v1.3")
    return made


def test_commits_of_a_repository(demo: Demo, upstream: Upstream) -> None:
    place = upstream.directory
    words = [word for tag in ("v1.1", "v1.2", "v1.3") for word in ("--against", f"{place}@{tag}")]
    done = demo.run("retire-scan", *words, "--format", "json")
    assert done.status == 0, done.err
    log = [p for p in done.json["patches"] if p["name"] == "log"]
    assert [(p["verdict"], p["confidence"]) for p in log] == [
        ("keep", "high"),
        ("landed", "high"),
        ("reverted", "high"),
    ]
    assert log[1]["signals"]["history"]["carries"].endswith("(Count the starts (#12))")
    assert log[2]["signals"]["history"]["reverted"].endswith('(Revert "Count the starts (#12)" (#14))')
    assert log[1]["evidence"] == [{"old": "core.py:5", "new": "core.py:14"}]
    assert [p["name"] for p in done.json["patches"] if "history" in p["signals"]] == ["log"] * 3
    # The pin's own branch had something that none of them has.
    assert all(len(t["lost"]) == 1 and t["lost"][0].endswith("alone (#40))") for t in done.json["targets"])


def test_a_commit_that_touched_the_lines_since(demo: Demo, upstream: Upstream) -> None:
    upstream.git("checkout", "--quiet", "v1.2")
    text = b"# later\n" * 9 + STARTS.replace(b"        self.running = True\n", b"        self.running = 1 == 1\n", 1)
    upstream.commit("Say it otherwise (#77)", {"src/demo/core.py": text.replace(b"1 == 1", b"True")})
    upstream.commit(
        "And again", {"src/demo/core.py": b"# later\n" * 9 + STARTS.replace(b"starts = 1", b"starts = 1  # one")}
    )
    done = demo.run("retire-scan", "--against", f"{upstream.directory}@HEAD", "--explain", "log")
    assert done.status == 0, done.err
    assert "log    landed   medium" in done.out
    assert "touched since by" in done.out and "(And again)" in done.out


def test_a_wheel_and_the_repository_with_its_history(demo: Demo, upstream: Upstream, tmp_path: Path) -> None:
    """The wheel is what is judged; the tag of its version tells the history."""
    files = {"demo/__init__.py": (b"", 0o644), "demo/core.py": (CORE, 0o644), "demo/data/text.txt": (TEXT, 0o644)}
    for version, verdict in (("1.1", "keep"), ("1.3", "reverted")):
        wheel = build_wheel(tmp_path / "wheels", files, version=version)
        done = demo.run("retire-scan", "--against", str(wheel), "--git", str(upstream.directory), "--format", "json")
        assert done.status == 0, done.err
        assert [p["verdict"] for p in done.json["patches"]] == [verdict, "keep"]
    wheel = build_wheel(tmp_path / "wheels", files, version="9.9")
    done = demo.run("retire-scan", "--against", str(wheel), "--git", str(upstream.directory))
    assert done.status == 2 and "has no tag for 9.9" in done.err
    done = demo.run("retire-scan", "--against", str(demo.site), "--git", str(upstream.directory))
    assert done.status == 2 and "a directory has no version" in done.err


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("{up}@nothing", "has no commit 'nothing'"),
        ("{up}@--all", "has no commit '--all'"),
        ("{tmp}@v1.0", "is no release: there is no such directory"),
        ("{tmp}/empty", "holds no file of the tree"),
    ],
)
def test_targets_that_are_none(demo: Demo, upstream: Upstream, tmp_path: Path, target: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    done = demo.run("retire-scan", "--against", target.format(up=upstream.directory, tmp=tmp_path))
    assert done.status == 2
    assert message in done.err


def test_radar_shows_the_matrix_and_the_first_of_each(demo: Demo, upstream: Upstream) -> None:
    names = [f"{upstream.directory}@{tag}" for tag in ("v1.0", "v1.1", "v1.2", "v1.3")]
    words = [word for name in names for word in ("--against", name)]
    done = demo.run("radar", *words, "--format", "json")
    assert done.status == 0, done.err
    by_name = {p["name"]: p for p in done.json["patches"]}
    assert [r["result"] for r in by_name["log"]["releases"]] == ["applies", "offset", "lands", "reverted"]
    assert by_name["log"]["first"] == {"offset": names[1], "lands": names[2], "breaks": None}
    assert [r["result"] for r in by_name["names"]["releases"]] == ["applies"] * 4
    shown = demo.run("radar", *words)
    assert shown.status == 0
    (row,) = [line for line in shown.out.splitlines() if line.startswith("log ")]
    assert row.split() == ["log", "applies", "offset", "lands", "reverted"]
    assert f"{names[2]}: 1 lands, 1 applies" in shown.out
    assert demo.run("radar", *words, "--fail-on", "landed").status == 1
    assert demo.run("radar", *words, "--fail-on", "conflict").status == 0


def test_radar_of_a_bare_series(demo: Demo, upstream: Upstream, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(demo.series / "series", demo.patches / "series")
    later = upstream.directory / "src/demo"
    words = ["radar", "--quilt", str(demo.patches), "--old", str(demo.site / "demo")]
    assert cli.run([*words, "--against", str(later)]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["log.patch", "offset"]
    assert cli.run(words) == 2


def test_markdown_for_a_pull_request(demo: Demo, upstream: Upstream) -> None:
    name = f"{upstream.directory}@v1.2"
    done = demo.run("retire-scan", "--against", name, "--fail-on", "landed", "--format", "markdown")
    assert done.status == 1
    lines = done.out.splitlines()
    assert lines[0] == "### patchforge retire-scan"
    assert "| patch | verdict | confidence | because |" in lines
    (row,) = [line for line in lines if line.startswith("| log ")]
    assert row.startswith("| log | landed | high | it comes off the release")
    assert row.endswith("(Count the starts (\\#12)) |")
    assert any(line.startswith("- **error**: log: landed in ") for line in lines)
