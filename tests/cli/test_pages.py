"""The pages that ``table`` writes and ``check-table`` checks, where PATCHES.md asks for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo import LOG, NAMES, Demo

ASKS = "<!-- patchforge:pages demo-1.0 docs/patches -->"

PAGE = """\
<!-- Written by 'patchforge table' from the patches of demo-1.0: change those. -->
# log

> the engine counts its starts

The engine says nothing when it starts.

## Facts

| | |
| --- | --- |
| Patch | [patches/demo-1.0/log.patch](../../patches/demo-1.0/log.patch) |
| Kind | feature |
| Upstream | demo #12 (open) |
| Cut-against | demo 1.0 |
| Retires-when | carries #12 |
| Probe | `source: core.py :: Engine.start contains starts` |
| Tests | [tests/test_log.py](../../tests/test_log.py) |

## Knobs

| variable | type | default |
| --- | --- | --- |
| `DEMO_LOG` | bool | 0 |

## Files

| file | | added | removed |
| --- | --- | ---: | ---: |
| `core.py` | modify | 1 | 0 |
"""


def ask(demo: Demo, line: str = ASKS) -> Path:
    document = demo.root / "PATCHES.md"
    document.write_text(f"{line}\n\n{document.read_text()}")
    return demo.root / "docs/patches"


def test_a_page_says_what_its_patch_says(demo: Demo) -> None:
    folder = ask(demo)
    done = demo.run("table", tree=False)
    assert done.status == 0
    assert "docs/patches: wrote 3 pages, removed 0" in done.out
    assert sorted(p.name for p in folder.iterdir()) == ["README.md", "log.md", "names.md"]
    assert (folder / "log.md").read_text() == PAGE
    index = (folder / "README.md").read_text()
    assert "| 1 | [log](log.md) | feature | the engine counts its starts |\n| 2 | [names](names.md) | fix |" in index
    names = (folder / "names.md").read_text()
    assert "## Knobs" not in names
    assert "| `data/text.txt` | modify | 1 | 1 |\n| `extra.py` | create | 1 | 0 |" in names
    assert demo.run("check-table", tree=False).status == 0
    assert "docs/patches is up to date: 3 pages" in demo.run("table", tree=False).out


def test_without_the_line_there_are_no_pages(demo: Demo) -> None:
    assert "page" not in demo.run("table", tree=False).out
    assert not (demo.root / "docs").exists()
    ask(demo, "<!-- patchforge:pages other-2.0 docs/patches -->")
    assert demo.run("table", tree=False).status == 0
    assert not (demo.root / "docs").exists()


def test_a_stale_or_missing_page_is_a_finding_on_the_page(demo: Demo) -> None:
    folder = ask(demo)
    demo.run("table", tree=False)
    demo.write_patches(log=LOG.replace(b"says nothing when", b"does not say that"), names=NAMES)
    (folder / "names.md").unlink()
    done = demo.run("check-table", "--format", "json", tree=False)
    assert done.status == 1
    assert done.json["pages"] == {"directory": "docs/patches", "stale": ["log.md", "names.md"], "left": []}
    assert [p["result"] for p in done.json["patches"]] == ["differs", "differs"]
    assert [p["file"] for p in done.json["problems"]] == ["docs/patches/log.md", "docs/patches/names.md"]
    assert not (folder / "names.md").exists(), "check-table writes nothing"
    assert "does not say that" not in (folder / "log.md").read_text()
    text = demo.run("check-table", tree=False)
    assert "PATCHES.md is up to date" in text.out
    assert "docs/patches: 2 pages out of date, 0 too many" in text.out
    assert "run 'patchforge table'" in text.err
    demo.run("table", tree=False)
    assert "does not say that" in (folder / "log.md").read_text()
    assert demo.run("check-table", tree=False).status == 0


def test_the_page_of_a_patch_that_is_gone_goes_and_nothing_else(demo: Demo) -> None:
    folder = ask(demo)
    demo.run("table", tree=False)
    (folder / "notes.md").write_text("mine\n")
    (folder / "other.md").write_text((folder / "log.md").read_text().replace("demo-1.0", "demo-2.0"))
    demo.write_patches(names=NAMES)
    done = demo.run("check-table", tree=False)
    assert done.status == 1
    assert "docs/patches/log.md" in done.err and "not in the series" in done.err
    assert "removed 1" in demo.run("table", tree=False).out
    assert sorted(p.name for p in folder.iterdir()) == ["README.md", "names.md", "notes.md", "other.md"]
    assert demo.run("check-table", tree=False).status == 0


def test_a_page_somebody_wrote_is_not_touched(demo: Demo) -> None:
    folder = ask(demo)
    folder.mkdir(parents=True)
    (folder / "log.md").write_text("# My notes\n")
    for command in ("table", "check-table"):
        done = demo.run(command, tree=False)
        assert done.status == 2
        assert "docs/patches/log.md:1" in done.err and "did not write" in done.err
    assert (folder / "log.md").read_text() == "# My notes\n"
    assert sorted(p.name for p in folder.iterdir()) == ["log.md"]


def test_a_patch_whose_page_would_be_the_index_is_refused(demo: Demo) -> None:
    ask(demo)
    demo.write_patches(log=LOG, readme=NAMES)
    done = demo.run("table", tree=False)
    assert done.status == 2
    assert "it would be the index" in done.err


@pytest.mark.parametrize("directory", ["../patches", "/etc", "docs//patches", "docs/./x", "docs/", "-x", ".git/x"])
def test_pages_stay_in_the_project(demo: Demo, directory: str) -> None:
    ask(demo, f"<!-- patchforge:pages demo-1.0 {directory} -->")
    done = demo.run("table", tree=False)
    assert done.status == 2
    assert "PATCHES.md:1" in done.err and "not a directory for pages" in done.err


def test_a_link_out_of_the_project_is_not_followed(demo: Demo, tmp_path: Path) -> None:
    ask(demo)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (demo.root / "docs").symlink_to(elsewhere)
    done = demo.run("table", tree=False)
    assert done.status == 2
    assert "leads out of the project" in done.err
    assert list(elsewhere.iterdir()) == []


def test_asked_for_twice(demo: Demo) -> None:
    ask(demo)
    ask(demo)
    done = demo.run("table", tree=False)
    assert done.status == 2
    assert "asked for twice" in done.err


def test_renaming_and_dropping_keep_the_pages(demo: Demo) -> None:
    folder = ask(demo)
    demo.run("table", tree=False)
    assert demo.run("mv", "names", "numbers").status == 0
    assert sorted(p.name for p in folder.iterdir()) == ["README.md", "log.md", "numbers.md"]
    assert demo.run("check-table", tree=False).status == 0
    assert demo.run("drop", "log").status == 0
    assert sorted(p.name for p in folder.iterdir()) == ["README.md", "numbers.md"]
    assert demo.run("check-table", tree=False).status == 0
