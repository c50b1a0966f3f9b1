"""A wheel read by byte ranges: the right bytes, few of them, kept between runs, and never believed unchecked."""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import session
from index import Index, serving
from patchforge.releases import ranged
from patchforge.releases.contents import Packed
from patchforge.releases.ranged import NoRangesError, Ranged

NAME = "demo-1.1-py3-none-any.whl"


def noise(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    with zipfile.ZipFile(folder / NAME, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(60):
            info = zipfile.ZipInfo(f"demo/part{number:02}.py")
            info.external_attr = (0o100755 if number == 7 else 0o100644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, f"NUMBER = {number}\n" * (number + 1))
            archive.writestr(f"demo/blob{number:02}.so", noise(number, 70_000))
        archive.writestr("demo/empty.py", b"")
        archive.writestr("other/x.py", b"no")
    return folder


@pytest.fixture
def index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An index; what reads it speaks our protocol without pip, whose start takes most of a second."""
    monkeypatch.setattr(ranged, "SESSION", (str(Path(session.__file__)),))
    with serving(Index(folder)) as found:
        yield found


def opened(index: Index, store: Path) -> Ranged:
    return Ranged(f"{index.url}/files/{NAME}", "demo", store)


def test_it_reads_what_the_whole_wheel_has_for_few_bytes(index: Index, folder: Path, tmp_path: Path) -> None:
    with Packed(folder / NAME, "demo") as whole, opened(index, tmp_path / "w.whl") as part:
        assert part.paths() == whole.paths()
        for path in ("part07.py", "part30.py", "empty.py", "blob59.so", "part59.py"):
            assert part.read(path) == whole.read(path)
            assert part.checksum(path) == whole.checksum(path)
        assert part.read("part07.py") is not None and part.read("part07.py")[1]  # type: ignore[index]
        assert part.read("nothing.py") is None and part.checksum("nothing.py") is None
        cost = part.cost()
    assert cost is not None and cost.whole == (folder / NAME).stat().st_size
    assert cost.fetched == index.sent < cost.whole / 10
    assert all(wanted.startswith("bytes=") for _, wanted in index.asked)


def test_through_the_session_of_pip(
    index: Index, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with Packed(folder / NAME, "demo") as whole, opened(index, tmp_path / "w.whl") as part:
        assert part.read("part07.py") == whole.read("part07.py")
        assert part.paths() == whole.paths()
    assert next(wanted for _, wanted in index.asked).startswith("bytes=-")
    assert index.sent < (folder / NAME).stat().st_size / 10


def test_what_was_fetched_once_is_not_fetched_again(index: Index, tmp_path: Path) -> None:
    with opened(index, tmp_path / "w.whl") as part:
        part.prefetch(["part03.py", "part50.py"])
        first = part.read("part03.py")
    asked = len(index.asked)
    with opened(index, tmp_path / "w.whl") as part:
        assert part.read("part03.py") == first
        assert part.read("part50.py") == (b"NUMBER = 50\n" * 51, False)
        assert 0 < part.bytes_of(["part03.py", "part50.py"]) < 400  # the same, whether they are here or not
        assert part.cost().fetched == 0  # type: ignore[union-attr]
        assert len(index.asked) == asked
        assert part.read("part04.py") == (b"NUMBER = 4\n" * 5, False)
    assert len(index.asked) == asked + 1


def test_neighbours_come_in_one_request_and_strangers_do_not(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(index, tmp_path / "w.whl") as part:
        asked = len(index.asked)
        part.prefetch(["part03.py", "part50.py"])  # two megabytes between them
        assert len(index.asked) == asked + 2
    monkeypatch.setattr(ranged, "_GAP", 10_000_000)
    with opened(index, tmp_path / "v.whl") as part:
        asked = len(index.asked)
        part.prefetch(["part03.py", "part50.py"])
        assert len(index.asked) == asked + 1
        assert part.read("part50.py") == (b"NUMBER = 50\n" * 51, False)


def test_bytes_damaged_on_disk_are_fetched_again(index: Index, tmp_path: Path) -> None:
    store = tmp_path / "w.whl"
    with opened(index, store) as part:
        assert part.read("part20.py") == (b"NUMBER = 20\n" * 21, False)
        start, end = part._span(part._entries["part20.py"])
    with store.open("r+b") as file:
        file.seek(end - 8)
        file.write(b"\xff" * 8)
    with opened(index, store) as part:
        assert part.read("part20.py") == (b"NUMBER = 20\n" * 21, False)
        assert part.cost().fetched == end - start  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "notes",
    [b"", b"{", b"[]", b'{"size": 7, "spans": []}', b'{"size": null, "spans": 3}', b'{"size": 5}'],
)
def test_notes_that_say_nonsense_are_started_anew(index: Index, tmp_path: Path, notes: bytes) -> None:
    store = tmp_path / "w.whl"
    with opened(index, store) as part:
        part.read("part20.py")
    (tmp_path / "w.whl.json").write_bytes(notes)
    with opened(index, store) as part:
        assert part.read("part20.py") == (b"NUMBER = 20\n" * 21, False)
    assert json.loads((tmp_path / "w.whl.json").read_bytes())["spans"]


def test_a_cache_without_its_directory_is_started_anew(index: Index, tmp_path: Path) -> None:
    store = tmp_path / "w.whl"
    with opened(index, store) as part:
        size = part.cost().whole  # type: ignore[union-attr]
    store.write_bytes(bytes(size))
    with pytest.raises(NoRangesError):
        opened(index, store)
    with opened(index, store) as part:  # the notes went with it
        assert part.read("part01.py") == (b"NUMBER = 1\n" * 2, False)


def test_a_server_without_ranges_is_refused_before_anything_is_kept(index: Index, tmp_path: Path) -> None:
    index.ranges = False
    with pytest.raises(NoRangesError, match="200"):
        opened(index, tmp_path / "w.whl")
    assert not (tmp_path / "w.whl").exists()


@pytest.mark.parametrize("spoil", ["short", "grown", "elsewhere"])
def test_an_answer_that_is_not_what_was_asked_is_not_used(index: Index, tmp_path: Path, spoil: str) -> None:
    with opened(index, tmp_path / "w.whl") as part:
        index.spoil = spoil
        with pytest.raises(NoRangesError):
            part.prefetch(["part20.py"])
    index.spoil = ""
    with opened(index, tmp_path / "w.whl") as part:
        assert part.read("part20.py") == (b"NUMBER = 20\n" * 21, False)


def test_a_missing_wheel_and_a_dead_server(index: Index, tmp_path: Path) -> None:
    with pytest.raises(NoRangesError, match="404"):
        Ranged(f"{index.url}/files/none.whl", "demo", tmp_path / "n.whl")
    with pytest.raises(NoRangesError):
        Ranged("http://127.0.0.1:9/none.whl", "demo", tmp_path / "n.whl")


@pytest.mark.parametrize("data", [b"", b"not a wheel at all", b"PK\x05\x06" + b"\xff" * 18])
def test_what_is_no_wheel_is_refused(index: Index, tmp_path: Path, data: bytes) -> None:
    index.folder = tmp_path / "bad"
    index.folder.mkdir()
    (index.folder / NAME).write_bytes(data)
    with pytest.raises(NoRangesError):
        opened(index, tmp_path / "w.whl")
    assert not (tmp_path / "w.whl.json").exists()
