"""``retire-scan`` as a user runs it."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest
from demo import CORE, Demo

from patchforge import cli


def later(demo: Demo, tmp_path: Path, landed: bool) -> Path:
    """A later release in a directory: it has the first patch, or nothing."""
    other = tmp_path / "later"
    shutil.copytree(demo.site / "demo", other / "demo")
    if landed:
        text = CORE.replace(
            b"        self.running = True\n", b"        self.running = True\n        self.starts = 1\n", 1
        )
        (other / "demo/core.py").write_bytes(b"# later\n" * 9 + text)
    return other


@pytest.mark.parametrize("landed", [False, True])
@pytest.mark.parametrize("kind", ["site", "package", "wheel"])
def test_the_verdicts(demo: Demo, tmp_path: Path, landed: bool, kind: str) -> None:
    other = later(demo, tmp_path, landed)
    name = str(other if kind == "site" else other / "demo")
    if kind == "wheel":
        name = str(tmp_path / "demo-1.1-py3-none-any.whl")
        with zipfile.ZipFile(name, "w") as archive:
            for path in sorted(other.rglob("*")):
                if path.is_file():
                    archive.write(path, path.relative_to(other).as_posix())
    done = demo.run("retire-scan", "--against", name, "--format", "json")
    assert done.status == 0, done.err
    found = {p["name"]: (p["verdict"], p["confidence"]) for p in done.json["patches"]}
    assert found == {"log": ("landed" if landed else "keep", "high"), "names": ("keep", "high")}
    failing = demo.run("retire-scan", "--against", name, "--fail-on", "landed", "--format", "github")
    assert failing.status == int(landed)
    assert ("::error title=patchforge%3A landed::log" in failing.out) == landed


def test_explain_shows_signals_and_places(demo: Demo, tmp_path: Path) -> None:
    other = later(demo, tmp_path, True)
    done = demo.run("retire-scan", "--against", str(other), "--explain", "log")
    assert "comes off the release: yes" in done.out
    assert "Engine.start: patched  core.py:5 -> core.py:14" in done.out


def test_a_bare_series(demo: Demo, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = later(demo, tmp_path, True)
    shutil.copy(demo.series / "series", demo.patches / "series")
    words = [
        "retire-scan",
        "--quilt",
        str(demo.patches),
        "--old",
        str(demo.site / "demo"),
        "--new",
        str(other / "demo"),
    ]
    assert cli.run(words) == 0
    assert "log.patch    landed" in capsys.readouterr().out
    assert cli.run(words[:3]) == 2
    assert cli.run([*words[:5]]) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a release"),
        (["--against", "nowhere.whl"], "there is no such wheel"),
        (["--against", ".", "--explain", "nobody"], "no patch 'nobody'"),
        (["--old", "x", "--against", "."], "are for a bare series"),
    ],
)
def test_wrong_usage(demo: Demo, words: list[str], message: str) -> None:
    done = demo.run("retire-scan", *words)
    assert done.status == 2
    assert message in done.err


def test_a_series_that_does_not_fit_its_own_pin(demo: Demo, tmp_path: Path) -> None:
    other = later(demo, tmp_path, True)
    (demo.site / "demo/data/text.txt").write_bytes(b"other\n")
    done = demo.run("retire-scan", "--against", str(other))
    assert done.status == 2
    assert "does not apply to the tree it is for" in done.err


@pytest.mark.parametrize(("name", "what"), [("/etc/passwd", "it is a file"), ("no/such/place", "no such directory")])
def test_a_path_that_is_no_release_is_not_asked_of_an_index(demo: Demo, name: str, what: str) -> None:
    demo.run("lock")
    done = demo.run("retire-scan", "--against", name)
    assert done.status == 2
    assert what in done.err
    assert "pip" not in done.err
