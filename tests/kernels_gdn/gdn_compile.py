"""Compiles the kernels of one vLLM tree for sm86 and sm90: ``python gdn_compile.py NAME OUT``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import compiled


def main(capability: int, out: str) -> None:
    label = [""]
    compiled.prepare(capability, label)
    import gdn_cases
    import torch

    def step(name: str, call: object) -> None:
        label[0] = name
        call()  # type: ignore[operator]

    for name in ("fused_recurrent", "fused_recurrent_kda", "fused_sigmoid_gating"):
        step(f"drafts, {name}", lambda name=name: gdn_cases.delta_rule(name, gdn_cases.NEAR))
    step("drafts", lambda: gdn_cases.convolution(gdn_cases.NEAR, "dim"))
    step("drafts", lambda: gdn_cases.selective_scan(gdn_cases.NEAR))
    step("no drafts", lambda: gdn_cases.convolution([(1, 1), (1, 1)], "dim", spec=False))
    step("no drafts", lambda: gdn_cases.selective_scan([(1, 1), (1, 3)], spec=False))
    torch.save(compiled.kernels, out)


if __name__ == "__main__":
    if sys.argv[1].isdigit():
        main(int(sys.argv[1]), sys.argv[2])
    else:
        import torch

        seen = {}
        for capability in (86, 90):  # one process each: a process has one card
            part = f"{sys.argv[2]}.{capability}"
            subprocess.run([sys.executable, __file__, str(capability), part], check=True)
            seen[capability] = torch.load(part, weights_only=True)
        torch.save(seen, sys.argv[2])
