"""Lookup drafting on a card: the brute-force search's answers, at real lengths too, and nobody waits for the device."""

from __future__ import annotations

import random
from typing import Any

import lookup_cases
import numpy as np
import pytest
import torch
from lookup_cases import States, config, mapping
from lookup_oracle import Rules, fuse, search
from test_dflash2_lookup import check


@pytest.mark.parametrize("kind", ["searched", "fused", "steps"])
def test_the_cases_of_the_interpreter(kind: str) -> None:
    found = [row for step in getattr(lookup_cases, kind)("cuda") for row in check(step)]
    assert len(found) > 20 and any(length for length, _ in found)


def long_histories() -> list[list[int]]:
    """64 requests of 64k tokens: documents repeated, prose, periods, and near misses everywhere."""
    rng = random.Random(4)
    found = []
    for number in range(64):
        size = 65536 - number * 17
        document = [rng.randrange(248320) for _ in range(size // 2)]
        kinds = [
            document + document[: size // 2 - 100],
            [rng.randrange(248320) for _ in range(size)],
            ([1, 2, 3, 4, 5, 6, 7] * size)[:size],
            [*([5, 6, 7, 8, 9, number % 7] * size)[: size - 5], 4, 5, 6, 7, 8],
        ]
        found.append(kinds[number % 4])
    return found


def test_real_lengths_and_no_waiting() -> None:
    from vllm.v1.worker.gpu.spec_decode.dflash2.lookup import BlockLengthFlags, LookupDrafter

    histories, block, width = long_histories(), 7, 15
    made = config(min_match=6, max_match=12, strong_match=8, min_tail_match=4, min_long_match=6)
    states = States(64, 65600, "cuda")
    for index, history in enumerate(histories):
        states.add(index, history)
    drafter, flags = LookupDrafter(states, made, block, width), BlockLengthFlags(64, states.device)
    rows = mapping(list(range(64)), block).cuda()
    drafts = torch.randint(0, 9, (64, width), device="cuda")
    drafted = drafts.cpu().tolist()
    cached = torch.zeros(64, width, 16, dtype=torch.int64, device="cuda")
    drafter.propose(64, rows, drafts.clone(), None, cached)  # compiles
    drafter.copy_new_prompts(np.arange(64))
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with torch.profiler.profile() as trace:
            drafter.copy_new_prompts(np.arange(64))
            drafter.propose(64, rows, drafts, None, cached)
            flags.swap(drafter.take_long)
            flags.swap(drafter.take_long)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    waits = [event.key for event in trace.key_averages() if "ynchronize" in event.key]
    assert set(waits) <= {"cudaDeviceSynchronize"}, waits  # the profiler's own, at its end
    rules = Rules(made.min_match, made.strong_match, made.agree, made.min_tail_match, made.min_long_match)
    for index, history in enumerate(histories[:8]):
        fused = fuse(drafted[index], search(history, 6, 12, 1 << 30), block, rules)
        assert drafts[index].tolist() == fused.drafts
    filled = (drafts[:, 0] >= 9).cpu()
    assert filled[0::4].all() and not filled[1::4].any()


def test_in_a_graph_it_finds_what_it_finds_outside() -> None:
    from vllm.v1.worker.gpu.spec_decode.dflash2.lookup import LookupDrafter

    made, states = config(), States(4, 3000, "cuda")
    rng = random.Random(8)
    for index in range(4):
        states.add(index, [rng.randrange(5) for _ in range(2000)])
    drafter, other = LookupDrafter(states, made, 3, 8), LookupDrafter(states, made, 3, 8)
    rows = mapping([2, 0, 3, -1], 3).cuda()
    cached = torch.zeros(4, 8, 4, dtype=torch.int64, device="cuda")
    drafts = torch.zeros(4, 8, dtype=torch.int64, device="cuda")

    def step(of: Any, into: torch.Tensor) -> None:
        of.propose(4, rows, into, None, cached)

    step(other, drafts.clone())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(drafter, drafts)
    for _ in range(20):
        for index in (0, 2, 3):
            states.emit(index, [rng.randrange(5) for _ in range(rng.randrange(0, 8))])
        drafter.copy_new_prompts(np.array([2, 0, 3]))
        other.copy_new_prompts(np.array([2, 0, 3]))
        expected = torch.randint(0, 5, (4, 8), device="cuda")
        drafts.copy_(expected)
        graph.replay()
        step(other, expected)
        assert torch.equal(drafts, expected) and torch.equal(drafter.match_len, other.match_len)
