"""Runs a module of cases on one vLLM tree (the one on PYTHONPATH): ``python cases_drive.py NAME OUT MODULE``.

The module's ``collect(patched)`` returns what the cases did, which is saved; a pristine tree runs only what it has.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import interpreted


def main(name: str, out: str, module: str) -> None:
    interpreted.prepare()
    import torch

    torch.save(importlib.import_module(module).collect(patched=name == "patched"), out)


if __name__ == "__main__":
    main(*sys.argv[1:])
