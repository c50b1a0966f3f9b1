"""Reading below a directory: nothing but regular files, nothing through a link, nothing outside."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from patchforge.errors import TreeError
from patchforge.tree.root import Root


@pytest.fixture
def base(tmp_path: Path) -> Path:
    made = tmp_path / "base"
    (made / "a/b").mkdir(parents=True)
    (made / "a/b/file").write_bytes(b"content")
    (tmp_path / "outside").write_bytes(b"precious")
    return made


def test_a_file_as_it_is(base: Path) -> None:
    (base / "a/b/file").chmod(0o751)
    with Root(base) as root:
        found = root.read("a/b/file")
        assert found is not None
        assert (found.data, found.mode, found.executable) == (b"content", 0o751, True)
        assert (found.uid, found.gid) == (os.getuid(), os.getgid())
        assert root.read("a/none") is None
        assert root.read("none/none/none") is None
        assert root.exists("a/b/file") and not root.exists("a/c") and not root.exists("x/y")


@pytest.mark.parametrize(
    "path", ["../outside", "a/../../outside", "a/..", "..", ".", "", "/etc/passwd", "a//b/file", "a/./b/file"]
)
def test_no_path_leaves_the_tree(base: Path, path: str) -> None:
    with Root(base) as root:
        for action in (root.read, root.exists, root.split, root.stamp):
            with pytest.raises(TreeError, match="not a path inside the tree"):
                action(path)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket is short
        made.bind(path.name)
        os.chdir(here)


def to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "directory": (Path.mkdir, "not a regular file"),
    "pipe": (fifo, "not a regular file"),
    "socket": (listening, "cannot read"),
    "link to a file": (to("b/file"), "symbolic link"),
    "link outside": (to("../../outside"), "symbolic link"),
    "link to nothing": (to("nothing"), "symbolic link"),
    "link to itself": (to("it"), "symbolic link"),
}


@pytest.mark.parametrize(("make", "message"), KINDS.values(), ids=KINDS)
def test_only_regular_files_are_read(base: Path, make: Callable[[Path], None], message: str) -> None:
    make(base / "a/it")
    with Root(base) as root:
        assert root.exists("a/it")
        with pytest.raises(TreeError, match=message):
            root.read("a/it")


@pytest.mark.parametrize("kind", ["file", "link", "link outside", "pipe"])
def test_a_directory_is_a_directory(base: Path, kind: str) -> None:
    it = base / "a/it"
    match kind:
        case "file":
            it.write_bytes(b"")
        case "pipe":
            os.mkfifo(it)
        case _:
            it.symlink_to("b" if kind == "link" else base.parent)
    with Root(base) as root, pytest.raises(TreeError, match="symbolic link or not a directory"):
        root.read("a/it/file")


def test_the_base_itself_may_be_a_link(base: Path) -> None:
    link = base.parent / "link"
    link.symlink_to(base)
    with Root(link) as root:
        assert root.read("a/b/file") is not None


def test_a_base_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TreeError, match="is it the right directory"):
        Root(tmp_path / "none")


@pytest.mark.parametrize("path", ["x" * 300, f"{'x' * 300}/file", "/".join(["d" * 200] * 30)])
def test_a_name_too_long_is_said(base: Path, path: str) -> None:
    with Root(base) as root, pytest.raises(TreeError) as told:
        if root.read(path) is None:
            raise TreeError("the file system has longer names", reason="path")
    assert told.value.reason == "path"


def test_a_large_file_is_refused_before_it_is_read(base: Path) -> None:
    with (base / "a/huge").open("wb") as stream:
        stream.truncate(513 << 20)  # no block of it is on the disk
    with Root(base) as root, pytest.raises(TreeError, match="larger than 512 MiB"):
        root.read("a/huge")


def test_a_directory_swapped_for_a_link_is_not_followed(base: Path) -> None:
    """What was opened stays what it was, wherever its name leads meanwhile."""
    with Root(base) as root:
        root.directory("a/b")
        (base / "a/b").rename(base / "a/away")
        (base.parent / "trap").mkdir()
        (base.parent / "trap/file").write_bytes(b"trap")
        (base / "a/b").symlink_to(base.parent / "trap")
        found = root.read("a/b/file")
        assert found is not None and found.data == b"content"
    with Root(base) as root, pytest.raises(TreeError):
        root.read("a/b/file")


def test_unreadable_files_are_said(base: Path) -> None:
    (base / "a/b").chmod(0)
    try:
        if os.access(base / "a/b", os.R_OK):
            pytest.skip("permissions do not bind this user")
        with Root(base) as root, pytest.raises(TreeError, match="cannot open a/b"):
            root.read("a/b/file")
    finally:
        (base / "a/b").chmod(0o755)


def test_more_directories_than_a_process_may_hold_open(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    many = 700
    for number in range(many):
        (tmp_path / f"d{number}").mkdir()
        (tmp_path / f"d{number}/file").write_bytes(b"%d" % number)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 400), hard))
    try:
        with Root(tmp_path) as root:
            for number in [*range(many), 0, 5, many - 1]:
                found = root.read(f"d{number}/file")
                assert found is not None and found.data == b"%d" % number
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_closing_closes_everything(base: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with Root(base) as root:
        root.read("a/b/file")
        assert len(set(os.listdir("/proc/self/fd")) - before) >= 3
    assert set(os.listdir("/proc/self/fd")) == before
