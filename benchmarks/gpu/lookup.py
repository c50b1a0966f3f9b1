"""What a step of lookup drafting costs: ``PATCHFORGE_PATCHED_TREE=DIR python benchmarks/gpu/lookup.py``.

Times the three kernels of a step in a CUDA graph, as the engine runs them, on histories of each kind; beside it what the host
pays to launch them without a graph, and what the copy of a new prompt costs once.  Prints one JSON document.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import time
import types
from typing import Any

import numpy as np
import torch

BLOCK, WIDTH, TOP_K = 7, 15, 16
REPEATS, REPLAYS = 20, 50


def histories(kind: str, requests: int, tokens: int) -> list[list[int]]:
    """Token ids of every request."""
    rng = random.Random(1)
    found = []
    for _ in range(requests):
        document = [rng.randrange(248320) for _ in range(tokens // 2)]
        found.append(
            {
                "random": lambda: [rng.randrange(248320) for _ in range(tokens)],
                # Each token with a chance of one over its rank: text has its last token everywhere.
                "text": lambda: [int(248320 ** rng.random()) - 1 for _ in range(tokens)],
                "a document again": lambda document=document: document + document,
                "one token": lambda: [7] * tokens,
                "period 7": lambda: ([1, 2, 3, 4, 5, 6, 7] * tokens)[:tokens],
                # Every seventh place matches eleven tokens back, one short of what ends the search.
                "near misses": lambda: [
                    *([5, 6, 7, 8, 9, 10, 11] * tokens)[: tokens - 12],
                    1,
                    *[5, 6, 7, 8, 9, 10, 11, 5, 6, 7, 8],
                ],
            }[kind]()[:tokens]
        )
    return found


def states_of(rows: list[list[int]], pinned: bool) -> Any:
    """What the kernels read of the runner's states; the runner keeps the tokens in pinned host memory."""
    from vllm.v1.worker.gpu.buffer_utils import UvaBuffer

    ids = torch.tensor(rows, dtype=torch.int32)
    if pinned:
        buffer = UvaBuffer(ids.shape, torch.int32)
        buffer.cpu.copy_(ids)
        device_ids = buffer.uva()
    else:
        buffer, device_ids = None, ids.cuda()
    return types.SimpleNamespace(
        buffer=buffer,
        max_num_reqs=len(rows),
        vocab_size=248320,
        max_model_len=ids.shape[1],
        device=torch.device("cuda"),
        generation=np.ones(len(rows), dtype=np.int64),
        prefill_len=types.SimpleNamespace(np=np.full(len(rows), ids.shape[1], dtype=np.int32)),
        all_token_ids=types.SimpleNamespace(gpu=device_ids),
        total_len=types.SimpleNamespace(gpu=torch.full((len(rows),), ids.shape[1], dtype=torch.int32, device="cuda")),
    )


def spread(values: list[float]) -> dict[str, float]:
    """Microseconds: the median and both ends."""
    return {
        "median": round(statistics.median(values), 2),
        "min": round(min(values), 2),
        "max": round(max(values), 2),
    }


def measure(kind: str, requests: int, tokens: int, pinned: bool) -> dict[str, Any]:
    from vllm.v1.spec_decode.dflash2_lookup import LookupConfig
    from vllm.v1.worker.gpu.spec_decode.dflash2.lookup import LookupDrafter

    states = states_of(histories(kind, requests, tokens), pinned)
    drafter = LookupDrafter(states, LookupConfig.from_envs(), BLOCK, WIDTH)
    rows = torch.arange(requests, dtype=torch.int32, device="cuda").repeat_interleave(BLOCK)
    drafts = torch.zeros(requests, WIDTH, dtype=torch.int64, device="cuda")
    cached = torch.zeros(requests, WIDTH, TOP_K, dtype=torch.int64, device="cuda")
    torch.cuda.synchronize()
    start = time.perf_counter()
    drafter.copy_new_prompts(np.arange(requests))
    torch.cuda.synchronize()
    copied = (time.perf_counter() - start) * 1e6 / requests

    def step() -> None:
        drafter.propose(requests, rows, drafts, None, cached)

    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    device, host = [], []
    for _ in range(REPEATS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(REPLAYS):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        device.append(begin.elapsed_time(end) * 1e3 / REPLAYS)
        start = time.perf_counter()
        step()
        host.append((time.perf_counter() - start) * 1e6)
        torch.cuda.synchronize()
    return {
        "history": kind,
        "matched": int((drafter.match_len > 0).sum()),
        "step in a graph, us": spread(device),
        "launching without one, us": spread(host),
        "copying a prompt once, us a request": round(copied, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=65536)
    parser.add_argument("--device-tokens", action="store_true", help="keep the runner's tokens on the device too")
    options = parser.parse_args()
    tree = os.environ.get("PATCHFORGE_PATCHED_TREE")
    if not tree or not torch.cuda.is_available():
        raise SystemExit("lookup.py needs PATCHFORGE_PATCHED_TREE and a CUDA device")
    sys.path.insert(0, tree)
    import triton

    kinds = ["random", "text", "a document again", "one token", "period 7", "near misses"]
    rows = [measure(kind, options.requests, options.tokens, not options.device_tokens) for kind in kinds]
    print(
        json.dumps(
            {
                "card": torch.cuda.get_device_name(),
                "torch": torch.__version__,
                "triton": triton.__version__,
                "requests": options.requests,
                "tokens": options.tokens,
                "method": f"{REPEATS} runs of {REPLAYS} replays; medians",
                "rows": rows,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
