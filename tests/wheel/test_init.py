"""``init`` for a distribution nobody here chose, through pip, up to a patched and reverted tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from pathlib import Path

import pytest
import yaml

from patchforge import cli

HEADER = b"Why.\n\nKind: local\nWhat: another version string\nUpstream: none\nCut-against: unidiff 1.0.1\nRetires-when: never\n\n"


def test_a_new_project_from_nothing_to_applied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--project", str(tmp_path)]
    assert cli.run(["init", "unidiff==1.0.1", *where]) == 0
    assert cli.run(["check-table", *where]) == 0
    assert cli.run(["lock", "--fetch", *where]) == 0
    assert cli.run(["lint", "--strict", *where]) == 0
    assert cli.run(["init", "unidiff==1.0.1", *where]) == 2, "nothing is written over"
    tree = tmp_path / "build/unidiff-1.0.1/unidiff"
    source = tree / "__version__.py"
    lines = source.read_bytes().split(b"\n")
    at = next(n for n, line in enumerate(lines) if line.startswith(b"__version__"))
    old, new = lines[at], b"__version__ = 'patched'"
    before = b"".join(b" %s\n" % line for line in lines[max(at - 3, 0) : at])
    after = b"".join(b" %s\n" % line for line in lines[at + 1 : at + 4] if line or at + 4 < len(lines))
    size = before.count(b"\n") + 1 + after.count(b"\n")
    start = max(at - 3, 0) + 1
    hunk = b"@@ -%d,%d +%d,%d @@\n" % (start, size, start, size) + before + b"-" + old + b"\n+" + new + b"\n" + after
    patch = (
        HEADER + b"diff --git a/__version__.py b/__version__.py\n--- a/__version__.py\n+++ b/__version__.py\n" + hunk
    )
    (tmp_path / "patches/unidiff-1.0.1/version.patch").write_bytes(patch)
    series = tmp_path / "series/unidiff-1.0.1/series"
    series.write_text(series.read_text() + "version.patch\n")
    capsys.readouterr()
    for words in (
        ["lock", "--fetch"],
        ["table"],
        ["lint", "--strict"],
        ["check-table"],
        ["apply", "--fetch"],
        ["verify", "--fetch"],
    ):
        assert cli.run([*words, *where]) == 0, capsys.readouterr()
    assert b"patched" in source.read_bytes()
    assert cli.run(["revert", "--fetch", *where]) == 0
    assert b"patched" not in source.read_bytes()


@pytest.mark.parametrize("release", ["unidiff", "unidiff>=1", "no-such-distribution-here==1.0", "unidiff==0.0.0.1"])
def test_releases_that_are_not_there(release: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["init", release, "--project", str(tmp_path)]) in (1, 2)
    assert "error: " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_workflow_that_init_writes_does_what_it_says(tmp_path: Path) -> None:
    """Its steps, as the runner takes them: one shell each, in the project, with a Python that has nothing installed."""
    project = tmp_path / "project"
    project.mkdir()
    where = ["--project", str(project)]
    assert cli.run(["init", "unidiff==1.0.1", *where]) == 0
    assert cli.run(["lock", "--fetch", *where]) == 0
    shutil.rmtree(project / "build")
    workflow = yaml.safe_load((project / ".github/workflows/patches.yml").read_text())
    commands = [step["run"] for step in workflow["jobs"]["series"]["steps"] if "run" in step]
    assert commands[0].startswith("pip install ")
    venv.create(tmp_path / "python", with_pip=True)
    env = {**os.environ, "PATH": f"{tmp_path / 'python/bin'}:{os.environ['PATH']}"}
    env.pop("PYTHONPATH", None)
    for command in commands:
        done = subprocess.run(
            ["bash", "-e", "-c", command], cwd=project, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        if command.startswith("pip "):
            found = subprocess.run(["which", "patchforge"], env=env, capture_output=True, text=True, check=True)
            assert found.stdout == f"{tmp_path / 'python/bin/patchforge'}\n"
    assert "verify" in commands[-1]
