"""Reading what a series consists of: the order, the pin, the patches, the lock."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from patchforge.errors import InputError
from patchforge.series.lock import Lock, LockedFile, LockedPatch, LockedStep, dump_lock, read_lock, series_hash
from patchforge.series.pin import dump_pin, parse_pin, read_pin
from patchforge.series.project import find_project, load_quilt, load_series
from patchforge.series.quilt import SeriesLine, parse_series

GOOD = {
    "schema": 1,
    "distribution": "demo",
    "version": "1.0",
    "root": "demo",
    "strip": 1,
    "flavor": {"default": {"wheel": [{"file": "demo-1.0-py3-none-any.whl", "sha256": "0" * 64}]}},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("a.patch", (SeriesLine("a.patch", None, 1),)),
        ("a.patch\n\n# note\nb.patch # why\n", (SeriesLine("a.patch", None, 1), SeriesLine("b.patch", None, 4))),
        ("a.patch -p0\r\nb.patch -p1\r\n", (SeriesLine("a.patch", 0, 1), SeriesLine("b.patch", 1, 2))),
        ("a.patch -p 2\nb.patch -pab\n", (SeriesLine("a.patch", 2, 1), SeriesLine("b.patch", 1, 2))),
        ("  sub/dir/a.patch\t-p1\t# x", (SeriesLine("sub/dir/a.patch", 1, 1),)),
        ("a#b.patch", (SeriesLine("a#b.patch", None, 1),)),
        ("ä.patch", (SeriesLine("ä.patch", None, 1),)),
    ],
    ids=repr,
)
def test_the_order_as_quilt_writes_it(text: str, expected: tuple[SeriesLine, ...]) -> None:
    assert parse_series(text, "series") == expected


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("../a.patch", 1, "leaves the patch directory"),
        ("ok.patch\n/etc/passwd", 2, "leaves the patch directory"),
        ("a/../../b.patch", 1, "leaves the patch directory"),
        ("a\\b.patch", 1, "leaves the patch directory"),
        ("a\0b.patch", 1, "is no name: it has a NUL byte"),
        ("a.patch\nb.patch\na.patch", 3, r"listed twice \(first: line 1\)"),
        ("a.patch -R", 1, "unknown option '-R'"),
        ("a.patch -p1 -R", 1, "unknown option"),
        ("a.patch -p", 1, "unknown option"),
        ("a.patch -p-1", 1, "unknown option"),
        ("a.patch -p111", 1, "unknown option"),
        ("a.patch b.patch", 1, "unknown option 'b.patch'"),
    ],
)
def test_an_order_that_is_wrong(text: str, line: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as told:
        parse_series(text, "series")
    assert (told.value.file, told.value.line) == ("series", line)


@given(st.text(max_size=60))
def test_any_text_is_an_order_or_an_error(text: str) -> None:
    try:
        found = parse_series(text, "series")
    except InputError:
        return
    assert len({item.name for item in found}) == len(found)


def test_a_pin_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    pin = parse_pin({**GOOD, "requires-python": ">=3.10"}, "pin.toml")
    (tmp_path / "pin.toml").write_bytes(dump_pin(pin))
    assert read_pin(tmp_path / "pin.toml", "pin.toml") == pin
    assert pin.id == "demo-1.0"
    assert pin.flavor(None).wheels[0].tags == ("py3", "none", "any")
    with pytest.raises(InputError, match="known: default"):
        pin.flavor("cpu")


WRONG: dict[str, tuple[str, object, str]] = {
    "unknown key": ("distributon", "demo", "did you mean 'distribution'"),
    "schema": ("schema", 2, "schema must be 1"),
    "distribution": ("distribution", "../demo", "distribution name"),
    "distribution kind": ("distribution", 7, "distribution name"),
    "version": ("version", ">=1", "one exact version"),
    "root up": ("root", "../demo", "package directory"),
    "root absolute": ("root", "/demo", "package directory"),
    "root with a dash": ("root", "a-b", "package directory"),
    "strip text": ("strip", "1", "small whole number"),
    "strip negative": ("strip", -1, "small whole number"),
    "strip bool": ("strip", True, "small whole number"),
    "no flavor": ("flavor", {}, "no \\[flavor.NAME\\]"),
    "flavor a list": ("flavor", [], "no \\[flavor.NAME\\]"),
    "flavor a text": ("flavor", {"x": "y"}, "must be a table"),
    "wheel a text": ("flavor", {"x": {"wheel": ["demo.whl"]}}, "wheel"),
    "wheel a number": ("flavor", {"x": {"wheel": 7}}, "wheel"),
    "wheel name": ("flavor", {"x": {"wheel": [{"file": "../x.whl", "sha256": "0" * 64}]}}, "not a wheel's file name"),
    "wheel hash": (
        "flavor",
        {"x": {"wheel": [{"file": "demo-1.0-py3-none-any.whl", "sha256": "0"}]}},
        "64 hexadecimal digits",
    ),
    "flavor's distribution": ("flavor", {"x": {"distribution": "a/b"}}, "distribution name"),
}


@pytest.mark.parametrize(("key", "value", "message"), WRONG.values(), ids=WRONG)
def test_a_pin_that_is_wrong(tmp_path: Path, key: str, value: object, message: str) -> None:
    (tmp_path / "pin.toml").write_bytes(tomli_w.dumps({**GOOD, key: value}).encode())
    with pytest.raises(InputError, match=message) as told:
        read_pin(tmp_path / "pin.toml", "label")
    assert told.value.file == "label"


@pytest.mark.parametrize("data", [b"x", b"\xff", b"[", b'schema = 1\nversion = "1.0"\n'])
def test_what_is_no_pin(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "pin.toml").write_bytes(data)
    with pytest.raises(InputError):
        read_pin(tmp_path / "pin.toml", "label")


def lock() -> Lock:
    return Lock(
        "demo",
        "1.0",
        "1" * 64,
        "2" * 64,
        (
            LockedPatch("one", "3" * 64, (LockedStep("a.py", "4" * 64, ("A.run", "")), LockedStep("b", None, (), "c"))),
            LockedPatch("two", "5" * 64, ()),
        ),
        (
            LockedFile("a.py", "6" * 64, "4" * 64, True),
            LockedFile("ä b", None, "7" * 64),
            LockedFile("c", "8" * 64, None),
        ),
    )


def test_a_lock_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "lock.toml"
    path.write_bytes(dump_lock(lock()))
    found = read_lock(path, "lock.toml")
    assert found == lock()
    assert dump_lock(lock()) == path.read_bytes()
    assert found is not None
    assert found.patch("two") == LockedPatch("two", "5" * 64, ())
    assert found.patch("three") is None
    assert read_lock(tmp_path / "none", "x") is None


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        b"\xff",
        b"schema = 2\n",
        b"schema = 1\n",
        b'schema = 1\ndistribution = "d"\nversion = "1"\nheaders = "h"\nseries = "s"\nfile = [7]\n',
        b'schema = 1\ndistribution = "d"\nversion = "1"\nheaders = "h"\nseries = "s"\npatch = 7\n',
        b'schema = 1\ndistribution = "d"\nversion = "1"\nheaders = "h"\nseries = "s"\n[[patch]]\nname = "x"\n',
    ],
)
def test_a_damaged_lock_is_said(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "lock.toml").write_bytes(data)
    with pytest.raises(InputError) as told:
        read_lock(tmp_path / "lock.toml", "lock.toml")
    assert (told.value.reason, told.value.file) == ("lock", "lock.toml")
    assert "patchforge lock" in (told.value.hint or "")


def test_the_identity_of_a_series_sees_every_part() -> None:
    base = [("a", 1, "0" * 64), ("b", 1, "1" * 64)]
    others = [
        base[::-1],
        base[:1],
        [("a", 0, "0" * 64), base[1]],
        [("c", 1, "0" * 64), base[1]],
        [("a", 1, "2" * 64), base[1]],
        [],
    ]
    hashes = {series_hash(item) for item in [base, *others]}
    assert len(hashes) == len(others) + 1


def project(root: Path, *pins: str) -> Path:
    for pin in pins:
        name, _, version = pin.rpartition("-")
        (root / "series" / pin).mkdir(parents=True)
        (root / "patches" / pin).mkdir(parents=True)
        (root / "series" / pin / "pin.toml").write_text(
            f'schema = 1\ndistribution = "{name}"\nversion = "{version}"\nroot = "{name}"\n[flavor.default]\nwheel = []\n'
        )
        (root / "series" / pin / "series").write_text("one.patch\n")
        (root / "patches" / pin / "one.patch").write_text("x")
    return root


@pytest.mark.parametrize(
    ("pins", "newest"),
    [
        (["demo-1.0", "demo-1.10", "demo-1.9"], "demo-1.10"),
        (["demo-1.0", "demo-1.0rc1", "demo-1.0.dev2", "demo-1.0a1"], "demo-1.0"),
        (["demo-1.0rc1", "demo-1.0.dev2", "demo-1.0a1", "demo-0.9"], "demo-1.0rc1"),
        (["demo-1.0.post1", "demo-1.0", "demo-1.0rc2"], "demo-1.0.post1"),
        (["demo-1.0.1", "demo-1.0.post1"], "demo-1.0.1"),
        (["demo-0.9", "demo-0.10.0"], "demo-0.10.0"),
    ],
)
def test_the_newest_pin_is_chosen(tmp_path: Path, pins: list[str], newest: str) -> None:
    found = find_project(project(tmp_path, *pins) / "patches")
    assert found.root == tmp_path
    assert found.choose(None) == newest
    assert found.choose(newest.replace("-", "==", 1)) == newest


def test_a_series_up_to_a_patch(tmp_path: Path) -> None:
    root = project(tmp_path, "demo-1.0")
    (root / "series/demo-1.0/series").write_text("one.patch\ntwo.patch\n")
    (root / "patches/demo-1.0/two.patch").write_text("y")
    series = load_series(find_project(root), None)
    assert [p.name for p in series.patches] == ["one", "two"]
    for name in ("one", "one.patch"):
        assert [p.name for p in series.upto(name).patches] == ["one"]
    assert series.upto(None) is series
    with pytest.raises(InputError, match="no patch 'tow'"):
        series.upto("tow")


@pytest.mark.parametrize("kind", ["missing", "directory", "pipe", "loop", "unreadable"])
def test_a_patch_that_cannot_be_read_is_named(tmp_path: Path, kind: str) -> None:
    quilt = tmp_path / "quilt"
    quilt.mkdir()
    (quilt / "series").write_text("# first\none.patch\n")
    path = quilt / "one.patch"
    match kind:
        case "directory":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "loop":
            path.symlink_to("one.patch")
        case "unreadable":
            path.write_text("x")
            path.chmod(0)
            if os.access(path, os.R_OK):
                pytest.skip("permissions do not bind this user")
    with pytest.raises(InputError, match=r"one\.patch") as told:
        load_quilt(quilt)
    assert told.value.status == 2


@pytest.mark.parametrize("kind", ["missing", "directory", "pipe", "latin"])
@pytest.mark.parametrize("name", ["series", "pin.toml", "lock.toml"])
def test_a_project_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, kind: str) -> None:
    root = project(tmp_path, "demo-1.0")
    found = find_project(root)
    path = root / "series/demo-1.0" / name
    path.unlink(missing_ok=True)
    match kind:
        case "directory":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "latin":
            path.write_bytes(b"\xff\n")
    if (name, kind) == ("lock.toml", "missing"):
        assert load_series(found, None).lock is None
        return
    with pytest.raises(InputError) as told:
        load_series(found, None)
    assert told.value.file == f"series/demo-1.0/{name}"
