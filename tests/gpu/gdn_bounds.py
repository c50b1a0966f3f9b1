"""The spec-decode kernels of GDN, KDA and Mamba on a GPU, with accepted-token counts that are right, wrong and absurd.

    PYTHONPATH=TREE compute-sanitizer --tool memcheck python tests/gpu/gdn_bounds.py [KERNEL ...]

A read outside a tensor is what memcheck is to find, so every tensor is an allocation of its own and nothing lies around the rows
of block ids; requests come alone too, since a neighbour's row is no error to memcheck. A patched tree gives zeros for such counts
and what a 64-bit float reference gives for the others; what a pristine one gets wrong is printed, until a read ends it.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from typing import Any

os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
sys.path.insert(0, str(Path(__file__).parents[1] / "kernels_gdn"))

import gdn_cases
import gdn_reference
import torch
from gdn_cases import FAR, NEAR


def on_cpu(found: Any) -> Any:
    if isinstance(found, torch.Tensor):
        return found.cpu()
    if isinstance(found, dict):
        return {name: on_cpu(value) for name, value in found.items()}
    return [on_cpu(value) for value in found] if isinstance(found, list) else found


def spans(pairs: list[tuple[int, int]]) -> list[slice]:
    ends = itertools.accumulate((length for _, length in pairs), initial=0)
    return [slice(*both) for both in itertools.pairwise(ends)]


def expected(kernel: str, found: dict[str, Any], pairs: list[tuple[int, int]], row: int) -> torch.Tensor:
    count, rows = pairs[row][0], found["rows"]
    if kernel.startswith("causal_conv1d"):
        return gdn_reference.convolution(found, spans(pairs)[row], int(rows[row, 0]), count)
    reference = gdn_reference.selective_scan if kernel == "mamba_ssm" else gdn_reference.delta_rule
    return reference(found["inputs"], spans(pairs)[row], found["before"][rows[row, max(count - 1, 0)]])[0]


def wrong(kernel: str, pairs: list[tuple[int, int]]) -> list[str]:
    """What a batch got wrong: rows whose count is none have to be zeros, the others what the reference says."""
    found = on_cpu(gdn_cases.KERNELS[kernel](pairs, None))
    bad = [row for row in gdn_cases.outside(kernel, pairs) if not bool((found["outs"][row] == 0).all())]
    for row in gdn_cases.within(kernel, pairs):
        difference = (found["outs"][row].double() - expected(kernel, found, pairs, row)).abs().max()
        if not difference < 1e-4:  # NaN too
            bad.append(row)
    return [f"count {pairs[row][0]} of a step of {pairs[row][1]}" for row in bad]


# One request each, so that what lies before and behind its row of block ids is nobody's.
ALONE = [[pair] for pair in (*NEAR, *FAR) if pair[1]]


def main() -> int:
    gdn_cases.DEVICE, gdn_cases.PAD = "cuda", 0
    bad = 0
    for kernel in sys.argv[1:] or gdn_cases.KERNELS:
        for pairs in (*ALONE, NEAR, FAR):
            try:
                found = wrong(kernel, pairs)
            except RuntimeError as error:
                # The device is of no use to this process any more.
                print(f"{kernel}: {pairs}: {str(error).splitlines()[0]}", flush=True)
                return 1
            for what in found:
                print(f"{kernel}: wrong: {what}", flush=True)
            bad += len(found)
        print(f"{kernel}: {len(ALONE) + 2} batches", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
