"""Each kind of bad input: one clear message that names the place and the way out, and the right exit status, as text and as JSON."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from demo import CORE, LOG, NAMES, Demo


def header_typo(demo: Demo) -> None:
    demo.write_patches(log=LOG.replace(b"Retires-when:", b"Retire-when:"), names=NAMES)


def missing_patch(demo: Demo) -> None:
    (demo.patches / "names.patch").unlink()


def other_version(demo: Demo) -> None:
    os.rename(demo.site / "demo-1.0.dist-info", demo.site / "demo-2.0.dist-info")


def edited_file(demo: Demo) -> None:
    path = demo.site / "demo/core.py"
    path.write_bytes(CORE.replace(b"import os", b"import io"))


def twin_block(demo: Demo) -> None:
    """The intended method is gone from Engine, and the same lines stand in Worker."""
    path = demo.site / "demo/core.py"
    moved = CORE.replace(
        b"class Engine:\n    def start(self):\n        self.running = True\n        return self\n\n", b"class Engine:\n"
    )
    moved = moved.replace(b"self.busy", b"self.running") + b"\n    def stop(self):\n"
    path.write_bytes(moved)
    demo.write_patches(
        log=LOG.replace(b" class Engine:\n", b"").replace(
            b"@@ -4,6 +4,7 @@ import os", b"@@ -5,5 +5,6 @@ class Engine:"
        ),
        names=NAMES,
    )


def malformed_hunk(demo: Demo) -> None:
    demo.write_patches(log=LOG.replace(b"@@ -4,6 +4,7 @@", b"@@ -4,6 +4,9 @@"), names=NAMES)


def no_header(demo: Demo) -> None:
    demo.write_patches(log=LOG[LOG.index(b"diff --git") :], names=NAMES)


def diff_in_the_preamble(demo: Demo) -> None:
    demo.write_patches(log=NAMES[NAMES.index(b"diff --git") :] + b"\n" + LOG, names=NAMES)


def broken_pin(demo: Demo) -> None:
    path = demo.series / "pin.toml"
    path.write_text(path.read_text().replace("distribution =", "distribuiton ="))


def broken_lock(demo: Demo) -> None:
    (demo.series / "lock.toml").write_text("schema = 1\n[")


def no_tree(demo: Demo) -> None:
    (demo.site / "demo-1.0.dist-info/RECORD").unlink()


@dataclass(frozen=True)
class Case:
    damage: Callable[[Demo], None]
    status: int
    reason: str
    place: str
    way_out: str


CASES = [
    Case(header_typo, 2, "header", "patches/demo-1.0/log.patch:7", "did you mean 'Retires-when'?"),
    Case(missing_patch, 2, "series", "series/demo-1.0/series:2", "names.patch"),
    Case(
        other_version,
        1,
        "version",
        "",
        "install demo==1.0, take the release with --fetch, or try it out with --allow-version",
    ),
    Case(edited_file, 1, "foreign", "core.py", "reinstall the distribution"),
    Case(twin_block, 1, "moved", "patches/demo-1.0/log.patch:15", "the intended place is gone or was moved"),
    Case(malformed_hunk, 2, "malformed", "patches/demo-1.0/log.patch:23", "recount the hunk header"),
    Case(no_header, 2, "header", "patches/demo-1.0/log.patch:1", "the order is: free text"),
    Case(diff_in_the_preamble, 2, "malformed", "patches/demo-1.0/log.patch:1", "indent the quoted diff"),
    Case(broken_pin, 2, "pin", "series/demo-1.0/pin.toml", "did you mean 'distribution'?"),
    Case(broken_lock, 2, "lock", "series/demo-1.0/lock.toml", "patchforge lock"),
    Case(no_tree, 1, "tree", "", "reinstall it with pip"),
]


@pytest.mark.parametrize("case", CASES, ids=[c.damage.__name__ for c in CASES])
@pytest.mark.parametrize("format", ["text", "json", "github"])
def test_bad_input(demo: Demo, case: Case, format: str) -> None:
    case.damage(demo)
    before = demo.snapshot()
    done = demo.run("apply", "--format", format)
    assert done.status == case.status
    assert demo.snapshot() == before
    if format == "json":
        document = done.json
        assert document["status"] == case.status
        own = [p for p in document["problems"] if p["reason"] == case.reason]
        assert own, document["problems"]
        problem = own[0]
        assert "".join([problem.get("file", ""), f":{problem['line']}" if "line" in problem else ""]).endswith(
            case.place
        )
        assert case.way_out in problem.get("hint", "") + problem["message"]
    elif format == "text":
        errors = [line for line in done.err.splitlines() if line.startswith("error: ")]
        assert any(case.place in line for line in errors), done.err
        assert case.way_out in done.err
        assert "Traceback" not in done.err
        if case.reason not in ("moved",):  # there the tree is also named as edited
            assert len(errors) == 1, done.err
    else:
        assert "::error " in done.out
        assert f"title=patchforge%3A {case.reason}::" in done.out
