"""Drives one vLLM tree (the one on PYTHONPATH) and writes what it saw as JSON: ``python driver.py WORK OUT``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import drive_api
import drive_bench
import drive_engine
import drive_knobs
import drive_probe
import drive_progress
import drive_root
import drive_sentinel


def main(work: Path, out: Path) -> None:
    seen = {
        **drive_api.collect(work),
        **drive_root.collect(work),
        **drive_bench.collect(),
        **drive_probe.collect(),
        **drive_engine.collect(),
        **drive_knobs.collect(),
        **drive_sentinel.collect(),
        **drive_progress.collect(work),
    }
    out.write_text(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
