"""Releases from an index, found and read through pip: by ranges, whole where there are none, and without a network again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from demo import CORE, Demo

from index import Index, serving
from patchforge.errors import InputError, Refused
from patchforge.releases import versions
from patchforge.releases.versions import known, newer
from wheels import build_wheel

LANDED = CORE.replace(b"        self.running = True\n", b"        self.running = True\n        self.starts = 1\n", 1)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    folder = tmp_path / "wheels"
    text = b"one\ntwo\nthree\nfour\nfive\n"
    ballast = {f"demo/blob{n}.so": (bytes((n * i * i) % 251 for i in range(60_000)), 0o644) for n in range(1, 9)}
    for version, core in (("1.0", CORE), ("1.1", CORE), ("1.2rc1", CORE), ("1.2", LANDED)):
        files = {"demo/__init__.py": (b"", 0o644), "demo/core.py": (core, 0o644), "demo/data/text.txt": (text, 0o644)}
        build_wheel(folder, {**ballast, **files}, version=version)
    with serving(Index(folder)) as found:
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("PIP_INDEX_URL", found.simple)
        for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
            monkeypatch.delenv(name, raising=False)
        yield found


def verdicts(document: Any) -> dict[tuple[str, str], str]:
    return {(p["target"], p["name"]): p["verdict"] for p in document["patches"]}


def test_all_newer_by_ranges_then_offline(demo: Demo, index: Index) -> None:
    done = demo.run("retire-scan", "--all-newer", "--format", "json")
    assert done.status == 0, done.err
    assert verdicts(done.json) == {
        ("1.1", "log"): "keep",
        ("1.1", "names"): "keep",
        ("1.2", "log"): "landed",
        ("1.2", "names"): "keep",
    }
    wheel = index.folder / "demo-1.2-py3-none-any.whl"
    for target in done.json["targets"]:
        assert 0 < target["fetched"] < target["wheel"] / 4
    assert done.json["targets"][1]["wheel"] == wheel.stat().st_size
    # Again, with nobody to ask: what was found and read once is remembered.
    shutil.rmtree(index.folder)
    again = demo.run("retire-scan", "--against", "1.1", "--against", "1.2", "--format", "json")
    assert again.status == 0, again.err
    assert verdicts(again.json) == verdicts(done.json)
    assert {target["fetched"] for target in again.json["targets"]} == {0}


def test_without_ranges_the_whole_wheel_proved_by_its_hash(demo: Demo, index: Index, tmp_path: Path) -> None:
    index.ranges = False
    done = demo.run("retire-scan", "--against", "latest", "--format", "json")
    assert done.status == 0, done.err
    assert verdicts(done.json) == {("1.2", "log"): "landed", ("1.2", "names"): "keep"}
    assert "fetched" not in done.json["targets"][0]
    (kept,) = (tmp_path / "cache").glob("patchforge/wheels/*/demo-1.2-py3-none-any.whl")
    assert kept.read_bytes() == (index.folder / kept.name).read_bytes()


def test_whole_wheels_when_asked_for(demo: Demo, index: Index, tmp_path: Path) -> None:
    done = demo.run("retire-scan", "--against", "1.1", "--whole-wheel", "--format", "json")
    assert done.status == 0, done.err
    assert not any(wanted for _, wanted in index.asked)
    assert list((tmp_path / "cache").glob("patchforge/wheels/*/demo-1.1-py3-none-any.whl"))


def test_a_release_nobody_has(demo: Demo, index: Index) -> None:
    done = demo.run("retire-scan", "--against", "7.7")
    assert done.status == 1
    assert "demo==7.7" in done.err
    done = demo.run("retire-scan", "--against", "seven")
    assert done.status == 2
    assert "'seven' is not a version" in done.err


def test_newer_leaves_out_the_pin_older_ones_and_previews(index: Index) -> None:
    assert newer("demo", "1.0") == ["1.1", "1.2"]
    assert newer("demo", "1.1") == ["1.2"]
    assert newer("demo", "1.2") == []


def test_what_is_remembered_is_checked(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    found = known("demo", "1.1", tmp_path, asked.append)
    assert known("demo", "1.1", tmp_path, asked.append) == found
    assert asked == ["asking pip for demo==1.1"]
    (note,) = (tmp_path / "releases").iterdir()
    good = json.loads(note.read_text())
    monkeypatch.setattr(versions, "find", lambda name, version: found)
    for bad in ("", "[]", json.dumps({**good, "sha256": "x"}), json.dumps({**good, "file": "../../etc/x.whl"})):
        note.write_text(bad)
        assert known("demo", "1.1", tmp_path, asked.append) == found
        assert json.loads(note.read_text()) == good
    assert len(asked) == 5
    with pytest.raises(InputError, match="not a version"):
        known("demo", "../1.1", tmp_path, asked.append)


def test_a_cache_that_cannot_be_written(index: Index, tmp_path: Path) -> None:
    (tmp_path / "releases").write_text("a file")
    with pytest.raises(Refused, match="cannot write to the cache"):
        known("demo", "1.1", tmp_path, lambda text: None)
