"""Histories of every kind, searched by the kernels, and drafts fused with what they find."""

from __future__ import annotations

import random
import types
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from lookup_oracle import Rules

LENGTH, STATES = 700, 9


def config(**changes: Any) -> Any:
    from vllm.v1.spec_decode.dflash2_lookup import LookupConfig

    plain = {
        "min_match": 3,
        "max_match": 9,
        "strong_match": 6,
        "agree": 2,
        "min_tail_match": 4,
        "min_long_match": 5,
        "search": 1 << 30,
        "adaptive": True,
        "cheap_context": 0,
        "sticky": 3,
    }
    return LookupConfig(**{**plain, **changes})


def rules(made: Any) -> Rules:
    """The same thresholds for the oracle."""
    return Rules(made.min_match, made.strong_match, made.agree, made.min_tail_match, made.min_long_match)


class States:
    """What lookup drafting reads of the runner's request states."""

    def __init__(self, number: int = STATES, length: int = LENGTH, device: str = "cpu"):
        self.max_num_reqs, self.max_model_len, self.device = number, length, torch.device(device)
        self.vocab_size = 1 << 30
        self.generation = np.zeros(number, dtype=np.int64)
        self.prefill_len = types.SimpleNamespace(np=np.zeros(number, dtype=np.int32))
        self.all_token_ids = types.SimpleNamespace(
            gpu=torch.full((number, length), -5, dtype=torch.int32, device=device)
        )
        self.total_len = types.SimpleNamespace(gpu=torch.zeros(number, dtype=torch.int32, device=device))

    def add(self, index: int, prompt: list[int]) -> None:
        """A new request takes the index; what an earlier one left after its prompt stays, as it does in the runner."""
        self.generation[index] += 1
        self.prefill_len.np[index] = self.total_len.gpu[index] = len(prompt)
        self.all_token_ids.gpu[index, : len(prompt)] = torch.tensor(prompt, dtype=torch.int32)

    def emit(self, index: int, tokens: list[int]) -> None:
        """The request has new tokens."""
        start = int(self.total_len.gpu[index])
        self.all_token_ids.gpu[index, start : start + len(tokens)] = torch.tensor(tokens, dtype=torch.int32)
        self.total_len.gpu[index] += len(tokens)

    def history(self, index: int) -> list[int]:
        return self.all_token_ids.gpu[index, : int(self.total_len.gpu[index])].tolist()


@contextmanager
def cut_up(block: int, segments: int) -> Any:
    """The search in blocks and segments this small, so that short histories have many of both."""
    from vllm.v1.worker.gpu.spec_decode.dflash2 import lookup

    keep = lookup._SEARCH_BLOCK, lookup._SEARCH_SEGMENTS
    lookup._SEARCH_BLOCK, lookup._SEARCH_SEGMENTS = block, segments
    try:
        yield
    finally:
        lookup._SEARCH_BLOCK, lookup._SEARCH_SEGMENTS = keep


def mapping(indices: list[int], drafter_block: int) -> torch.Tensor:
    """The map of the drafter's sample rows to states, each state once per draft, -1 for padding."""
    return torch.tensor(indices, dtype=torch.int32).repeat_interleave(drafter_block)


def look_up(
    states: States, made: Any, indices: list[int], drafted: torch.Tensor, block: int, drafter: Any = None
) -> dict[str, Any]:
    """One step of these rows: [rows, steps] drafts of which the first ``block`` are the drafter's."""
    from vllm.v1.worker.gpu.spec_decode.dflash2.lookup import LookupDrafter

    device = states.device
    drafter = drafter or LookupDrafter(states, made, block, drafted.shape[1])
    drafter.copy_new_prompts(np.array([index for index in indices if index >= 0], dtype=np.int64))
    drafts = drafted.to(device, copy=True)
    cached = torch.zeros(states.max_num_reqs, drafted.shape[1], 4, dtype=torch.int64, device=device)
    drafter.propose(len(indices), mapping(indices, block).to(device), drafts, None, cached)
    return {
        "histories": [states.history(index) if index >= 0 else None for index in indices],
        "drafted": drafted,
        "drafts": drafts.cpu(),
        "length": drafter.match_len[: len(indices)].to("cpu", copy=True),
        "wanted": drafter.take_long[: len(indices)].to("cpu", copy=True),
        "block": block,
        "rules": vars(rules(made)),
        "longest": made.max_match,
        "back": made.search,
    }


def histories() -> dict[str, list[int]]:
    """Random, periodic and adversarial ones."""
    rng = random.Random(7)
    found = {f"{size} of {letters}": [rng.randrange(letters) for _ in range(size)] for letters, size in
             [(2, 1), (2, 2), (2, 4), (2, 5), (2, 65), (3, 300), (4, 129), (3, 64), (5, 600)]}  # fmt: skip
    found["wide"] = [rng.randrange(200000) for _ in range(650)]
    found["one token"] = [4] * 300
    found["period 2"] = [1, 2] * 100
    found["period 7, cut"] = ([1, 2, 3, 4, 5, 6, 7] * 60)[:-3]
    document = [rng.randrange(50000) for _ in range(300)]
    found["a document again"] = document + document[:180]
    found["at the very start"] = [1, 2, 3, *document, 1, 2, 3]
    found["just before"] = [*document, 9, 8, 7, 9, 8, 7]
    found["a token too few"] = [*document[:100], 2, 3, *document[100:], 1, 2, 3]
    found["longer but earlier"] = [1, 2, 3, 4, 5, 70, *document[:90], 9, 3, 4, 5, 71, *document[90:], 1, 2, 3, 4, 5]
    found["equal, so the later"] = [2, 3, 4, 70, *document[:90], 2, 3, 4, 71, *document[90:], 2, 3, 4]
    found["too long to tell apart"] = [*range(100, 120), 70, *range(105, 120), 71, *document, *range(100, 120)]
    found["nearly, everywhere"] = [5, 6, 1, 5, 6, 2] * 100 + [9, 5, 6]
    found["the last token only"] = [rng.choice([8, rng.randrange(1000)]) for _ in range(500)] + [8]
    return found


def searched(device: str = "cpu") -> list[dict[str, Any]]:
    """Every history under several thresholds, cut into blocks and segments of several sizes."""
    rng, found = random.Random(3), []
    named = histories()
    names = list(named)
    for block, segments, made, width in [
        (16, 3, config(), 6),
        (64, 2, config(min_match=1, max_match=4, strong_match=1, min_tail_match=1, min_long_match=1), 3),
        (32, 4, config(search=40), 8),
        (32, 4, config(agree=0), 8),
    ]:
        for first in range(0, len(names), STATES - 1):
            group = names[first : first + STATES - 1]
            states, indices = States(device=device), rng.sample(range(STATES), len(group))
            for index, name in zip(indices, group, strict=True):
                states.add(index, named[name])
            drafter_block = rng.choice([width, max(1, width - 3)])
            rows = [*indices, -1]
            drafted = torch.randint(0, 8, (len(rows), width), generator=torch.Generator().manual_seed(first))
            with cut_up(block, segments):
                found.append(look_up(states, made, rows, drafted, drafter_block))
    return found


def fused(device: str = "cpu") -> list[dict[str, Any]]:
    """Drafts that agree with the context for a while, against matches of every length."""
    rng, found = random.Random(5), []
    document = [rng.randrange(10, 60) for _ in range(120)]
    for made in (config(), config(agree=1, strong_match=9), config(agree=3), config(min_tail_match=7)):
        for block in (2, 5, 8):
            states, rows, drafted = States(device=device), [], []
            for index in range(STATES - 1):
                length, agreeing = rng.randrange(2, 10), rng.randrange(0, 9)
                end = rng.choice([60, 100, 118])
                states.add(index, [*document, *range(100, 104), *document[end - length : end]])
                follows = ([*document[end:], 100, 101, 102, 103, *document[end - length :]])[:8]
                drafted.append([t if s < agreeing else 7 for s, t in enumerate(follows)] + [7] * (8 - len(follows)))
                rows.append(index)
            with cut_up(32, 2):
                found.append(look_up(states, made, rows, torch.tensor(drafted), block))
    return found


def steps(device: str = "cpu") -> list[dict[str, Any]]:
    """Requests that grow step by step, leave, and make room for others of the same length under the same index."""
    from vllm.v1.worker.gpu.spec_decode.dflash2.lookup import LookupDrafter

    rng, found = random.Random(9), []
    made, states = config(), States(4, 300, device)
    drafter = LookupDrafter(states, made, 3, 5)
    for index in range(3):
        states.add(index, [rng.randrange(3) for _ in range(20 + index)])
    with cut_up(32, 2):
        for step in range(12):
            rows = rng.sample(range(3), rng.randrange(1, 4))
            found.append(look_up(states, made, rows, torch.randint(0, 3, (len(rows), 5)), 3, drafter))
            for index in rows:
                states.emit(index, [rng.randrange(3) for _ in range(rng.randrange(0, 7))])
            if step == 6:  # as long as the one before it, and otherwise another
                states.add(1, [rng.randrange(3, 6) for _ in range(int(states.total_len.gpu[1]))])
    return found


def kept_distributions() -> dict[str, Any]:
    """Draft logits and cached candidates over steps in which the drafter and the context take turns."""
    from vllm.v1.worker.gpu.spec_decode.dflash2.lookup import LookupDrafter
    from vllm.v1.worker.gpu.spec_decode.dflash2.speculator import CandidateSampler

    rng, vocab, top_k, block, width = random.Random(1), 12, 3, 3, 5
    states = States(4, 200)
    made = config(min_match=1, strong_match=3, agree=1, min_tail_match=1, min_long_match=1)
    for index in range(4):
        states.add(index, [rng.randrange(3) for _ in range(30)])
    drafter = LookupDrafter(states, made, block, width)
    walk = CandidateSampler(4, block, top_k, torch.device("cpu"), cache_steps=width)
    logits, drafts = torch.full((4, width, vocab), -float("inf")), torch.zeros(4, width, dtype=torch.int64)
    finite, used, one = True, 0, True
    with cut_up(32, 2):
        for step in range(10):
            rows = rng.sample(range(4), 3)
            generator = torch.Generator().manual_seed(step)
            ids = torch.stack([torch.randperm(6, generator=generator)[:top_k] for _ in range(3 * block)])
            scores = torch.randn(3, block, top_k, top_k, generator=generator)
            draws = torch.full((3 * block,), 30 + step)
            temperature, seeds = torch.ones(4), torch.arange(4) + 100 * step
            walk.sample(ids.view(3, block, top_k), scores, 3, draws, mapping(rows, block), temperature, seeds,
                        drafts, logits, False)  # fmt: skip
            before, untouched = drafts.clone(), logits.clone()
            drafter.copy_new_prompts(np.array(rows))
            drafter.propose(3, mapping(rows, block), drafts, logits, walk.cached_candidate_ids)
            for row, index in enumerate(rows):
                for at in range(width):
                    kept, cached = logits[index, at].isfinite().nonzero()[:, 0], walk.cached_candidate_ids[index, at]
                    finite &= set(kept.tolist()) == set(cached.tolist())
                    if not torch.equal(logits[index, at], untouched[index, at]):
                        used += 1
                        one &= kept.tolist() == [int(drafts[row, at])] and float(logits[index, at, kept]) == 0.0
                    elif at < block:
                        one &= bool(drafts[row, at] == before[row, at])
                states.emit(index, drafts[row, : rng.randrange(1, 6)].tolist())
    return {"finite entries are the cached ones": finite, "used": used, "used ones have one token": one}


def outside() -> dict[str, Any]:
    """A match followed by a token the drafter's vocabulary does not have: with draft logits, and without."""
    from vllm.v1.worker.gpu.spec_decode.dflash2.lookup import LookupDrafter

    vocab, found = 12, {}
    for name, token in {"beyond": 500, "the first beyond": vocab, "negative": -1}.items():
        states = States(1, 100)
        states.vocab_size = vocab
        states.add(0, [1, 2, 3, 4, 5, 6, 7, token, 9, 10, *range(20, 40), 1, 2, 3, 4, 5, 6])
        # What lies behind a row of logits must stay as it is.
        wide, drafts = torch.full((1, 5, 600), 7.0), torch.full((1, 5), 8, dtype=torch.int64)
        wide[..., :vocab] = -float("inf")
        cached = torch.zeros(1, 5, 4, dtype=torch.int64)
        for logits in (wide[..., :vocab], None):
            drafter = LookupDrafter(states, config(), 3, 5)
            drafter.copy_new_prompts(np.array([0]))
            drafts.fill_(8)
            with cut_up(32, 2):
                drafter.propose(1, mapping([0], 3), drafts, logits, cached)
            found[f"{name}, {'no ' if logits is None else ''}logits"] = {
                "drafts": drafts[0].tolist(),
                "behind": bool((wide[..., vocab:] == 7).all()),
                "wanted": int(drafter.take_long[0]),
                "length": int(drafter.match_len[0]),
            }
    return found


def collect(patched: bool) -> dict[str, Any]:
    """All of it; a pristine tree has none of it."""
    if not patched:
        return {}
    return {
        "searched": searched(),
        "fused": fused(),
        "steps": steps(),
        "kept": kept_distributions(),
        "outside": outside(),
    }
