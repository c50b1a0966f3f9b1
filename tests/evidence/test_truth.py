"""The truth table: what each state of the new release must be called, for a two-hunk fix of one file, in Python and in C."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field

import pytest

from patchforge.diff import Patch, parse_patch
from patchforge.engine.model import Entry, FileState
from patchforge.engine.plan import plan_series
from patchforge.evidence.model import Verdict
from patchforge.evidence.scan import scan
from patchforge.evidence.units import Release
from patchforge.headers.probe import Probe

OLD = """import os


class Store:
    def read(self, key):
        data = self.table[key]
        size = len(data)
        self.count += size
        return data

    def keys(self):
        return sorted(self.table)

    def write(self, key, value):
        old = self.table.get(key)
        self.table[key] = value
        self.dirty.add(key)
        return old


def unrelated(x):
    total = 0
    for item in x:
        total += item
    return total
"""
FIXED = OLD.replace(
    "        data = self.table[key]\n",
    '        data = self.table.get(key)\n        if data is None:\n            return b""\n',
).replace("        self.dirty.add(key)\n", "        if old != value:\n            self.dirty.add(key)\n")
FIRST = OLD.replace(
    "        data = self.table[key]\n",
    '        data = self.table.get(key)\n        if data is None:\n            return b""\n',
)


def diff(old: str, new: str, path: str = "store.py") -> bytes:
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{path}", f"b/{path}")
    return "".join(lines).encode()


def judged(
    old: dict[str, str], new: dict[str, str], *patches: bytes, probes: dict[str, Probe] | None = None
) -> list[Verdict]:
    def reader(files: dict[str, str]):  # type: ignore[no-untyped-def]
        return lambda path: FileState.of(files[path].encode(), False) if path in files else None

    parsed: list[Patch] = [parse_patch(data, name=f"p{number}") for number, data in enumerate(patches)]
    plan = plan_series((Entry(p) for p in parsed), reader(old))
    assert plan.failure is None, plan.failure
    return scan(parsed, plan, Release(reader(new), lambda: list(new)), probes or {})


@dataclass(frozen=True)
class Row:
    name: str
    new: str
    verdict: str
    confidence: str = ""
    forward: bool = False
    reverse: bool = False
    others: dict[str, str] = field(default_factory=dict)


SHIFT = "# moved down\n" * 30
MOVED_CLASS = FIXED[FIXED.index("class Store") : FIXED.index("def unrelated")]
ROWS = [
    Row("untouched", OLD, "keep", "high", forward=True),
    Row("shifted by 30 lines", SHIFT + OLD, "keep", "high", forward=True),
    Row("carries it verbatim", FIXED, "landed", "high", reverse=True),
    Row("carries it verbatim, shifted", SHIFT + FIXED, "landed", "high", reverse=True),
    Row("carries it, a neighbouring line changed", FIXED.replace("size = len(data)", "size = len(data) + 1"), "landed", "medium"),
    Row("carries it, reformatted", FIXED.replace("if data is None:\n            return b\"\"", "if (\n            data\n            is None\n        ):\n            return b\"\""), "landed"),
    Row("carries it, a comment inside", FIXED.replace("        if data is None:", "        # nothing there\n        if data is None:"), "landed"),
    Row("carries it, evolved", FIXED.replace("self.table.get(key)\n        if data", "self.table.get(key, self.default)\n        if data"), "landed-changed"),
    Row("carries it behind a gate", FIXED.replace("        if data is None:", "        if data is None and os.name == \"posix\":"), "landed-changed"),
    Row("one hunk of two", FIRST, "partial"),
    Row("carried it, then reverted it", OLD, "keep", forward=True),
    Row(
        "at another indent",
        FIXED.replace("        data = self.table.get(key)\n        if data is None:\n            return b\"\"\n", "        with self.lock:\n            data = self.table.get(key)\n            if data is None:\n                return b\"\"\n"),
        "landed-changed",
    ),
    Row("moved within the file", FIXED[: FIXED.index("class Store")] + FIXED[FIXED.index("def unrelated") :] + "\n\n" + MOVED_CLASS + "LAST = 1\n", "landed", reverse=True),
    Row("moved to another file", OLD[: OLD.index("class Store")] + OLD[OLD.index("def unrelated") :], "landed", others={"other.py": "import os\n\n\n" + MOVED_CLASS}),
    Row(
        "solved another way",
        OLD.replace("        data = self.table[key]\n", "        data = self.fetch(key)\n").replace("        self.dirty.add(key)\n", "        self.mark(key, value)\n"),
        "conflict",
    ),
    Row("a local name renamed", FIXED.replace("data", "blob"), "landed-changed"),
    Row("the file is gone", "", "conflict"),
]  # fmt: skip

SOLVED = next(row.new for row in ROWS if row.name == "solved another way")


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_row(row: Row) -> None:
    new = {**({"store.py": row.new} if row.new else {}), **row.others}
    (found,) = judged({"store.py": OLD}, new, diff(OLD, FIXED))
    told = f"{found.verdict} {found.confidence}: {found.reason} {[(u.name, u.state) for u in found.signals.units]} {found.signals.merge}"
    assert found.verdict == row.verdict, told
    if row.confidence:
        assert found.confidence == row.confidence, told
    assert found.signals.forward == row.forward, told
    if row.reverse:
        assert found.signals.reverse, told


def test_moved_to_another_file_says_where() -> None:
    row = next(row for row in ROWS if row.name == "moved to another file")
    (found,) = judged({"store.py": OLD}, {"store.py": row.new, **row.others}, diff(OLD, FIXED))
    assert "other.py" in found.reason
    assert any(new.startswith("other.py:") for _, new in found.evidence)


def test_evidence_names_lines_on_both_sides() -> None:
    (found,) = judged({"store.py": OLD}, {"store.py": SHIFT + FIXED}, diff(OLD, FIXED))
    assert found.evidence == (("store.py:5", "store.py:35"), ("store.py:14", "store.py:46"))


def test_a_fix_that_landed_and_would_go_in_twice_is_not_kept() -> None:
    """The trap of the field: reverse fails, forward finds a place four lines on."""
    old = "".join(f"line {n}\n" for n in range(40)) + "a = 1\nb = 2\nc = 3\n" + "".join(f"tail {n}\n" for n in range(9))
    fixed = old.replace("a = 1\nb = 2\n", "a = 1\nreset_the_cache()\nb = 2\n")
    landed = old.replace("line 39\n", "line 39\na = 1\nreset_the_cache()\nb = 3\n")
    (found,) = judged({"x.txt": old}, {"x.txt": landed}, diff(old, fixed, "x.txt"))
    assert not found.signals.forward
    assert found.verdict != "keep"


def test_a_probe_vetoes_and_supports() -> None:
    probe = {"p0": Probe("source", "store.py", "Store.read", "flush")}
    (found,) = judged({"store.py": OLD}, {"store.py": FIXED}, diff(OLD, FIXED), probes=probe)
    assert found.verdict == "landed-changed"
    near = FIXED.replace("size = len(data)", "size = len(data) + 1")
    probe = {"p0": Probe("source", "store.py", "Store.read", "data is None")}
    (found,) = judged({"store.py": OLD}, {"store.py": near}, diff(OLD, FIXED), probes=probe)
    assert (found.verdict, found.confidence) == ("landed", "high")


def test_order_matters() -> None:
    """Patches on top of each other: two landed, the one between is kept and judged on what stays."""
    second = FIXED.replace("total = 0", "total = 1")
    third = second.replace('return b""', "return bytes()")
    patches = (diff(OLD, FIXED), diff(FIXED, second), diff(second, third))
    landed = third.replace("total = 1", "total = 0")
    found = judged({"store.py": OLD}, {"store.py": landed}, *patches)
    assert [v.verdict for v in found] == ["landed", "keep", "landed"]


def test_a_pure_deletion_proves_little() -> None:
    shorter = OLD.replace("        self.count += size\n", "")
    (found,) = judged({"store.py": OLD}, {"store.py": shorter}, diff(OLD, shorter))
    assert found.verdict in ("landed", "landed-changed")
    (kept,) = judged({"store.py": OLD}, {"store.py": OLD}, diff(OLD, shorter))
    assert kept.verdict == "keep"


C_OLD = """#include <stdio.h>

static int read_key(struct store *s, int key)
{
        int value = s->table[key];
        s->count += 1;
        return value;
}

static void unrelated(void)
{
        puts("x");
        puts("y");
        puts("z");
        puts("w");
}

static int write_key(struct store *s, int key, int value)
{
        int old = s->table[key];
        s->table[key] = value;
        s->dirty = 1;
        return old;
}
"""
C_FIXED = C_OLD.replace("        int value = s->table[key];\n", "        int value;\n        if (key < 0)\n                return -1;\n        value = s->table[key];\n").replace(
    "        s->dirty = 1;\n", "        if (old != value)\n                s->dirty = 1;\n"
)  # fmt: skip
C_ROWS = [
    ("untouched", C_OLD, "keep"),
    ("shifted", "/* x */\n" * 30 + C_OLD, "keep"),
    ("verbatim", C_FIXED, "landed"),
    ("reformatted", C_FIXED.replace("        ", "\t").replace("if (key < 0)\n\t\treturn -1;", "if (key < 0) return -1;"), "landed"),
    ("a comment inside", C_FIXED.replace("        if (key < 0)\n", "        /* no */\n        if (key < 0)\n"), "landed"),
    ("one hunk of two", C_OLD.replace("        s->dirty = 1;\n", "        if (old != value)\n                s->dirty = 1;\n"), "partial"),
    ("behind a gate", C_FIXED.replace("if (key < 0)", "if (strict && key < 0)"), "landed-changed"),
    ("solved another way", C_OLD.replace("s->table[key];\n        s->count", "checked(s, key);\n        s->count").replace("s->dirty = 1", "mark(s)"), "conflict"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "new", "verdict"), C_ROWS, ids=[row[0] for row in C_ROWS])
def test_the_same_in_c(name: str, new: str, verdict: str) -> None:
    (found,) = judged({"s.c": C_OLD}, {"s.c": new}, diff(C_OLD, C_FIXED, "s.c"))
    told = f"{name}: {found.verdict} {found.confidence} {found.reason} {[(u.name, u.state) for u in found.signals.units]} {found.signals.merge}"
    assert found.verdict == verdict, told


def test_a_file_the_patch_makes_proves_itself() -> None:
    made = diff("", "def fresh():\n    return 1\n", "fresh.py").replace(b"--- a/fresh.py", b"--- /dev/null")
    both = diff(OLD, FIXED) + made
    (found,) = judged({"store.py": OLD}, {"store.py": FIXED, "fresh.py": "def fresh():\n    return 1\n"}, both)
    assert (found.verdict, found.confidence) == ("landed", "high")
    (found,) = judged({"store.py": OLD}, {"store.py": FIXED}, both)
    assert found.verdict == "partial"
    (found,) = judged({"store.py": OLD}, {"store.py": FIXED, "fresh.py": "def fresh():\n    return 2\n"}, both)
    assert found.verdict == "landed-changed"


def test_an_expression_too_deep_to_walk_is_compared_as_written() -> None:
    old = OLD + "LONG = " + " + ".join(["1"] * 3000) + "\n"
    fixed = FIXED + "LONG = " + " + ".join(["2"] * 3000) + "\n"
    (found,) = judged({"store.py": old}, {"store.py": fixed}, diff(old, fixed))
    assert found.verdict == "landed"
    (found,) = judged({"store.py": old}, {"store.py": old}, diff(old, fixed))
    assert found.verdict == "keep"


def test_a_patch_of_a_file_that_another_would_make_names_it() -> None:
    makes = diff("", "def fresh():\n    return 1\n", "fresh.py").replace(b"--- a/fresh.py", b"--- /dev/null")
    changes = diff("def fresh():\n    return 1\n", "def fresh():\n    return 2\n", "fresh.py")
    first, second = judged({"store.py": OLD}, {"store.py": SOLVED}, diff(OLD, FIXED) + makes, changes)
    assert first.verdict == second.verdict == "conflict"
    assert second.reason == "it changes what p0 makes, which does not apply to the release either"
    first, second = judged({"store.py": OLD}, {"store.py": OLD}, diff(OLD, FIXED) + makes, changes)
    assert first.verdict == second.verdict == "keep"
