"""Makes a synthetic tree and series: ``python benchmarks/synthetic.py DIRECTORY PATCHES FILES``.

``DIRECTORY/tree`` holds FILES Python files of 400 lines, ``DIRECTORY/patches`` a quilt series of PATCHES patches, each of which
edits two places of two files; later patches touch files that earlier ones touched.
"""

from __future__ import annotations

import difflib
import random
import sys
from pathlib import Path


def make(base: Path, patches: int, files: int) -> None:
    chance = random.Random(1)
    tree, series = base / "tree", base / "patches"
    names = [f"pkg{n % 20}/module{n}.py" for n in range(files)]
    content = {
        name: [
            f"def function_{n}_{k}(value):\n" if k % 4 == 0 else f"    value = value + {n * k}\n" for k in range(400)
        ]
        for n, name in enumerate(names)
    }
    for name, lines in content.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("".join(lines))
    series.mkdir(parents=True)
    order = []
    for number in range(patches):
        parts = []
        for name in chance.sample(names, 2):
            old = content[name]
            new = list(old)
            for at in sorted(chance.sample(range(10, len(old) - 10), 2), reverse=True):
                new[at : at + 1] = [f"    value = value * {number}\n", f"    value = value - {at}\n"]
            parts += difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
            content[name] = new
        file = f"{number:04d}.patch"
        (series / file).write_text("".join(parts))
        order.append(file)
    (series / "series").write_text("\n".join(order) + "\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
