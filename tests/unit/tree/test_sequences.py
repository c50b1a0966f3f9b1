"""Series whose patches build on each other: what is on the disk is right after apply, after replacing, and after revert."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from installed import FILES, FIRST, SECOND, Place, patch
from patchforge.engine.model import Failure
from trees import Snapshot

INFO = "demo-1.0.dist-info"
Series = dict[str, bytes]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.install(bytecode=False)
    return made


def create(path: str, text: str = "x\n", mode: str = "100644") -> str:
    body = "".join(f"+{line}\n" for line in text.splitlines())
    count = len(text.splitlines())
    return f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{count} @@\n{body}"


def delete(path: str, text: str) -> str:
    body = "".join(f"-{line}\n" for line in text.splitlines())
    count = len(text.splitlines())
    return f"diff --git a/{path} b/{path}\ndeleted file mode 100644\n--- a/{path}\n+++ /dev/null\n@@ -1,{count} +0,0 @@\n{body}"


def rename(old: str, new: str, word: str = "rename") -> str:
    return f"diff --git a/{old} b/{new}\nsimilarity index 100%\n{word} from {old}\n{word} to {new}\n"


def mode(path: str, old: str, new: str) -> str:
    return f"diff --git a/{path} b/{path}\nold mode {old}\nnew mode {new}\n"


def edit(path: str, old: str, new: str) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{old}\n+{new}\n"


def series(*diffs: str) -> Series:
    return {f"p{number}": patch(f"step {number}", diff) for number, diff in enumerate(diffs)}


HUNKS = (
    "diff --git a/core.py b/core.py\n--- a/core.py\n+++ b/core.py\n"
    "@@ -2,3 +2,5 @@\n x1 = 1\n+y1 = 1\n+y2 = 2\n x2 = 2\n x3 = 3\n"
    "@@ -11,5 +13,3 @@\n x10 = 10\n-x11 = 11\n-x12 = 12\n x13 = 13\n x14 = 14\n"
    "@@ -31,3 +31,4 @@\n x30 = 30\n-x31 = 31\n+z31 = 1\n+z31 = 2\n x32 = 32\n"
)
MORE_HUNKS = (
    "diff --git a/core.py b/core.py\n--- a/core.py\n+++ b/core.py\n"
    "@@ -1,5 +1,4 @@\n x0 = 0\n x1 = 1\n-y1 = 1\n y2 = 2\n x2 = 2\n"
    "@@ -30,6 +29,7 @@\n x29 = 29\n x30 = 30\n z31 = 1\n+z = 0\n z31 = 2\n x32 = 32\n x33 = 33\n"
)
HUNKED = b"".join(
    line + b"\n"
    for number in range(40)
    for line in {
        1: [b"x1 = 1", b"y2 = 2"],
        11: [],
        12: [],
        31: [b"z31 = 1", b"z = 0", b"z31 = 2"],
    }.get(number, [b"x%d = %d" % (number, number)])
)

SEQUENCES: dict[str, tuple[Series, dict[str, bytes | None]]] = {
    "renamed twice": (
        series(rename("old.py", "mid.py"), rename("mid.py", "new/end.py"), edit("new/end.py", "OLD = 1", "OLD = 2")),
        {"old.py": None, "mid.py": None, "new/end.py": b"OLD = 2\n"},
    ),
    "renamed round a ring": (
        series(rename("old.py", "t.py"), rename("sub/only.py", "old.py"), rename("t.py", "sub/only.py")),
        {"old.py": b"ONLY = 1\n", "sub/only.py": b"OLD = 1\n", "t.py": None},
    ),
    "swapped in one patch": (
        series(rename("old.py", "sub/only.py") + rename("sub/only.py", "old.py")),
        {"old.py": b"ONLY = 1\n", "sub/only.py": b"OLD = 1\n"},
    ),
    "made in a directory that a patch emptied": (
        series(delete("sub/only.py", "ONLY = 1\n"), create("sub/again.py", "A = 1\n")),
        {"sub/only.py": None, "sub/again.py": b"A = 1\n"},
    ),
    "deleted and made again": (
        series(delete("old.py", "OLD = 1\n"), create("old.py", "OLD = 2\n", "100755")),
        {"old.py": b"OLD = 2\n"},
    ),
    "made and deleted again": (
        series(create("n/e/w.py", "N = 1\n"), delete("n/e/w.py", "N = 1\n"), edit("old.py", "OLD = 1", "OLD = 2")),
        {"n/e/w.py": None, "old.py": b"OLD = 2\n"},
    ),
    "copied, then the source changes": (
        series(rename("old.py", "two.py", "copy"), edit("old.py", "OLD = 1", "OLD = 2")),
        {"two.py": b"OLD = 1\n", "old.py": b"OLD = 2\n"},
    ),
    "copied out of what is renamed": (
        series(rename("old.py", "one.py", "copy") + rename("old.py", "two.py")),
        {"one.py": b"OLD = 1\n", "two.py": b"OLD = 1\n", "old.py": None},
    ),
    "modes only": (
        series(
            mode("run.sh", "100755", "100644"), mode("old.py", "100644", "100755"), mode("run.sh", "100644", "100755")
        ),
        {"run.sh": b"#!/bin/sh\nexit 0\n", "old.py": b"OLD = 1\n"},
    ),
    "a whole package goes": (
        series(
            "".join(
                delete(path.removeprefix("demo/"), data.decode()).replace(
                    "100644", f"100{bits:o}".replace("640", "644")
                )
                for path, (data, bits) in FILES.items()
            )
        ),
        {path.removeprefix("demo/"): None for path in FILES},
    ),
    "hunks that move what follows": (series(HUNKS, MORE_HUNKS), {"core.py": HUNKED}),
    "names": (
        series(create("with space/ä ö.txt"), create('qu"ote,comma.txt'.replace('"', "'")), create("x" * 250)),
        {"with space/ä ö.txt": b"x\n", "qu'ote,comma.txt": b"x\n", "x" * 250: b"x\n"},
    ),
}


def record_is_true(place: Place) -> None:
    import csv

    from patchforge.tree.record import record_hash

    with (place.site / INFO / "RECORD").open(newline="", encoding="utf-8") as stream:
        rows = {row[0]: row[1:] for row in csv.reader(stream)}
    found = {path: entry for path, entry in place.look().items() if entry[0] == "file"}
    assert set(rows) == set(found)
    for path, (_, _, data) in found.items():
        if not path.endswith("/RECORD"):
            assert rows[path] == [record_hash(data), str(len(data))]


@pytest.mark.parametrize(("patches", "expected"), SEQUENCES.values(), ids=SEQUENCES)
def test_a_sequence_there_and_back(place: Place, patches: Series, expected: dict[str, bytes | None]) -> None:
    old = place.look()
    done = place.apply(patches)
    assert done.status == 0, done
    for path, data in expected.items():
        target = place.site / "demo" / path
        assert (target.read_bytes() if target.exists() else None) == data, path
    record_is_true(place)
    assert place.apply(patches).outcome == "already"
    place.revert()
    assert place.look() == old


@pytest.mark.parametrize("two", SEQUENCES)
@pytest.mark.parametrize("one", SEQUENCES)
def test_any_series_replaces_any_other(tmp_path: Path, one: str, two: str) -> None:
    place, fresh = Place(tmp_path / "place"), Place(tmp_path / "fresh")
    for made in (place, fresh):
        made.install(bytecode=False)
    old = place.look()
    place.apply(SEQUENCES[one][0])
    done = place.apply(SEQUENCES[two][0])
    fresh.apply(SEQUENCES[two][0])
    assert done.status == 0, done
    assert place.look() == fresh.look()
    place.revert()
    assert place.look() == old


@pytest.mark.parametrize("first", ["100644", "100755"])
def test_a_file_of_ours_takes_the_mode_of_the_newer_series(place: Place, first: str) -> None:
    second = {"100644": "100755", "100755": "100644"}[first]
    place.apply(series(create("tool", "x\n", first)))
    assert bool((place.site / "demo/tool").stat().st_mode & 0o111) == (first == "100755")
    place.apply(series(create("tool", "x\n", second)))
    assert bool((place.site / "demo/tool").stat().st_mode & 0o111) == (second == "100755")


CLASHES = {
    "file, then below it": (series(delete("old.py", "OLD = 1\n"), create("old.py/x.py")), "old.py"),
    "directory emptied, then a file of its name": (series(delete("sub/only.py", "ONLY = 1\n"), create("sub")), "sub"),
    "below a file that stays": (series(create("plain.txt/x")), "plain.txt"),
    "where a directory is": (series(create("sub")), "sub"),
    "two new ones": (series(create("n"), create("n/x")), "n"),
    "renamed below itself": (series(rename("old.py", "old.py/x")), "old.py"),
}


@pytest.mark.parametrize(("patches", "name"), CLASHES.values(), ids=CLASHES)
def test_a_path_that_would_be_file_and_directory_is_refused(place: Place, patches: Series, name: str) -> None:
    old = place.look()
    done = place.apply(patches)
    assert done.status == 1
    failure = next(result.failure for result in done.results if result.failure)
    assert isinstance(failure, Failure)
    assert name in failure.message
    assert place.look() == old


@pytest.fixture
def mask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002, 0o027], indirect=True, ids=oct)
def test_new_files_take_the_mask_and_old_ones_keep_their_bits(place: Place, mask: int) -> None:
    old = place.look()
    place.apply(FIRST)
    found = place.look()
    assert found["demo/tool.sh"][1] == 0o777 & ~mask
    assert found["demo/new/deep/made.py"][1] == 0o666 & ~mask
    assert found["demo/new/deep"][1] == 0o777 & ~mask
    for path in ("demo/core.py", "demo/plain.txt", f"{INFO}/RECORD"):
        assert found[path][1] == old[path][1]
    place.revert()
    restored = {path: entry for path, entry in place.look().items() if path != "demo/sub"}
    old.pop("demo/sub")  # a directory that was removed comes back with the bits of any new one
    assert restored == old


@pytest.mark.parametrize("bits", [0o400, 0o600, 0o666, 0o744, 0o777, 0o2755, 0o4711])
def test_odd_bits_survive_there_and_back(place: Place, bits: int) -> None:
    for path in ("core.py", "plain.txt", "old.py"):
        (place.site / "demo" / path).chmod(bits)
    old = place.look()
    done = place.apply(SECOND)
    assert done.status == 0
    assert (place.site / "demo/core.py").stat().st_mode & 0o7777 == bits
    place.revert()
    assert place.look() == old


def random_series(chance: random.Random, length: int) -> Series:
    """Patches that make, change, rename, copy and delete files of a few names, in any order that applies."""
    state: dict[str, str] = {path.removeprefix("demo/"): data.decode() for path, (data, _) in FILES.items()}
    state = {path: state[path] for path in ("old.py", "sub/only.py", "__init__.py")}
    names = [*state, "x.py", "y/x.py", "y/z.txt", "sub/other.py"]
    diffs = []
    for _ in range(length):
        free = [name for name in names if name not in state]
        have = [name for name in names if name in state]
        kind = chance.choice(["create", "delete", "rename", "copy", "edit", "edit"])
        if kind == "create" and free:
            path, text = chance.choice(free), f"N = {chance.randrange(9)}\nM = 0\n"
            state[path] = text
            diffs.append(create(path, text))
        elif kind in ("rename", "copy") and free and have:
            path, new = chance.choice(have), chance.choice(free)
            state[new] = state[path] if kind == "copy" else state.pop(path)
            diffs.append(rename(path, new, kind))
        elif kind == "delete" and have:
            path = chance.choice(have)
            diffs.append(delete(path, state.pop(path)))
        elif have:
            path = chance.choice(have)
            lines = state[path].splitlines()
            new = f"E = {chance.randrange(1000, 9999)}"
            context = "".join(f" {line}\n" for line in lines[1:4])
            count = 1 + len(lines[1:4])
            diffs.append(
                f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,{count} +1,{count} @@\n"
                f"-{lines[0]}\n+{new}\n{context}"
            )
            state[path] = "\n".join([new, *lines[1:]]) + "\n"
    return series(*diffs)


SCALE = int(os.environ.get("PATCHFORGE_FUZZ_SCALE", "1"))


@pytest.mark.parametrize("seed", range(30 * SCALE))
def test_random_series_there_over_and_back(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    place, fresh = Place(tmp_path / "place"), Place(tmp_path / "fresh")
    for made in (place, fresh):
        made.install(bytecode=False)
    old: Snapshot = place.look()
    one, two = random_series(chance, 8), random_series(chance, 8)
    done = place.apply(one)
    assert done.status == 0, [result.failure for result in done.results]
    record_is_true(place)
    assert place.apply(two).status == 0
    assert fresh.apply(two).status == 0
    assert place.look() == fresh.look()
    place.revert()
    assert place.look() == old
