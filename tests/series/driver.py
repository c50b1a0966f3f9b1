"""Drives one vLLM tree (the one on PYTHONPATH) and writes what it saw as JSON: ``python driver.py WORK OUT``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import drive_api
import drive_bench
import drive_engine


def main(work: Path, out: Path) -> None:
    seen = {**drive_api.collect(work), **drive_bench.collect(), **drive_engine.collect()}
    out.write_text(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
