"""Where the start of a command goes: ``python benchmarks/startup.py [RUNS]``, in a project, on a tree that is applied.

Runs ``patchforge apply`` with the arguments it needs from the environment variable ``APPLY`` (default ``--fetch``) under
``-X importtime``; prints the least of RUNS (default 9) of the time spent importing each group of modules, and of processor time.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections import Counter

LINE = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)")
GROUPS = {"patchforge": "our own modules", "typer": "typer", "click": "typer", "rich": "rich", "git": "GitPython"}


def used() -> float:
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return now.ru_utime + now.ru_stime


def one(command: list[str]) -> tuple[float, Counter[str]]:
    before = used()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    spent: Counter[str] = Counter()
    for micro, name in LINE.findall(done.stderr):
        spent[GROUPS.get(name.partition(".")[0], "the standard library and others")] += int(micro)
    return used() - before, spent


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    words = ["-m", "patchforge", "apply", *os.environ.get("APPLY", "--fetch").split()]
    bare = min(one([sys.executable, "-c", "pass"])[0] for _ in range(runs))
    whole = min(one([sys.executable, *words])[0] for _ in range(runs))
    imports = [one([sys.executable, "-X", "importtime", *words])[1] for _ in range(runs)]
    print(
        f"python -c pass: {bare * 1000:.0f} ms; patchforge {' '.join(words[2:])}: {whole * 1000:.0f} ms (processor time)"
    )
    for group in dict.fromkeys(GROUPS.values()) | {"the standard library and others": None}:
        print(f"importing {group}: {min(found[group] for found in imports) / 1000:.0f} ms")


if __name__ == "__main__":
    main()
