"""Runs the kernels of one vLLM tree (the one on PYTHONPATH) and saves what they did: ``python gdn_drive.py NAME OUT``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import interpreted


def main(name: str, out: str) -> None:
    interpreted.prepare()
    import gdn_cases
    import torch

    torch.save(gdn_cases.collect(far=name == "patched"), out)


if __name__ == "__main__":
    main(*sys.argv[1:])
