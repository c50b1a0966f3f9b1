"""Dependencies: those that are there are found, those that are not are not, and orders called safe are safe."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from demo import Demo
from hypothesis import given, settings
from hypothesis import strategies as st

from patchforge.diff import Patch, parse_patch
from patchforge.engine.model import Entry, FileState, Plan
from patchforge.engine.plan import plan_series
from patchforge.graph.edges import Edge, as_dot, as_mermaid, edges, layers
from patchforge.graph.impact import impact

BASE = {"f": [b"line %d" % n for n in range(60)], "g": [b"other %d" % n for n in range(30)]}


def series(changes: list[tuple[str, int, list[bytes]]]) -> list[Patch]:
    """Patches cut one after the other: each replaces the line at an index of a file by others."""
    import difflib

    now = {name: list(lines) for name, lines in BASE.items()}
    patches = []
    for number, (name, at, lines) in enumerate(changes):
        old = now[name]
        new = [*old[:at], *lines, *old[at + 1 :]]
        text = lambda rows: [row.decode() + "\n" for row in rows]  # noqa: E731
        diff = "".join(difflib.unified_diff(text(old), text(new), f"a/{name}", f"b/{name}"))
        now[name] = new
        if diff:
            patches.append(parse_patch(diff.encode(), name=f"p{number}"))
    return patches


def read(path: str) -> FileState | None:
    return FileState([*BASE[path], b""], False) if path in BASE else None


def planned(patches: list[Patch]) -> Plan:
    return plan_series((Entry(p) for p in patches), read, names=[p.name for p in patches])


def found(patches: list[Patch]) -> tuple[Edge, ...]:
    return edges(patches, planned(patches))


def test_context_that_another_patch_supplies() -> None:
    patches = series([("f", 10, [b"a", b"b"]), ("f", 13, [b"c"]), ("f", 40, [b"d"]), ("g", 10, [b"e"])])
    assert [(e.later, e.earlier, e.kind, e.what) for e in found(patches)] == [("p1", "p0", "lines", "f")]


def test_a_name_that_another_patch_defines() -> None:
    patches = series(
        [("f", 10, [b"def brand_new_helper(x):"]), ("g", 5, [b"    brand_new_helper(2)"]), ("g", 20, [b"line"])]
    )
    assert [(e.later, e.earlier, e.kind, e.what) for e in found(patches)] == [("p1", "p0", "name", "brand_new_helper")]


def test_names_that_are_only_alike() -> None:
    """A local variable is nobody else's, and a constant only theirs who speak of its module."""
    local = [
        ("f", 10, [b"    wanted_here = 1"]),
        ("g", 5, [b"    call(wanted_here)"]),
        ("f", 30, [b"use(wanted_here)"]),
    ]
    assert [(e.later, e.earlier, e.kind) for e in found(series(local))] == [("p2", "p0", "name")]
    constant = [("f", 10, [b"LIMIT_HERE = 1"]), ("g", 5, [b"call(LIMIT_HERE)"])]
    assert found(series(constant)) == ()
    speaks = [("f", 10, [b"LIMIT_HERE = 1"]), ("g", 5, [b"from f import LIMIT_HERE"])]
    assert [(e.later, e.earlier, e.what) for e in found(series(speaks))] == [("p1", "p0", "LIMIT_HERE")]


def test_what_a_header_requires() -> None:
    patches = series([("f", 10, [b"a"]), ("f", 30, [b"b"]), ("g", 10, [b"c"])])
    whole = planned(patches)
    declared = edges(patches, whole, {"p2": ["p0", "nobody"], "p0": ["p1"]})
    assert [(e.later, e.earlier, e.kind) for e in declared] == [("p2", "p0", "header")]
    assert layers(["p0", "p1", "p2"], declared) == [["p0", "p1"], ["p2"]]


def test_a_file_that_another_patch_makes() -> None:
    made = parse_patch(b"--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+one\n+two\n", name="make")
    edit = parse_patch(b"--- a/n\n+++ b/n\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n", name="edit")
    move = parse_patch(b"diff --git a/n b/m\nsimilarity index 100%\nrename from n\nrename to m\n", name="move")
    kinds = {(e.later, e.earlier, e.kind) for e in found([made, edit, move])}
    assert kinds == {("edit", "make", "file"), ("edit", "make", "lines"), ("move", "make", "file")}


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["f", "g"]), st.integers(0, 29), st.lists(st.sampled_from([b"new", b"more", b"x"]), max_size=3)
    ),
    min_size=2,
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(CHANGES, st.randoms(use_true_random=False))
def test_an_order_called_safe_gives_the_same_tree(
    changes: list[tuple[str, int, list[bytes]]], chance: random.Random
) -> None:
    changes = [
        (name, at, [line + b" %d %d" % (n, k) for k, line in enumerate(lines)])
        for n, (name, at, lines) in enumerate(changes)
    ]
    patches = series(changes)
    whole = planned(patches)
    if whole.failure is not None or len(patches) < 2:
        return
    groups = layers([p.name for p in patches], edges(patches, whole))
    order = []
    for group in groups:
        chance.shuffle(group)
        order += group
    by_name = {p.name: p for p in patches}
    again = planned([by_name[name] for name in order])
    if again.failure is not None and again.failure.reason in ("ambiguous", "already-there"):
        return  # the lines are there, and the engine is too careful to take them: not a dependency
    if again.failure is not None and b"" in {h.section for p in patches for f in p.files for h in f.hunks}:
        # cut at the start or the end of the file, which another order may move away
        edge = {h.old_start == 1 or h.trailing < h.leading for p in patches for f in p.files for h in f.hunks}
        assert True in edge, again.failure
        return
    assert {k: v.data for k, v in again.after.items() if v} == {k: v.data for k, v in whole.after.items() if v}


def test_impact_tells_what_breaks_follows_loses_and_moves() -> None:
    patches = series(
        [
            ("f", 10, [b"a = 1", b"def brand_new_helper(x):", b"b", b"c"]),
            ("f", 12, [b"changed"]),
            ("f", 13, [b"changed again"]),
            ("f", 50, [b"later"]),
            ("g", 5, [b"    brand_new_helper(2)"]),
            ("g", 20, [b"free"]),
        ]
    )
    whole = planned(patches)
    felt = impact(patches, "p0", whole, edges(patches, whole), read)
    assert {i.name: i.result for i in felt} == {"p1": "breaks", "p2": "breaks", "p3": "moves", "p4": "loses"}
    assert impact(patches, "p5", whole, edges(patches, whole), read) == []


def test_drawings() -> None:
    one = (Edge("b", "a", "name", 'say "x"'),)
    assert '"b" -> "a" [label="name: say \\"x\\""];' in as_dot(["a", "b"], one)
    assert "p1 -->|name| p0" in as_mermaid(["a", "b"], one)


@pytest.mark.parametrize("shape", ["list", "dot", "mermaid"])
def test_the_command(demo: Demo, shape: str) -> None:
    done = demo.run("graph", "--as", shape)
    assert done.status == 0
    assert {"list": "any order is safe", "dot": "digraph", "mermaid": "graph BT"}[shape] in done.out


def test_the_command_simulates_a_removal(demo: Demo) -> None:
    done = demo.run("graph", "--impact", "log", "--format", "json")
    assert done.status == 0
    assert [(p["name"], p["result"]) for p in json.loads(done.out)["patches"]] == [
        ("log", "removed"),
        ("names", "unaffected"),
    ]
    assert demo.run("graph", "--impact", "nobody").status == 2


def test_a_series_that_does_not_apply(demo: Demo, tmp_path: Path) -> None:
    path = demo.site / "demo/data/text.txt"
    path.write_bytes(b"other\n")
    done = demo.run("graph")
    assert done.status == 1
    assert "names.patch" in done.err
