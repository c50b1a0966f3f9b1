"""The flagship series on the real wheel, through the command line, against appliers that did not write the answer."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from patchforge import cli
from patchforge.engine.probes import source_probe
from patchforge.headers.probe import parse_probe
from patchforge.series.parsed import header_of
from patchforge.series.project import Project, Series


@pytest.fixture(scope="module")
def tree(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy that shares its files with the pristine tree by hard link, as environments do."""
    copy = tmp_path_factory.mktemp("linked") / "site-packages"
    shutil.copytree(pristine, copy, copy_function=os.link)
    return copy


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object]]:
    capsys.readouterr()
    status = cli.run([*words, "--format", "json"])
    return status, json.loads(capsys.readouterr().out)


def hashes(root: Path) -> dict[str, tuple[str, int]]:
    found = {}
    for path in sorted(root.rglob("*")):
        if path.is_file():
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            found[path.relative_to(root).as_posix()] = (digest, path.stat().st_mode & 0o7777)
    return found


def test_the_wheel_is_the_pinned_one(wheel: Path, project: Project) -> None:
    pin = project.pin(None)
    with wheel.open("rb") as stream:
        assert hashlib.file_digest(stream, "sha256").hexdigest() == pin.flavors[0].wheels[0].sha256


def test_lock_table_and_lint_are_up_to_date(
    pristine: Path, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--project", str(project.root)]
    assert run(capsys, "lock", *where, "--check", "--tree", str(pristine))[0] == 0
    assert run(capsys, "check-table", *where)[0] == 0
    assert run(capsys, "lint", *where, "--strict")[0] == 0


def test_the_series_lands_exactly_and_comes_off_exactly(
    pristine: Path, tree: Path, project: Project, series: Series, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--project", str(project.root), "--tree", str(tree)]
    before = hashes(tree)
    status, document = run(capsys, "apply", *where, "--exact")
    assert status == 0, document
    assert [p["result"] for p in document["patches"]] == ["applied"] * len(series.patches)  # type: ignore[attr-defined]
    assert hashes(pristine) == before, "a file was written through a hard link"
    assert run(capsys, "verify", *where, "--full")[0] == 0
    assert run(capsys, "apply", *where)[1]["outcome"] == "already"
    changed = document["changed"]
    after = hashes(tree)
    different = {k for k in before.keys() | after.keys() if before.get(k) != after.get(k)}
    own = {k for k in different if k.startswith("vllm-0.31.0.dist-info/")}
    assert own == {"vllm-0.31.0.dist-info/RECORD", "vllm-0.31.0.dist-info/patchforge/state.json"}
    assert {k.removeprefix("vllm/") for k in different - own} == set(changed)  # type: ignore[call-overload]
    assert run(capsys, "revert", *where)[0] == 0
    assert hashes(tree) == before


@pytest.mark.parametrize("tool", ["git", "patch"])
def test_other_appliers_make_the_same_bytes(
    pristine: Path,
    tree: Path,
    project: Project,
    series: Series,
    capsys: pytest.CaptureFixture[str],
    tool: str,
    tmp_path: Path,
) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}")
    copy = tmp_path / "vllm"
    shutil.copytree(pristine / "vllm", copy, ignore=shutil.ignore_patterns("*.so"))
    for patch in series.patches:
        command = (
            ["git", "apply", "-"]
            if tool == "git"
            else ["patch", "-p1", "-N", "--fuzz=0", "-s", "--no-backup-if-mismatch"]
        )
        subprocess.run(command, cwd=copy, input=patch.data, check=True, capture_output=True)
    where = ["--project", str(project.root), "--tree", str(tree)]
    assert run(capsys, "apply", *where)[0] == 0
    try:
        ours = {k: v for k, v in hashes(tree / "vllm").items() if not k.endswith(".so")}
        assert hashes(copy) == ours
    finally:
        assert run(capsys, "revert", *where)[0] == 0


def test_every_probe_is_false_before_and_true_after(
    pristine: Path, tree: Path, project: Project, series: Series, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--project", str(project.root), "--tree", str(tree)]
    assert run(capsys, "apply", *where)[0] == 0
    try:
        for patch in series.patches:
            probe = parse_probe(header_of(patch).get("Probe"))
            assert probe.kind == "source", "write how an import probe is evaluated here"
            before, after = (root / "vllm" / probe.where for root in (pristine, tree))
            # What a patch adds in a file of its own is not there before.
            assert not source_probe(probe, before.read_bytes() if before.exists() else None), patch.name
            assert source_probe(probe, after.read_bytes()), patch.name
    finally:
        assert run(capsys, "revert", *where)[0] == 0


@pytest.mark.parametrize("version", ["0.32.0"])
def test_a_later_release_is_refused(
    pristine: Path, project: Project, capsys: pytest.CaptureFixture[str], version: str, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    shutil.copytree(pristine / "vllm-0.31.0.dist-info", site / f"vllm-{version}.dist-info")
    (site / "vllm").mkdir()
    status, document = run(capsys, "apply", "--project", str(project.root), "--tree", str(site))
    assert status == 1
    assert document["problems"][0]["reason"] == "version"  # type: ignore[index]


def test_pip_uninstalls_a_patched_installation_completely(
    wheel: Path, project: Project, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Installed by pip into an environment, patched, imported from, uninstalled: nothing is left."""
    small = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(small, "w") as new:
        # pip writes RECORD itself; the kernels are left out to keep the test quick.
        for entry in old.infolist():
            if not entry.filename.endswith((".so", ".cubin")):
                new.writestr(entry, old.read(entry))
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    python = str(venv / "bin/python")
    site = next(venv.glob("lib/python*/site-packages"))
    before = {p.relative_to(venv) for p in venv.rglob("*") if "__pycache__" not in p.parts}
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input", "-q"]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", str(small)], check=True)
    where = ["--project", str(project.root), "--python", python]
    status, document = run(capsys, "apply", *where)
    assert status == 0, document
    code = "import compileall, sys; compileall.compile_dir(sys.argv[1], quiet=2, maxlevels=0)"
    subprocess.run([python, "-c", code, str(site / "vllm")], check=False)
    assert run(capsys, "verify", *where)[0] == 0
    subprocess.run([*pip, "uninstall", "-y", "vllm"], check=True)
    after = {p.relative_to(venv) for p in venv.rglob("*") if "__pycache__" not in p.parts}
    assert after == before
    assert run(capsys, "status", *where)[1]["problems"][0]["reason"] == "not-installed"  # type: ignore[index]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", str(small)], check=True)
    assert run(capsys, "verify", *where)[1]["result"] == "pristine"
