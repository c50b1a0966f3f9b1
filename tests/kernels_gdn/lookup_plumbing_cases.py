"""Lookup drafting where it meets the rest of the engine: configuration, graphs, the runner, the drafter without it."""

from __future__ import annotations

import types
from collections import defaultdict
from typing import Any

import torch
from settings import knobs

LOOKUP = "VLLM_DFLASH2_LOOKUP"
# Of two requests, step by step, where the drafter's block is 3: the third step verified enough and emitted too little.
EMITTED_AND_REJECTED = [
    ([4, 3], [0, 0]),
    ([4, 4], [0, 0]),
    ([3, 5], [1, 9]),
    ([1, 1], [0, 0]),
    ([4, 5], [0, 3]),
    ([4, 4], [12, 0]),
    ([1, 1], [0, 0]),
    ([1, 1], [0, 0]),
]


def engine(
    num_tokens: int = 15, block: int | None = 8, architecture: str = "DFlash2DraftModel", method: str = "dflash"
) -> Any:
    """As much of a VllmConfig as is read."""
    draft = {} if block is None else {"block_size": block}
    speculative = types.SimpleNamespace(
        method=method,
        num_speculative_tokens=num_tokens,
        draft_model_config=types.SimpleNamespace(
            architectures=[architecture], hf_config=types.SimpleNamespace(dflash_config=draft)
        ),
        uses_dynamic_speculative_decoding=lambda: False,
    )
    return types.SimpleNamespace(
        speculative_config=speculative,
        num_speculative_tokens=num_tokens,
        cache_config=types.SimpleNamespace(use_kda_recoverssm=False),
    )


def blocks() -> dict[str, list[Any]]:
    """The drafter's block and the short query length, of 16 tokens a request, for settings and models."""
    from vllm.v1.spec_decode.dflash2_lookup import lookup_draft_block, short_decode_query_len

    cases = {
        "unset": (None, None, engine()),
        "0": ("0", None, engine()),
        "1": ("1", None, engine()),
        "1, one graph": ("1", "0", engine()),
        "1, no longer than trained": ("1", None, engine(7)),
        "1, one longer": ("1", None, engine(8)),
        "1, block unknown": ("1", None, engine(block=None)),
        "1, LiLiCorr": ("1", None, engine(architecture="LiLiCorrDraftModel")),
        "1, DFlash": ("1", None, engine(architecture="DFlashDraftModel")),
        "1, MTP": ("1", None, engine(method="mtp")),
    }
    found = {}
    for name, (lookup, both, made) in cases.items():
        with knobs(**{LOOKUP: lookup, "VLLM_DFLASH2_GRAPH_BOTH": both}):
            drafted = lookup_draft_block(made)
            of_target = short_decode_query_len(made, 1 + made.num_speculative_tokens)
            found[name] = [drafted, of_target, short_decode_query_len(made, 1 + drafted)]
    return found


def graphs(lookup: str | None) -> list[list[int]]:
    """Requests and tokens per request of the decode graphs of a target that verifies 15 drafts."""
    from vllm.config.compilation import CUDAGraphMode
    from vllm.v1.worker.gpu.cudagraph_utils import CudaGraphManager

    manager = CudaGraphManager.__new__(CudaGraphManager)
    manager.vllm_config = engine()
    manager.compilation_config = types.SimpleNamespace(
        cudagraph_capture_sizes=[8, 16, 32, 64], max_cudagraph_capture_size=64
    )
    manager.cudagraph_mode, manager.decode_query_len, manager.max_num_reqs = CUDAGraphMode.FULL_DECODE_ONLY, 16, 4
    manager.varlen_decode, manager.lora_capture_cases, manager.ubatch_runner = False, [0], None
    manager._candidates, manager._capture_descs = defaultdict(list), {}
    with knobs(**{LOOKUP: lookup}):
        manager._init_candidates()
    descs = manager._capture_descs[CUDAGraphMode.FULL]
    return sorted([d.num_reqs, d.uniform_token_count] for d in descs)


def lengths() -> dict[str, list[int]]:
    """The block for each step of a script of (wanted, requests, longest), and the knobs behind it."""
    from lookup_cases import config
    from vllm.v1.worker.gpu.spec_decode.dflash2.lookup import BlockLength

    yes, no = (True, 1, 500), (False, 1, 500)
    scripts = {
        "one is not enough": ({}, [yes, no, yes, no]),
        "two in a row, then it coasts": ({"sticky": 2}, [yes, yes, no, no, no, yes, no]),
        "it stays": ({"sticky": 0}, [yes, yes, yes, no, yes, yes]),
        "several never coast": ({}, [(True, 2, 500), (True, 2, 500), (False, 2, 500), (False, 1, 500)]),
        "company ends coasting": ({}, [yes, yes, (False, 2, 500), no]),
        "short contexts": ({"cheap_context": 100}, [(False, 3, 100), (False, 3, 101)]),
    }
    found = {}
    for name, (changes, script) in scripts.items():
        made = BlockLength(7, 15, config(**changes))
        found[name] = [made.next(*step) for step in script]
    return found


def flags() -> list[bool]:
    """Each answer is about the flags of the step before, however many there were."""
    from vllm.v1.worker.gpu.spec_decode.dflash2.lookup import BlockLengthFlags

    made = BlockLengthFlags(4, torch.device("cpu"))
    script = [[1, 1], [1, 0, 1], [1, 1, 1, 1], [0], [1]]
    return [made.swap(torch.tensor(step, dtype=torch.int32)) for step in script]


def settings() -> dict[str, str]:
    """What contradictory thresholds are answered with."""
    from vllm.v1.spec_decode.dflash2_lookup import LookupConfig

    found = {}
    for name in ("NMIN", "NSTRONG", "NMIN_TAIL", "LONGMIN"):
        with knobs(**{f"VLLM_DFLASH2_LOOKUP_{name}": "13"}):
            try:
                found[name] = str(LookupConfig.from_envs())
            except ValueError as error:
                found[name] = str(error)
    with knobs(VLLM_DFLASH2_LOOKUP_NMAX="5", VLLM_DFLASH2_LOOKUP_NMIN="5"):
        try:
            LookupConfig.from_envs()
        except ValueError as error:
            found["NMAX"] = str(error)
    with knobs():
        found["plain"] = str(LookupConfig.from_envs())
    return found


def reported() -> list[Any]:
    """What the scheduler is told was drafted, for all of 5 tokens and for 3."""
    from vllm.v1.worker.gpu.spec_decode.utils import DraftTokensHandler

    found = []
    for number in ([], [None], [3]):
        handler = DraftTokensHandler.__new__(DraftTokensHandler)
        batch = types.SimpleNamespace(req_ids=["a", "b"], has_structured_output_reqs=False)
        handler.set_draft_tokens(batch, torch.arange(10).view(2, 5), *number)
        found.append(handler.get_draft_tokens().draft_token_ids)
    return found


def walked(*more: Any) -> dict[str, torch.Tensor]:
    """The candidate walk as it was: tokens, scores, draft logits and cached candidates."""
    from vllm.v1.worker.gpu.spec_decode.dflash2.speculator import CandidateSampler

    generator = torch.Generator().manual_seed(3)
    walk = CandidateSampler(5, 3, 4, torch.device("cpu"), *more)
    logits, drafts = torch.full((5, 3, 20), -float("inf")), torch.zeros(5, 3, dtype=torch.int64)
    walk.scores.fill_(0)
    rows = torch.tensor([3, 3, 3, 0, 0, 0, -1, -1, -1], dtype=torch.int32)
    for step in range(2):
        ids = torch.stack([torch.randperm(20, generator=generator)[:4] for _ in range(9)]).view(3, 3, 4)
        scores, draws = torch.randn(3, 3, 4, 4, generator=generator), torch.full((9,), step)
        temperature, seeds = torch.tensor([0.0, 1.0, 1.0, 0.7, 1.0]), torch.arange(5)
        walk.sample(ids, scores, 3, draws, rows, temperature, seeds, drafts, logits, False)
    return {"drafts": drafts, "logits": logits, "scores": walk.scores, "cached": walk.cached_candidate_ids}


class Model:
    """A drafter's model whose candidates for a row are the four tokens after the row's hidden state."""

    def compute_candidates(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ids = (hidden[:, :1].long() + torch.arange(4)) % 50
        return ids, torch.tensor([3.0, 2.0, 1.0, 0.0]).expand(len(hidden), 4)


def drafted(lookup: str | None, num_tokens: int, probabilistic: bool) -> dict[str, Any]:
    """What DFlash2's speculator drafts in one step for three rows, one of them padding, through its own code."""
    from lookup_cases import States
    from vllm.v1.worker.gpu.spec_decode.dflash2.speculator import CandidateSampler, DFlash2Speculator

    made = DFlash2Speculator.__new__(DFlash2Speculator)
    made.vllm_config, made.device, made.top_k = engine(num_tokens, 4), torch.device("cpu"), 4
    made.num_speculative_steps, made.max_num_reqs = num_tokens, 3
    made.enable_adaptive_verification, made.use_fp64_gumbel = False, False
    made.last_num_sampled = made.last_num_rejected = None
    states = States(3, 100)
    again = [*range(10, 40), *range(10, 22)]
    states.add(2, again)
    states.add(0, list(range(40)))
    with knobs(**{LOOKUP: lookup}):
        block = made.get_draft_block() if hasattr(made, "get_draft_block") else num_tokens
        more = {"cache_steps": num_tokens} if lookup is not None else {}
        made.draft_block, made.num_query_per_req, made.draft_max_seq_len = block, 1 + block, 60
        made.candidate_sampler = CandidateSampler(3, block, 4, made.device, **more)
        made.lookup = made.block_length = None
        if lookup is not None:
            made.set_req_states(states)
    made.draft_tokens = torch.full((3, num_tokens), -9, dtype=torch.int64)
    made.draft_logits = torch.full((3, num_tokens, 60), -float("inf")) if probabilistic else None
    made.sample_indices = torch.arange(3 * block)
    made.sample_pos = torch.arange(3 * block)
    made.sample_idx_mapping = torch.tensor([2, 0, -1], dtype=torch.int32).repeat_interleave(block)
    made.temperature, made.seeds = torch.tensor([0.0, 0.0, 0.0]), torch.arange(3)
    made.model = Model()
    hidden = torch.arange(3 * block, dtype=torch.float32)[:, None] * 3
    made._run_model = lambda *_: hidden
    made._score_candidates = lambda ids, unary, _: unary[:, :, None].expand(*ids.shape, 4).contiguous()
    if lookup is not None and made.lookup is not None:
        batch = types.SimpleNamespace(idx_mapping_np=torch.tensor([2, 0]).numpy())
        made.prepare_context_anchor(batch, torch.zeros(2))
    made._generate_draft(3, 3 * (1 + block), None, None, None)
    found = {"block": block, "drafts": made.draft_tokens, "lookup": getattr(made, "lookup", None) is not None}
    if probabilistic:
        found["logits"] = made.draft_logits
    if lookup is not None:
        found["next"] = []
        for sampled, rejected in EMITTED_AND_REJECTED:
            made.last_num_sampled, made.last_num_rejected = torch.tensor(sampled), torch.tensor(rejected)
            if made.lookup is not None:
                made.lookup.take_long.fill_(1)
            found["next"].append(made.next_num_draft_tokens())
    return found


def collect(patched: bool) -> dict[str, Any]:
    """All of it; a pristine tree has the drafter alone."""
    seen: dict[str, Any] = {"walked": walked(), "drafted": {str(p): drafted(None, 3, p) for p in (False, True)}}
    if patched:
        seen.update(
            {
                "blocks": blocks(),
                "graphs": {str(setting): graphs(setting) for setting in (None, "1")},
                "lengths": lengths(),
                "flags": flags(),
                "settings": settings(),
                "reported": reported(),
                "looked up": {str(p): drafted("1", 8, p) for p in (False, True)},
                "off": drafted("0", 8, True),
            }
        )
    return seen
