"""Times patches made to take long: ``python benchmarks/hostile.py [RUNS]``.

Each case is a file and a patch of about a megabyte, given to ``patchforge apply --dry-run`` as a whole process.  Printed:
what came out, and the least of RUNS (default 5) in processor time and on the clock.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HUNKS = 20_000
Case = tuple[str, str, bytes, bytes]


def patch(name: str, hunks: list[bytes]) -> bytes:
    return f"--- a/{name}\n+++ b/{name}\n".encode() + b"".join(hunks)


def small(at: int, one: bytes, two: bytes, three: bytes, heading: bytes = b"") -> bytes:
    """A hunk at line ``at`` that changes the middle one of three lines."""
    return b"@@ -%d,3 +%d,3 @@%s\n %s\n-%s\n+new\n %s\n" % (at, at, heading, one, two, three)


def moved() -> Case:
    """Every hunk one line further down than it says."""
    lines = [b"line %d" % n for n in range(HUNKS * 3)]
    hunks = [small(n * 3 + 1, *lines[n * 3 : n * 3 + 3]) for n in range(1, HUNKS)]
    return "every hunk moved", "f", b"first\n" + b"\n".join(lines) + b"\n", patch("f", hunks)


def ambiguous() -> Case:
    """Every hunk fits everywhere but where it says."""
    hunks = [small(n * 4 + 2, b"a", b"b", b"a") for n in range(HUNKS)]
    return "every hunk in many places", "f", b"x\n" * 7 + b"a\nb\n" * HUNKS * 5 + b"a\n", patch("f", hunks)


def nowhere() -> Case:
    """The first hunk fits, no other does, although each of its lines stands in many places."""
    block = [b"a%d" % n for n in range(1000)]
    hunks = [small(1, b"a0", b"a1", b"a2"), *(small(n * 4, b"a1", b"a3", b"a2") for n in range(3, HUNKS))]
    return "no hunk anywhere", "f", b"\n".join(block * 200) + b"\n", patch("f", hunks)


def equal() -> Case:
    """Two long hunks of equal lines in a file of equal lines."""
    size = 30_000
    hunk = b"@@ -%d,%d +%d,%d @@\n" + b" x\n" * size + b"-x\n+y\n" + b" x\n" * size
    hunks = [hunk % (at, 2 * size + 1, at, 2 * size + 1) for at in (2, 2 * size + 10)]
    return "hunks of 30,000 equal lines", "f", b"x\n" * 500_000, patch("f", hunks)


def python(depth: int) -> tuple[list[bytes], list[int]]:
    """A module of many small functions, ``depth`` classes deep, and where their bodies start."""
    lines = [b"    " * n + b"class C%d:" % n for n in range(depth)]
    indent, places = b"    " * depth, []
    for n in range(HUNKS // 4):
        places.append(len(lines) + 1)
        lines += [indent + b"def f%d():" % n, indent + b"    a = %d" % n, indent + b"    return a", b""]
    return lines, places


def python_moved() -> Case:
    lines, places = python(1)
    hunks = [
        small(at, *lines[at - 1 : at + 2]).replace(b"+new", b"+" + lines[at - 1][:4] + b"    a = -1") for at in places
    ]
    return "Python, every hunk moved", "f.py", b"# first\n" + b"\n".join(lines) + b"\n", patch("f.py", hunks)


def python_deep() -> Case:
    lines, places = python(60)
    pad = b"    " * 60
    hunks = [small(at, *lines[at - 1 : at + 2]).replace(b"+new", b"+" + pad + b"    a = -1") for at in places[:2000]]
    return (
        "Python, sixty classes deep, moved",
        "f.py",
        b"# first\n" + b"\n".join(lines[:9000]) + b"\n",
        patch("f.py", hunks),
    )


def python_twins() -> Case:
    """Equal functions in as many classes: only the enclosing definition tells them apart."""
    lines: list[bytes] = [b"# first"]
    hunks = []
    for n in range(HUNKS // 4):
        at = len(lines)
        lines += [b"class C%d:" % n, b"    def f(self):", b"        a = 1", b"        return a"]
        hunk = small(at + 1, b"    def f(self):", b"        a = 1", b"        return a", b" class C%d:" % n)
        hunks.append(hunk.replace(b"+new", b"+        a = 2"))
    return "Python, twins told apart by their class", "f.py", b"\n".join(lines) + b"\n", patch("f.py", hunks)


def sections() -> Case:
    parts = [patch("f", [small(n * 3 + 1, b"x", b"x", b"x")]) for n in range(HUNKS // 2)]
    return "10,000 sections of one file", "f", b"x\n" * 500_000, b"".join(parts)


CASES: list[Callable[[], Case]] = [
    moved,
    ambiguous,
    nowhere,
    equal,
    sections,
    python_moved,
    python_deep,
    python_twins,
]


def measure(place: Path) -> tuple[str, float, float]:
    command = [
        sys.executable,
        "-m",
        "patchforge",
        "apply",
        "--quilt",
        "p",
        "--tree",
        "t",
        "--dry-run",
        "--format",
        "json",
    ]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    import json

    document = json.loads(done.stdout)
    result = document["patches"][0]["result"] if document["patches"] else "refused"
    reason = next((p["reason"] for p in document.get("problems", [])), "")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{result}, {reason}" if reason else result, used, clock


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print("| case | file | patch | outcome | processor | clock |\n| --- | --- | --- | --- | --- | --- |")
    for case in CASES:
        title, name, data, diff = case()
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            (place / "t").mkdir()
            (place / "p").mkdir()
            (place / "t" / name).write_bytes(data)
            (place / "p/1.patch").write_bytes(diff)
            (place / "p/series").write_text("1.patch\n")
            found = [measure(place) for _ in range(runs)]
        used, clock = min(f[1] for f in found), min(f[2] for f in found)
        sizes = f"{len(data) / 1e6:.1f} MB | {len(diff) / 1e6:.1f} MB"
        print(f"| {title} | {sizes} | {found[0][0]} | {used:.2f} s | {clock:.2f} s |", flush=True)


if __name__ == "__main__":
    main()
