from __future__ import annotations

import pytest
from demo import LOG, NAMES, Demo


def test_lint_is_clean_but_for_what_is_missing(demo: Demo) -> None:
    done = demo.run("lint", tree=False)
    assert done.status == 0
    assert "2 patches: 0 errors, 1 warning" in done.out
    assert "there is no lock.toml" in done.err
    demo.run("lock")
    assert demo.run("lint", "--strict", tree=False).status == 0


@pytest.mark.parametrize(
    ("data", "status", "message", "line"),
    [
        (LOG.replace(b"Kind: feature", b"Knid: feature"), 1, "unknown header 'Knid'", 3),
        (LOG.replace(b"Kind: feature", b"Kind: festure"), 1, "did you mean 'feature'?", 3),
        (LOG.replace(b"Cut-against: demo 1.0\n", b""), 1, "the header has no 'Cut-against'", 3),
        (LOG.replace(b"(open)", b"(closed maybe)"), 1, "Upstream: ", 5),
        (LOG.replace(b"carries #12", b"carries twelve"), 1, "Retires-when: ", 7),
        (LOG.replace(b"demo 1.0", b"demo 0.9"), 0, "and the pin is 'demo 1.0'", 6),
        (LOG.replace(b"carries #12", b"when it is no longer needed"), 0, "only prose", 7),
        (LOG.replace(b"carries #12", b"with nobody"), 1, "no patch 'nobody' in the series", 7),
        (LOG.replace(b"+        self.starts = 1\n", b"+        self.starts = 1  \n"), 0, "white space at the end", 19),
        (LOG.replace(b"+        self.starts = 1\n", b"+<<<<<<< ours\n"), 1, "conflict marker", 19),
        (LOG.replace(b"@@ -4,6 +4,7 @@", b"@@ -4,6 +4,8 @@"), 2, "promises 0 more old and 1 more new", 23),
        (LOG.replace(b"Tests: ", b"Requires: later\nTests: "), 1, "no patch 'later' in the series", 10),
        (LOG.replace(b"Tests: ", b"Requires: names\nTests: "), 1, "'names' comes later in the series", 10),
        (b"\n".join(LOG.split(b"\n")[2:]), 0, "says why the patch exists", 1),
    ],
)
def test_each_problem_is_named_with_its_line(demo: Demo, data: bytes, status: int, message: str, line: int) -> None:
    demo.write_patches(log=data, names=NAMES)
    done = demo.run("lint", tree=False)
    assert message in done.err
    assert done.status == status
    assert f"patches/demo-1.0/log.patch:{line}: " in done.err


def test_files_beside_the_series_are_found(demo: Demo) -> None:
    (demo.patches / "forgotten.patch").write_bytes(LOG)
    (demo.patches / "log.patch.orig").write_bytes(b"")
    done = demo.run("lint", tree=False)
    assert done.status == 1
    assert "patches/demo-1.0/forgotten.patch: the patch is in no line of the series" in done.err
    assert "patches/demo-1.0/log.patch.orig: a leftover of another tool" in done.err


def test_a_series_that_names_a_missing_file(demo: Demo) -> None:
    (demo.series / "series").write_text("log.patch\nnamse.patch\n")
    for command in ("lint", "apply", "check-table"):
        done = demo.run(command, tree=command == "apply")
        assert done.status == 2
        assert "series/demo-1.0/series:2: the series names namse.patch" in done.err
        assert "did you mean 'names.patch'?" in done.err


def test_twins_are_found(demo: Demo) -> None:
    demo.write_patches(log=LOG, copy=LOG)
    done = demo.run("lint", tree=False)
    assert "the same diff as 'log'" in done.err
    assert done.status == 1


SECOND = LOG.replace(
    b"""@@ -4,6 +4,7 @@ import os
 class Engine:
     def start(self):
         self.running = True
+        self.starts = 1
         return self
 
     def stop(self):
""",
    b"""@@ -5,5 +5,6 @@ class Engine:
     def start(self):
         self.running = True
         self.starts = 1
+        self.ends = 0
         return self
 
""",
)


def test_accidental_order_is_a_warning_until_it_is_said(demo: Demo) -> None:
    demo.write_patches(log=LOG, second=SECOND)
    done = demo.run("lint", tree=False)
    assert "stands on lines that 'log' adds" in done.err
    demo.write_patches(log=LOG, second=SECOND.replace(b"Tests: ", b"Requires: log\nTests: "))
    assert "stands on lines" not in demo.run("lint", tree=False).err


def test_order_does_not_matter_far_apart(demo: Demo) -> None:
    far = LOG.replace(
        LOG[LOG.index(b"@@ ") :],
        b"""@@ -15,4 +16,5 @@ class Worker:
 class Worker:
     def start(self):
         self.busy = True
+        self.jobs = 0
         return self
""",
    )
    demo.write_patches(log=LOG, far=far)
    assert demo.run("lock").status == 0
    assert "stands on lines" not in demo.run("lint", tree=False).err


def test_table_is_written_checked_and_shows_its_difference(demo: Demo) -> None:
    document = demo.root / "PATCHES.md"
    before = demo.run("check-table", tree=False)
    assert before.status == 1
    assert "+| 1 | [log](patches/demo-1.0/log.patch) | feature |" in before.out
    assert demo.run("table", tree=False).status == 0
    text = document.read_text()
    assert text.startswith("# Patches\n\n<!-- patchforge:table demo-1.0 -->\n\n2 patches against demo 1.0")
    assert text.endswith("<!-- /patchforge:table -->\n\nThe end.\n")
    assert demo.run("check-table", tree=False).status == 0
    assert "up to date" in demo.run("table", tree=False).out


def test_the_table_is_compared_byte_for_byte(demo: Demo) -> None:
    demo.run("table", tree=False)
    document = demo.root / "PATCHES.md"
    right = document.read_text()
    for wrong in (
        right.replace("| --- |", "| ---  |"),
        right.replace("1.0, in", "1.0,  in"),
        right.replace("|\n\n<!--", "|\n<!--"),
    ):
        assert wrong != right
        document.write_text(wrong)
        assert demo.run("check-table", tree=False).status == 1


def test_a_wrong_row_is_annotated_at_the_header_line(demo: Demo) -> None:
    demo.run("table", tree=False)
    document = demo.root / "PATCHES.md"
    document.write_text(document.read_text().replace("counts its starts", "counts"))
    done = demo.run("check-table", "--format", "github", tree=False)
    assert done.status == 1
    assert "::error file=patches/demo-1.0/log.patch,line=4,title=patchforge%3A table::PATCHES.md:" in done.out
    assert "names.patch" not in done.out.partition("::error")[2].partition("\n")[0]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: t.replace("<!-- patchforge:table demo-1.0 -->\n", ""), "has no table for demo-1.0"),
        (lambda t: t.replace("<!-- /patchforge:table -->\n", ""), "the table is not closed"),
        (lambda t: t + t, "has several tables"),
    ],
)
def test_broken_markers_are_the_input(demo: Demo, edit: object, message: str) -> None:
    document = demo.root / "PATCHES.md"
    document.write_text(edit(document.read_text()))  # type: ignore[operator]
    for command in ("table", "check-table"):
        done = demo.run(command, tree=False)
        assert done.status == 2
        assert message in done.err


def test_cells_escape_markdown(demo: Demo) -> None:
    demo.write_patches(log=LOG.replace(b"counts its starts", b"a | b <c> *d*"))
    demo.run("table", tree=False)
    assert r"a \| b \<c\> \*d\*" in (demo.root / "PATCHES.md").read_text()
    assert demo.run("check-table", tree=False).status == 0


def test_lock_check_says_stale_and_writes_nothing(demo: Demo) -> None:
    path = demo.series / "lock.toml"
    assert demo.run("lock", "--check").status == 1
    assert not path.exists()
    assert demo.run("lock").status == 0
    first = path.read_bytes()
    assert demo.run("lock", "--check").status == 0
    assert "up to date" in demo.run("lock").out
    demo.run("apply")
    assert demo.run("lock", "--check").status == 0, "a patched tree gives the same lock"
    assert path.read_bytes() == first


def test_a_lock_is_not_made_from_an_edited_tree(demo: Demo) -> None:
    path = demo.site / "demo/core.py"
    path.write_bytes(path.read_bytes() + b"\n# mine\n")
    done = demo.run("lock")
    assert done.status == 1
    assert "core.py: its bytes are not those that were installed" in done.err
    assert not (demo.series / "lock.toml").exists()


def test_offsets_say_who_moves_whom(demo: Demo) -> None:
    far = LOG.replace(
        LOG[LOG.index(b"@@ ") :],
        b"""@@ -15,4 +16,5 @@ def stop(self):
 class Worker:
     def start(self):
         self.busy = True
+        self.jobs = 0
         return self
""",
    ).replace(b"@@ -15,4 +16,5", b"@@ -16,4 +17,5")
    demo.write_patches(log=LOG, far=far, names=NAMES)
    done = demo.run("lint", "--offsets", "--format", "json", tree=False)
    assert done.json["offsets"] == [{"patch": "log", "lines": 1, "moves": "far", "file": "core.py", "hunks": 1}]
    assert "log       +1  far    1 hunk  core.py" in demo.run("lint", "--offsets", tree=False).out
    assert "offsets" not in demo.run("lint", "--format", "json", tree=False).json
