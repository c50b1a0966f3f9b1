"""A long series of another project, in bare mode: patches as git prints them, over a package that is really installed."""

from __future__ import annotations

import random
import shutil
import subprocess
import warnings
from pathlib import Path

import pip
import pytest
from demo import Demo
from upstream import Upstream
from workspace import Work

from patchforge import cli

PATCHES = 96
SOURCE = Path(pip.__file__).parent / "_internal"


def edit(text: str, chance: random.Random, mark: str) -> str:
    """Some lines changed, put in and taken out, a few places a file; what comes out compiles, as what is patched must."""
    while True:
        made = scramble(text, chance, mark)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(made, "made", "exec")
        except SyntaxError:
            continue
        return made


def scramble(text: str, chance: random.Random, mark: str) -> str:
    lines = text.split("\n")
    for place in sorted((chance.randrange(len(lines)) for _ in range(chance.randint(1, 3))), reverse=True):
        how = chance.choice(("change", "insert", "remove"))
        if how == "insert":
            lines[place:place] = [f"# {mark}: line {n}" for n in range(chance.randint(1, 4))]
        elif how == "change":
            lines[place] += f"  # {mark}"
        elif len(lines) > 10:
            del lines[place : place + chance.randint(1, 3)]
    return "\n".join(lines) + f"\n# {mark}\n"


def history(upstream: Upstream) -> None:
    """PATCHES commits on the package: edits, several files, new, moved, removed and executable ones, names of all sorts."""
    chance = random.Random(20)
    for number in range(1, PATCHES + 1):
        files = sorted(path for path in upstream.folder.rglob("*.py") if path.stat().st_size > 800)
        for path in chance.sample(files, chance.choice((1, 1, 1, 2, 4))):
            path.write_text(edit(path.read_text(), chance, f"change {number}"))
        some = chance.choice(files)
        if number % 9 == 0:
            (upstream.folder / f"made/n\u00e9w file {number}.txt").parent.mkdir(exist_ok=True)
            (upstream.folder / f"made/n\u00e9w file {number}.txt").write_text(f"{number}\nno newline at the end")
        if number % 13 == 0:
            some.rename(some.with_name(f"moved_{number}_{some.name}"))
        elif number % 17 == 0:
            some.unlink()
        elif number % 19 == 0:
            some.chmod(0o755)
        upstream.commit(f"Change {number}: caf\u00e9\n\nText of change {number}.  \n\n- a list\n- of things")


@pytest.fixture
def place(tmp_path: Path) -> tuple[Upstream, Path, Path]:
    """The repository, the tree as it was before the patches, and a quilt directory of them."""
    upstream, tree, quilt = Upstream(tmp_path / "upstream"), tmp_path / "tree", tmp_path / "quilt"
    shutil.copytree(SOURCE, tree, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(tree, upstream.folder)
    upstream.git("init", "-q")
    upstream.commit("Release")
    history(upstream)
    names = upstream.git("format-patch", "-q", f"-{PATCHES}", "-M", "-o", str(quilt)).split()
    assert names == []
    found = sorted(p.name for p in quilt.iterdir())
    assert len(found) == PATCHES >= 80
    (quilt / "series").write_text("# of another project\n" + "".join(f"{name}\n" for name in found))
    return upstream, tree, quilt


def test_a_series_of_eighty_and_more_goes_there_and_back(
    place: tuple[Upstream, Path, Path], tmp_path: Path, demo: Demo
) -> None:
    upstream, tree, quilt = place
    before = {p.name: p.read_bytes() for p in quilt.iterdir()}
    work = Work(demo, tmp_path / "work")
    bare = ["--quilt", str(quilt)]
    assert cli.run(["checkout", str(work.directory), *bare, "--tree", str(tree)]) == 0
    assert work.git("rev-parse", "HEAD^{tree}") == upstream.git("rev-parse", "HEAD^{tree}").decode().strip()
    assert cli.run(["refresh", str(work.directory), *bare, "--check"]) == 0
    work.git("rebase", "--quiet", "--force-rebase", "pristine")  # other commits, the same words and trees
    assert cli.run(["refresh", str(work.directory), *bare]) == 0
    assert {p.name: p.read_bytes() for p in quilt.iterdir()} == before

    # One in the middle edited: it changes, and those whose context it was; all others keep their bytes.
    middle = f"HEAD~{PATCHES // 2}"
    name = work.git("log", "-1", "--format=%(trailers:key=Patch-Name,valueonly)", middle).strip()
    work.git("checkout", "--quiet", middle)
    (work.directory / "a new file.txt").write_text("x\n")
    work.git("add", "-A")
    work.git("commit", "--quiet", "--amend", "--no-edit")
    work.git("rebase", "--quiet", "--onto", "HEAD", middle.replace("HEAD", "series"), "series")
    assert cli.run(["refresh", str(work.directory), *bare]) == 0
    after = {p.name: p.read_bytes() for p in quilt.iterdir()}
    assert {key for key in after if after[key] != before[key]} == {name}
    assert b"+++ b/a new file.txt" in after[name]

    assert cli.run(["apply", *bare, "--tree", str(tree)]) == 0
    work.git("update-index", "--refresh")
    subprocess.run(["diff", "-r", "-x", ".git", "-x", ".patchforge*", str(work.directory), str(tree)], check=True)
    assert cli.run(["revert", *bare, "--tree", str(tree)]) == 0
    subprocess.run(["diff", "-r", "-x", "__pycache__", str(SOURCE), str(tree)], check=True)
