from __future__ import annotations

from pathlib import Path

import pytest
from demo import LOG, NAMES, Demo

NEEDY = NAMES.replace(b"Retires-when: version >=1.1\n", b"Retires-when: with log\nRequires: log\n")


@pytest.fixture
def ready(demo: Demo) -> Demo:
    demo.write_patches(log=LOG, names=NEEDY)
    demo.run("lock")
    demo.run("table", tree=False)
    return demo


def sound(demo: Demo) -> None:
    assert demo.run("lock", "--check").status == 0
    assert demo.run("check-table", tree=False).status == 0
    assert demo.run("lint", "--strict", tree=False).status == 0
    assert demo.run("apply", "--dry-run").status == 0


def test_drop(ready: Demo) -> None:
    assert ready.run("drop", "names").status == 0
    assert not (ready.patches / "names.patch").exists()
    assert (ready.series / "series").read_text() == "log.patch\n"
    sound(ready)


def test_drop_of_a_patch_another_requires(ready: Demo) -> None:
    before = {p: p.read_bytes() for p in ready.root.rglob("*") if p.is_file()}
    done = ready.run("drop", "log")
    assert done.status == 2
    assert "'names' requires 'log'" in done.err
    assert {p: p.read_bytes() for p in ready.root.rglob("*") if p.is_file()} == before


def test_a_name_that_differs_only_in_capitals_is_refused(ready: Demo, tmp_path: Path) -> None:
    letter = tmp_path / "letter.patch"
    letter.write_bytes(NAMES.replace(b"extra", b"more"))
    work = tmp_path / "work"
    assert ready.run("checkout", str(work)).status == 0
    for words in (["mv", "names", "Log"], ["import", "--name=LOG", "--prefix=.", str(letter)]):
        done = ready.run(*words)
        assert done.status == 2, words
        assert "differ only in capitals, and many file systems cannot hold both" in done.err
    done = ready.run("new", "Log", str(work), tree=False)
    assert done.status == 2
    assert "'Log' and 'log' differ only in capitals" in done.err
    assert sorted(p.name for p in ready.patches.iterdir()) == ["log.patch", "names.patch"]
    assert ready.run("mv", "log", "LOG").status == 0
    assert sorted(p.name for p in ready.patches.iterdir()) == ["LOG.patch", "names.patch"]


def test_drop_of_a_patch_another_supersedes(demo: Demo) -> None:
    demo.write_patches(log=LOG, names=NAMES.replace(b"Cut-against", b"Supersedes: log\nCut-against"))
    assert demo.run("lock").status == 0
    done = demo.run("drop", "log")
    assert done.status == 2
    assert "patches/demo-1.0/names.patch:6: 'names' says that it supersedes 'log'" in done.err
    assert "take 'log' out of its header Supersedes, then drop it again" in done.err
    assert (demo.patches / "log.patch").exists()


def test_mv_renames_it_everywhere(ready: Demo) -> None:
    assert ready.run("mv", "log", "counting").status == 0
    assert (ready.series / "series").read_text() == "counting.patch\nnames.patch\n"
    assert (ready.patches / "counting.patch").read_bytes() == LOG
    text = (ready.patches / "names.patch").read_bytes()
    assert b"Requires: counting\n" in text
    assert b"Retires-when: with counting\n" in text
    assert text.count(b"log") == NEEDY.count(b"log") - 2
    sound(ready)


@pytest.mark.parametrize(
    ("said", "after"),
    [
        ("never -- the log we keep, with log one day", "never -- the log we keep, with log one day"),
        ("with log -- because log is here", "with counting -- because log is here"),
        ("version >=2 or probe log and with log", "version >=2 or probe counting and with counting"),
        ("with\n log\n -- log", "with\n counting\n -- log"),
        ("with log-more or version >=2", "with log-more or version >=2"),
        ("when upstream says so with log in hand", "when upstream says so with log in hand"),
    ],
)
def test_mv_leaves_prose_alone(demo: Demo, said: str, after: str) -> None:
    names = NAMES.replace(b"version >=1.1", said.encode())
    demo.write_patches(
        log=LOG,
        names=names,
        **{"log-more": NAMES.replace(b"extra.py", b"more.py").replace(b"two", b"zwei").replace(b"+zwei\n", b"+due\n")},
    )
    assert demo.run("lock").status == 0
    assert demo.run("table", tree=False).status == 0
    done = demo.run("mv", "log", "counting")
    assert done.status == 0, done.err
    assert (demo.patches / "names.patch").read_bytes() == NAMES.replace(b"version >=1.1", after.encode())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mv", "log", "names"], "has a patch 'names'"),
        (["mv", "log", "../x"], "is not a name"),
        (["mv", "nobody", "x"], "no patch 'nobody'"),
        (["drop", "nobody"], "no patch 'nobody'"),
    ],
)
def test_wrong_names(ready: Demo, words: list[str], message: str) -> None:
    done = ready.run(*words)
    assert done.status == 2
    assert message in done.err


@pytest.mark.parametrize("name", ["bad name", "#x", "sub/x", ".x", "-x", "", "é", "a" * 300])
def test_what_cannot_be_a_name_is_refused_everywhere(ready: Demo, tmp_path: Path, name: str) -> None:
    ready.run("drop", "names")
    letter = tmp_path / "letter.patch"
    letter.write_bytes(NEEDY)
    before = {p: p.read_bytes() for p in ready.root.rglob("*") if p.is_file()}
    for words in (["import", f"--name={name}", str(letter)], ["mv", "--", "log", name]):
        done = ready.run(*words)
        assert done.status == 2, (words, done.out, done.err)
        assert {p: p.read_bytes() for p in ready.root.rglob("*") if p.is_file()} == before
