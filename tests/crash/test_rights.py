"""A user who may not write all of the tree changes nothing of it.

Run as root, each case is a forked child that gives its rights away first.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from installed import FIRST, Place
from patchforge.errors import TreeError
from trees import snapshot

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
USER = 12345
RIGHTS: dict[str, tuple[str, str]] = {
    "the package": ("demo", "Permission denied"),
    "where only a file goes": ("demo/sub", "demo/sub: files in this directory may not be removed"),
    "bytecode": ("demo/__pycache__", "__pycache__: files in this directory may not be removed"),
    "the dist-info": ("demo-1.0.dist-info", "Permission denied"),
}


def give_to(user: int, base: Path) -> None:
    for folder, directories, files in os.walk(base):
        for name in [*directories, *files]:
            os.chown(Path(folder) / name, user, user)
    os.chown(base, user, user)


def told_as(user: int, action: Callable[[], object]) -> str:
    """What ``action`` raises when ``user`` does it."""
    if os.geteuid() != 0:
        with pytest.raises(TreeError) as raised:
            action()
        return str(raised.value)
    back, forth = os.pipe()
    child = os.fork()
    if child == 0:
        text = "it worked"
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            action()
        except TreeError as error:
            text = str(error)
        except BaseException as error:
            text = repr(error)
        finally:
            os.write(forth, text.encode())
            os._exit(0)
    os.close(forth)
    with os.fdopen(back) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return text


@pytest.fixture
def place(quick_path: Path) -> Place:
    warm = Place(quick_path / "warm")
    warm.install()
    warm.apply(FIRST)  # imports all that a child without rights may not be able to read
    shutil.rmtree(warm.base)
    made = Place(quick_path / "place")
    made.install()
    made.series(FIRST)
    if os.geteuid() == 0:
        try:
            give_to(USER, quick_path)
        except PermissionError:
            pytest.skip("this user may not give files away")
    return made


@pytest.mark.parametrize(("path", "message"), RIGHTS.values(), ids=RIGHTS)
def test_a_directory_that_may_not_be_written(place: Place, path: str, message: str) -> None:
    (place.site / path).chmod(0o555)
    before = snapshot(place.site)
    told = told_as(USER, place.apply_as_it_is)
    (place.site / path).chmod(0o755)
    assert message in told
    assert "nothing was changed" in told
    before[path] = ("directory", 0o755, b"")
    assert snapshot(place.site) == before


def test_a_file_of_somebody_else_keeps_its_owner_or_nothing_happens(place: Place) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a file of somebody else")
    os.chown(place.site / "demo/core.py", USER + 1, USER + 1)
    before = snapshot(place.site)
    told = told_as(USER, place.apply_as_it_is)
    assert "Operation not permitted" in told
    assert "core.py" in told
    assert snapshot(place.site) == before


def test_a_read_only_file_in_a_writable_directory_is_replaced(place: Place) -> None:
    """As any renaming editor does: the directory decides."""
    for path in ("demo/core.py", "demo/old.py", "demo-1.0.dist-info/RECORD"):
        (place.site / path).chmod(0o444)
    if os.geteuid() == 0:
        assert told_as(USER, place.apply_as_it_is) == "it worked"
    else:
        place.apply_as_it_is()
    assert (place.site / "demo/core.py").stat().st_mode & 0o777 == 0o444
    assert b"x10 = 99" in (place.site / "demo/core.py").read_bytes()
    assert not (place.site / "demo/old.py").exists()
