"""Generated edits: cut by git and by GNU diff, applied here, by git and by GNU patch.

Three statements: what we apply to the tree a patch was cut from is the tree it was cut for; wherever we apply a patch to some
other tree, git and GNU patch at fuzz 0 do the same or refuse; and where we refuse what both of them take, the reason is one that
the contract gives.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest
from edits import GIT, edit_tree, edited, files_of, git_diff, make_tree, run

from patchforge.diff import parse_patch
from patchforge.engine.apply import Applied
from patchforge.errors import MalformedPatch
from trees import Bench, failure_text

SCALE = int(os.environ.get("PATCHFORGE_FUZZ_SCALE", "1"))
SEEDS = range(120 * SCALE)
OPTIONS = [
    ["-U3", "--full-index"],
    ["-U3", "-M"],
    ["-U1"],
    ["-U3", "-M", "-C", "--find-copies-harder", "--full-index"],
    ["-U8", "--no-renames"],
    ["-U3", "--patience"],
]
# Why we may refuse what git and GNU patch both take at fuzz 0.
STRICTER = {"ambiguous", "moved", "already-there", "context"}
needs_patch = pytest.mark.skipif(shutil.which("patch") is None, reason="needs GNU patch")


def pair(tmp_path: Path, seed: int) -> tuple[Path, Path, random.Random]:
    chance = random.Random(seed)
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    make_tree(old, chance)
    shutil.copytree(old, new)
    edit_tree(new, chance)
    return old, new, chance


def bench_of(tmp_path: Path, tree: Path, name: str = "ours") -> Bench:
    bench = Bench(tmp_path / name)
    bench.root.mkdir()
    shutil.copytree(tree, bench.tree)
    return bench


@pytest.mark.parametrize("seed", SEEDS)
def test_cut_by_git(tmp_path: Path, seed: int) -> None:
    old, new, _ = pair(tmp_path, seed)
    options = OPTIONS[seed % len(OPTIONS)]
    patch = git_diff(old, new, tmp_path / "work", options)
    if not patch:
        return
    try:
        parsed = parse_patch(patch)
    except MalformedPatch as error:
        assert error.reason == "binary", error
        return
    bench = bench_of(tmp_path, old)
    done = bench.apply(patch)
    assert isinstance(done, Applied), str(done)
    assert done.status == 0, failure_text(done)
    assert done.results[0].offsets == ()
    assert files_of(bench.tree) == files_of(new)
    # git's own count of added and removed lines
    counting = [option for option in options if not option.startswith("-U")]
    total = run(["git", "diff", "--cached", "--numstat", *counting], tmp_path / "work").stdout.split(b"\n")
    assert done.results[0].added == sum(int(row.split(b"\t")[0]) for row in total if row)
    assert done.results[0].removed == sum(int(row.split(b"\t")[1]) for row in total if row)
    assert sum(h.added for f in parsed.files for h in f.hunks) == done.results[0].added


@needs_patch
@pytest.mark.parametrize("seed", SEEDS)
def test_cut_by_gnu_diff(tmp_path: Path, seed: int) -> None:
    old, new, _ = pair(tmp_path, seed + 10_000)
    made = run(["diff", "-ruNa", *(["-U1"] if seed % 3 == 0 else []), "old", "new"], tmp_path)
    if made.returncode == 0:
        return
    bench = bench_of(tmp_path, old)
    done = bench.apply(made.stdout)
    if isinstance(done, Applied) and done.status == 0:
        # A plain diff carries no modes, and knows an emptied file only as a removed one.
        assert {k: v for k, (v, _) in files_of(bench.tree).items() if v} == {
            k: v for k, (v, _) in files_of(new).items() if v
        }
        return
    # The one thing it cannot say strictly: a file that was or becomes empty looks like one that is created or removed.
    reason, text = failure_text(done)
    assert reason in ("exists", "already"), text


def other(tool: str, tmp_path: Path, tree: Path, patch: bytes) -> dict[str, tuple[bytes, bool]] | None:
    copy = tmp_path / tool
    shutil.copytree(tree, copy)
    command = (
        ["patch", "-p1", "-N", "--fuzz=0", "-s", "--no-backup-if-mismatch"]
        if tool == "patch"
        else ["git", "apply", "-"]
    )
    done = run(command, copy, patch)
    found = files_of(copy)
    shutil.rmtree(copy)
    return found if done.returncode == 0 else None


def perturb(tree: Path, chance: random.Random) -> None:
    for path in sorted(p for p in tree.rglob("*") if p.is_file()):
        draw = chance.random()
        data = path.read_bytes()
        if draw < 0.35:
            path.write_bytes(b"pushed down\n" * chance.randint(1, 30) + data)
        elif draw < 0.55:
            path.write_bytes(edited(data, chance))
        elif draw < 0.65:
            path.write_bytes(data + data)
        elif draw < 0.7:
            path.write_bytes(data.replace(b"\n", b"\r\n"))


@needs_patch
@pytest.mark.parametrize("seed", SEEDS)
def test_on_another_tree_we_do_what_both_do_or_refuse(tmp_path: Path, seed: int) -> None:
    old, new, chance = pair(tmp_path, seed + 20_000)
    patch = git_diff(old, new, tmp_path / "work", ["-U3", "--no-renames", "--full-index"])
    perturb(old, chance)
    if not patch or b"\nBinary files " in patch:
        return
    bench = bench_of(tmp_path, old)
    before = files_of(bench.tree)
    done = bench.apply(patch)
    gnu, git = other("patch", tmp_path, old, patch), other("git", tmp_path, old, patch)
    if isinstance(done, Applied) and done.outcome == "applied":
        ours = files_of(bench.tree)
        if git is None:
            # A row of the contract: without any context, at the recorded line, where the removed lines match.
            assert any(h.zero_context for f in parse_patch(patch).files for h in f.hunks)
            assert gnu is not None
        else:
            assert ours == git
        if gnu is not None:
            # GNU patch keeps a file that a deletion empties.
            assert {k: v for k, v in ours.items() if v[0]} == {k: v for k, v in gnu.items() if v[0]}
        return
    assert files_of(bench.tree) == before
    if isinstance(done, Applied) and done.outcome == "already":
        return
    if gnu is not None and git is not None and gnu == git:
        reason, text = failure_text(done)
        assert reason in STRICTER, text


def test_the_environment_of_git_is_scrubbed() -> None:
    assert GIT["GIT_CONFIG_GLOBAL"] == os.devnull
