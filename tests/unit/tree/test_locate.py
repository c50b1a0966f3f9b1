"""Finding an installed distribution, and refusing what cannot be patched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from patchforge.errors import InputError, TreeError
from patchforge.tree.locate import find_in, in_directory, locate, search_path


def lay(site: Path, info: str, root: str = "demo") -> Path:
    (site / root).mkdir(parents=True, exist_ok=True)
    (site / info).mkdir()
    (site / info / "RECORD").write_text("")
    return site


@pytest.mark.parametrize(
    ("asked", "installed", "found"),
    [
        ("demo", "demo-1.0", "1.0"),
        ("Demo_Thing", "demo_thing-1.0", "1.0"),
        ("demo.thing", "Demo.Thing-1.0", "1.0"),
        ("demo--thing", "demo_thing-1.0", "1.0"),
        ("demo", "demo-1.0+cpu", "1.0+cpu"),
        ("demo", "demo-1!2.0.post1.dev3", "1!2.0.post1.dev3"),
        ("demo", "demo_more-1.0", None),
        ("demo_more", "demo-1.0", None),
    ],
)
def test_names_are_compared_as_installers_do(tmp_path: Path, asked: str, installed: str, found: str | None) -> None:
    lay(tmp_path, f"{installed}.dist-info")
    versions = [item.version for item in find_in(tmp_path, [asked])]
    assert versions == ([] if found is None else [found])


def test_a_file_or_a_missing_directory_is_no_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "demo-1.0.dist-info").write_text("a file of that name")
    assert (
        find_in(tmp_path / "none", ["demo"])
        == find_in(tmp_path / "file", ["demo"])
        == find_in(tmp_path, ["demo"])
        == []
    )


def test_the_first_place_of_the_path_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = lay(tmp_path / "one", "demo-2.0.dist-info"), lay(tmp_path / "two", "demo-1.0.dist-info")
    monkeypatch.setattr(sys, "path", ["", str(tmp_path / "none"), str(one), str(two)])
    assert locate(["demo"], None).version == "2.0"


def test_another_flavor_is_found_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(lay(tmp_path, "demo_cpu-1.0.dist-info"))])
    assert locate(["demo", "demo-cpu"], None).distribution == "demo-cpu"


@pytest.mark.parametrize(
    ("origin", "refused"),
    [
        ({"url": "file:///x", "dir_info": {"editable": True}}, True),
        ({"url": "file:///x", "dir_info": {"editable": False}}, False),
        ({"url": "file:///x", "dir_info": {}}, False),
        ({"url": "x", "archive_info": {}}, False),
        (["dir_info"], False),
        ({"dir_info": "editable"}, False),
    ],
    ids=str,
)
def test_editable_installs_are_refused(tmp_path: Path, origin: object, refused: bool) -> None:
    lay(tmp_path, "demo-1.0.dist-info")
    (tmp_path / "demo-1.0.dist-info/direct_url.json").write_text(json.dumps(origin))
    if not refused:
        assert in_directory(tmp_path, ["demo"], "demo") is not None
        return
    with pytest.raises(TreeError) as told:
        in_directory(tmp_path, ["demo"], "demo")
    assert told.value.reason == "editable"


@pytest.mark.parametrize("kind", ["not json", "deep", "pipe"])
def test_an_origin_that_cannot_be_read_is_no_reason_to_stop(tmp_path: Path, kind: str) -> None:
    url = lay(tmp_path, "demo-1.0.dist-info") / "demo-1.0.dist-info/direct_url.json"
    if kind == "pipe":
        os.mkfifo(url)
    else:
        url.write_text("{" if kind == "not json" else "[" * 100_000)
    assert in_directory(tmp_path, ["demo"], "demo") is not None


@pytest.mark.parametrize("where", ["", "demo"])
def test_a_directory_may_be_the_site_or_the_package(tmp_path: Path, where: str) -> None:
    lay(tmp_path, "demo-1.0.dist-info")
    found = in_directory(tmp_path / where, ["demo"], "demo")
    assert found is not None
    assert (found.site, found.version) == (tmp_path, "1.0")


def test_a_package_in_a_package(tmp_path: Path) -> None:
    lay(tmp_path, "demo-1.0.dist-info", "name/space")
    for where in ("", "name/space"):
        found = in_directory(tmp_path / where, ["demo"], "name/space")
        assert found is not None and found.site == tmp_path
    assert in_directory(tmp_path / "name", ["demo"], "name/space") is None


def test_a_directory_without_metadata_is_a_bare_tree(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    assert in_directory(tmp_path, ["demo"], "demo") is None
    assert in_directory(tmp_path / "demo", ["demo"], "demo") is None
    with pytest.raises(InputError, match="not a directory"):
        in_directory(tmp_path / "none", ["demo"], "demo")


@pytest.mark.parametrize("by", ["path", "directory", "package"])
def test_two_versions_side_by_side_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    lay(tmp_path, "demo-1.0.dist-info")
    lay(tmp_path, "Demo-0.9.dist-info")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(TreeError, match=r"several dist-info.*Demo-0.9.*demo-1.0"):
        locate(["demo"], None) if by == "path" else in_directory(
            tmp_path if by == "directory" else tmp_path / "demo", ["demo"], "demo"
        )


@pytest.mark.parametrize("suffix", [".zip", ".egg", ".whl"])
def test_a_zipped_tree_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    archive = tmp_path / f"demo{suffix}"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("demo/__init__.py", "")
    monkeypatch.setattr(sys, "path", [str(archive)])
    with pytest.raises(TreeError, match="zipped"):
        locate(["demo"], None)


@pytest.mark.parametrize("python", ["/none/python", "/bin/true", "/bin/false", "/etc"])
def test_what_is_no_interpreter_is_said(python: str) -> None:
    with pytest.raises(InputError, match="where it imports from"):
        search_path(python)


def test_another_interpreter_runs_nothing_from_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only its own modules, and not what the environment adds."""
    (tmp_path / "json.py").write_text("open('ran', 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "added"))
    found = search_path(sys.executable)
    assert not (tmp_path / "ran").exists()
    assert found and tmp_path not in found and tmp_path / "added" not in found


def test_the_environment_of_another_interpreter(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    site = next(venv.glob("lib/python*/site-packages"))
    lay(site, "demo-1.0.dist-info")
    for name in ("python", "python3"):
        found = locate(["Demo"], str(venv / "bin" / name))
        assert (found.site, found.version) == (site, "1.0")
    with pytest.raises(TreeError) as told:
        locate(["other"], str(venv / "bin/python"))
    assert told.value.reason == "not-installed"
    assert str(venv) in str(told.value)
