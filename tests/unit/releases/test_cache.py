"""Fetched wheels are what the pin says, or nothing."""

from __future__ import annotations

import hashlib
import stat
import zipfile
from pathlib import Path

import pytest

from patchforge.errors import Refused
from patchforge.releases import cache
from patchforge.series.pin import Flavor, Pin, Wheel

NAME = "demo-1.0-py3-none-any.whl"


def wheel_file(path: Path, **entries: bytes) -> bytes:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (entries or {"demo/__init__.py": b"x = 1\n"}).items():
            archive.writestr(name, data)
    return path.read_bytes()


def fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brought: bytes, wanted: bytes) -> tuple[Path, list[str]]:
    calls: list[str] = []

    def download(distribution: str, version: str, wheel: Wheel, directory: Path) -> Path:
        calls.append(f"{distribution}=={version}")
        (directory / wheel.file).write_bytes(brought)
        return directory / wheel.file

    monkeypatch.setattr(cache, "download", download)
    wheel = Wheel(NAME, hashlib.sha256(wanted).hexdigest())
    flavor = Flavor("default", "demo", (wheel,))
    return cache.fetch(Pin("demo", "1.0", "demo", 1, (flavor,)), flavor, wheel, tmp_path / "cache"), calls


def test_a_wheel_of_another_hash_is_refused_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused, match="and the pin says"):
        fetch(tmp_path, monkeypatch, b"evil", b"good")
    assert [p for p in (tmp_path / "cache").rglob("*") if p.is_file()] == []


def test_the_cache_is_used_and_a_damaged_file_is_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, calls = fetch(tmp_path, monkeypatch, b"good", b"good")
    assert (file.read_bytes(), calls) == (b"good", ["demo==1.0"])
    _, calls = fetch(tmp_path, monkeypatch, b"good", b"good")
    assert calls == []
    file.write_bytes(b"goof")
    file, calls = fetch(tmp_path, monkeypatch, b"good", b"good")
    assert (file.read_bytes(), calls) == (b"good", ["demo==1.0"])


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "demo/../../x", "a\\b", "demo-1.0.data/scripts/run"])
def test_an_archive_that_reaches_outside_is_refused_whole(tmp_path: Path, name: str) -> None:
    wheel_file(tmp_path / NAME, **{"demo/__init__.py": b"x = 1\n", name: b"x"})
    with pytest.raises(Refused):
        cache.unpack(tmp_path / NAME, tmp_path / "build/demo-1.0")
    assert list((tmp_path / "build").iterdir()) == []


def test_a_link_in_an_archive_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / NAME, "w") as archive:
        entry = zipfile.ZipInfo("demo/link")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    with pytest.raises(Refused, match="link"):
        cache.unpack(tmp_path / NAME, tmp_path / "build/demo-1.0")


def test_executable_bits_are_those_pip_would_set(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / NAME, "w") as archive:
        for name, mode in (("demo/run.sh", 0o755), ("demo/plain.py", 0o644)):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (stat.S_IFREG | mode) << 16
            archive.writestr(entry, "x")
    cache.unpack(tmp_path / NAME, tmp_path / "out")
    assert (tmp_path / "out/demo/run.sh").stat().st_mode & 0o111
    assert not (tmp_path / "out/demo/plain.py").stat().st_mode & 0o111


def test_a_damaged_archive_leaves_nothing(tmp_path: Path) -> None:
    data = wheel_file(tmp_path / NAME)
    (tmp_path / NAME).write_bytes(data[: len(data) // 2])
    with pytest.raises(Refused, match="cannot unpack"):
        cache.unpack(tmp_path / NAME, tmp_path / "build/demo-1.0")
    assert list((tmp_path / "build").iterdir()) == []
