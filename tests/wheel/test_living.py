"""The flagship series lived with: checked out, edited in the middle, written back; only what was edited changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from patchforge import cli
from patchforge.series.project import Project, Series


def git(folder: Path, *words: str) -> str:
    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
        **{f"GIT_{who}_{what}": "someone@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_SEQUENCE_EDITOR": "true",
        "GIT_EDITOR": "true",
    }
    done = subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def copy(project: Project, tmp_path: Path) -> Path:
    """The project without what is built."""
    root = tmp_path / "project"
    for part in ("series", "patches", "docs/patches"):
        shutil.copytree(project.root / part, root / part)
    shutil.copy(project.root / "PATCHES.md", root)
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_an_edit_in_the_middle_changes_one_patch(
    pristine: Path, copy: Path, series: Series, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work, where = tmp_path / "work", ["--project", str(copy)]
    before = contents(copy)
    assert series.pin is not None
    used = time.process_time()
    assert cli.run(["checkout", str(work), *where, "--tree", str(pristine)]) == 0
    assert time.process_time() - used < 5, "processor time of the command itself"
    used = time.process_time()
    assert cli.run(["refresh", str(work), *where, "--check"]) == 0
    assert time.process_time() - used < 2
    assert "up to date" in capsys.readouterr().out

    middle = series.patches[len(series.patches) // 2].name
    commit = git(work, "log", "--format=%H", f"--grep=^Patch-Name: {middle}$")
    changed = git(work, "show", "--format=", "--name-only", "--diff-filter=M", commit).split()[0]
    git(work, "checkout", "-q", commit)
    added = [line[1:] for line in git(work, "show", "--format=", "-U0", commit, "--", changed).split("\n")]
    line = next(text for text in added if "#" in text and text.strip().startswith("#"))
    path = work / changed
    path.write_text(path.read_text().replace(line + "\n", line + " (edited)\n", 1))
    git(work, "commit", "-q", "-a", "--fixup", commit)
    git(work, "rebase", "-q", "--onto", "HEAD", commit, "series")
    git(work, "rebase", "-q", "-i", "pristine")
    capsys.readouterr()
    assert cli.run(["refresh", str(work), *where, "--format", "json"]) == 0
    after = contents(copy)
    written = {name for name in after if after[name] != before.get(name)}
    own = {f"patches/{series.pin.id}/{middle}.patch", f"series/{series.pin.id}/lock.toml"}
    assert own <= written
    for other in written - own:  # one whose context the edited line is
        assert other.endswith(".patch") and b"\n" + line.encode().join((b" ", b" (edited)\n")) in after[other], other
    assert b"\n+" + line.encode() + b" (edited)\n" in after[f"patches/{series.pin.id}/{middle}.patch"]
    assert after.keys() == before.keys()
    assert cli.run(["lock", *where, "--check", "--tree", str(pristine)]) == 0
    assert cli.run(["refresh", str(work), *where, "--check"]) == 0
