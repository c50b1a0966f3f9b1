"""The samplers of one vLLM tree, with and without the knob for small top-k: what they call, draw and verify."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from settings import knobs
from small_topk_cases import cuts, nearly_all_nan, random, softmaxes

VOCAB, DRAWS, VERIFIED = 200, 20000, 800
SMALL, DRAFT = "VLLM_SAMPLER_SMALL_TOPK", "VLLM_DRAFT_TOPK_TOPP"


def sampler() -> Any:
    """The first runner's sampler with the forward of accelerators without FlashInfer."""
    from vllm.v1.sample.ops import topk_topp_sampler as module

    made = module.TopKTopPSampler()
    made.forward = made.forward_native
    return made


def metadata(rows: int, k: int, p: float, **more: Any) -> Any:
    from vllm.v1.sample.logits_processor import LogitsProcessors
    from vllm.v1.sample.metadata import SamplingMetadata

    none = torch.zeros(rows)
    return SamplingMetadata(
        temperature=torch.full((rows,), 0.8),
        all_greedy=False,
        all_random=True,
        top_p=torch.full((rows,), p),
        top_k=torch.full((rows,), k, dtype=torch.int32),
        generators={},
        max_num_logprobs=None,
        no_penalties=True,
        prompt_token_ids=None,
        frequency_penalties=none,
        presence_penalties=none,
        repetition_penalties=none,
        output_token_ids=[],
        allowed_token_ids_mask=None,
        bad_words_token_ids={},
        logitsprocs=LogitsProcessors(),
        **more,
    )


@contextmanager
def cut_by(replacement: Any, rows: int | None = DRAWS) -> Iterator[None]:
    """Whoever cuts a batch by the small path calls this instead, with the function itself before the arguments.

    Batches of up to ``rows`` rows are cut so; None leaves that as it is.
    """
    from vllm.v1.sample.ops import small_topk, topk_topp_sampler
    from vllm.v1.spec_decode import llm_base_proposer

    keep, faster = small_topk.apply_small_top_k_top_p, small_topk._FASTER_ROWS
    small_topk._FASTER_ROWS = faster if rows is None else rows
    for module in (topk_topp_sampler, llm_base_proposer):
        module.apply_small_top_k_top_p = lambda *args: replacement(keep, *args)
    try:
        yield
    finally:
        small_topk._FASTER_ROWS = faster
        for module in (topk_topp_sampler, llm_base_proposer):
            module.apply_small_top_k_top_p = keep


def first_row_for_all(cut: Any, logits: torch.Tensor, k: torch.Tensor, p: Any, k_max: int) -> torch.Tensor:
    """The kernel runs for the first row, and the others, which are equal, get what it gives: thousands of rows are slow."""
    assert (logits == logits[0]).all() and (k == k[0]).all()
    row = cut(logits[:1].clone(), k[:1], None if p is None else p[:1], k_max)
    return logits.copy_(row.expand_as(logits))


def draws(k: int, p: float, bias: str | None = None) -> dict[str, Any]:
    """How often each token is drawn from one row of logits, under the knob, through the sampler."""
    torch.manual_seed(11)
    row = random(VOCAB, seed=5) * 2
    logits = (row / (1.15 if bias == "warm" else 1)).repeat(DRAWS, 1)
    ks = torch.full((DRAWS,), k - 1 if bias == "one fewer" else k, dtype=torch.int32)
    with knobs(**{SMALL: "1"}), cut_by(first_row_for_all):
        tokens, _ = sampler()(logits, {}, ks, torch.full((DRAWS,), p), k_max=k)
    return {"counts": torch.bincount(tokens, minlength=VOCAB), "row": row, "k": k, "p": p}


def drafted(bias: bool = False, scale: str | None = None, cut: str | None = None) -> dict[str, Any]:
    """First tokens of many requests that drafted one token each from the truncated support and had it verified."""
    from vllm.v1.sample.rejection_sampler import apply_sampling_constraints, rejection_sample
    from vllm.v1.spec_decode.llm_base_proposer import compute_probs_and_sample_next_token

    torch.manual_seed(13)
    target = random(VOCAB, seed=5) * 2
    draft = target + random(VOCAB, seed=6)
    k, p = 12, 0.9
    made = metadata(VERIFIED, k, p, top_k_max=k)
    with knobs(**{SMALL: "1", DRAFT: cut, "VLLM_DRAFT_TEMP_SCALE": scale}), cut_by(first_row_for_all):
        ids, probs = compute_probs_and_sample_next_token(draft.repeat(VERIFIED, 1), made)
        support, first = (probs[0] > 0).sum(), probs[0].clone()
        if bias:  # what was drafted is not what is said to have been drafted from
            probs = (draft / 0.8).softmax(-1).repeat(VERIFIED, 1)
        ends = torch.arange(1, VERIFIED + 1, dtype=torch.int32)
        logits = apply_sampling_constraints(target.repeat(VERIFIED, 1), ends, made)
        bonus = torch.zeros(VERIFIED, 1, dtype=torch.int32)
        out = rejection_sample(ids.to(torch.int32), [1] * VERIFIED, 1, ends, probs.contiguous(), logits, bonus, made)
    return {
        "counts": torch.bincount(out[:, 0].long(), minlength=VOCAB),
        "row": target / 0.8,
        "k": k,
        "p": p,
        "support": support,
        "probs": first,
        "accepted": (out[:, 1] >= 0).sum(),
    }


def bounds() -> dict[str, Any]:
    """The largest k of a batch as the first and the second model runner know it."""
    from vllm.sampling_params import SamplingParams
    from vllm.v1.worker.gpu.sample.states import SamplingStates
    from vllm.v1.worker.gpu_input_batch import CachedRequestState, InputBatch

    found: dict[str, Any] = {}
    for ks in ([20, 5], [20, 0], [0, 0]):
        for on in ("0", "1"):
            with knobs(**{SMALL: on}):
                batch = InputBatch(4, 64, 64, torch.device("cpu"), VOCAB, [16], [16], [4])
                for number, k in enumerate(ks):
                    batch.add_request(
                        CachedRequestState(
                            req_id=str(number),
                            prompt_token_ids=[1, 2],
                            mm_features=[],
                            sampling_params=SamplingParams(temperature=1.0, top_k=k),
                            generator=None,
                            block_ids=([0],),
                            num_computed_tokens=0,
                            output_token_ids=[],
                        )
                    )
                batch.refresh_metadata()
                states = SamplingStates.__new__(SamplingStates)
                states.top_k = types.SimpleNamespace(np=np.array([k or VOCAB for k in ks], dtype=np.int32))
                first = getattr(batch.sampling_metadata, "top_k_max", "unknown")
                second = getattr(states, "get_top_k_max", lambda _: "unknown")(np.arange(len(ks)))
                found[f"{ks} {on}"] = [first, second]
    return found


def paths() -> dict[str, list[str]]:
    """Whose cut a sampler, a rejection sampler, the second runner and a drafter get, for the largest k of the batch."""
    from vllm.v1.sample import rejection_sampler
    from vllm.v1.sample.ops import topk_topp_sampler
    from vllm.v1.spec_decode.llm_base_proposer import compute_probs_and_sample_next_token
    from vllm.v1.worker.gpu.sample.states import SamplingStates

    found, keep = {}, topk_topp_sampler.apply_top_k_top_p_triton
    called: list[str] = []

    def small(_: Any, logits: torch.Tensor, *args: Any) -> torch.Tensor:
        called.append("small")
        return logits

    topk_topp_sampler.apply_top_k_top_p_triton = lambda logits, *_: called.append("all") or logits
    for k, k_max, rows in ((20, 20, 32), (20, 20, 33), (64, 64, 2), (65, 65, 2), (20, VOCAB, 2), (20, None, 2)):
        logits = [random(rows, VOCAB, seed=1) for _ in range(4)]
        with knobs(**{SMALL: "1"}), cut_by(small, rows=None):
            ks, tops = torch.full((rows,), k, dtype=torch.int32), torch.full((rows,), 0.9)
            sampler()(logits[0], {}, ks, tops, k_max=k_max)
            made = metadata(rows, k, 0.9, top_k_max=k_max)
            ends = torch.arange(1, rows + 1, dtype=torch.int32)
            rejection_sampler.apply_sampling_constraints(logits[1], ends, made)
            states = SamplingStates.__new__(SamplingStates)
            states.get_top_k_top_p = lambda *_, ks=ks, tops=tops: (ks, tops)
            states.get_top_k_max = lambda _, k_max=k_max: k_max
            states.apply_top_k_top_p(logits[2], torch.arange(rows), np.arange(rows))
            called.append("then")
            compute_probs_and_sample_next_token(logits[3], made)
        found[f"{k} {k_max} {rows}"] = list(called)
        called.clear()
    topk_topp_sampler.apply_top_k_top_p_triton = keep
    return found


def unchanged() -> dict[str, torch.Tensor]:
    """What the samplers give without the knobs, from fixed seeds, a row without top-k (k = vocabulary) among them."""
    from vllm.v1.sample.rejection_sampler import apply_sampling_constraints
    from vllm.v1.spec_decode.llm_base_proposer import compute_probs_and_sample_next_token

    with knobs(**{SMALL: None, DRAFT: None}):
        torch.manual_seed(17)
        ks, tops = torch.tensor([20, VOCAB, 64], dtype=torch.int32), torch.tensor([0.9, 1.0, 0.5])
        tokens, _ = sampler()(random(3, VOCAB, seed=1), {}, ks, tops)
        made = metadata(3, 20, 0.9)
        drafts, probs = compute_probs_and_sample_next_token(random(3, VOCAB, seed=2), made)
        ends = torch.arange(1, 4, dtype=torch.int32)
        return {
            "tokens": tokens,
            "constrained": apply_sampling_constraints(random(3, VOCAB, seed=3), ends, made),
            "drafts": drafts,
            "probs": probs,
        }


def no_small_k() -> torch.Tensor:
    """Under the knob, a batch with a row without top-k gets what it gets without it."""
    from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p

    with knobs(**{SMALL: "1"}):
        ks, tops = torch.tensor([20, VOCAB, 64], dtype=torch.int32), torch.tensor([0.9, 1.0, 0.5])
        bound = (VOCAB,) if "k_max" in apply_top_k_top_p.__code__.co_varnames else ()
        return apply_top_k_top_p(random(3, VOCAB, seed=1), ks, tops, *bound)


def settings() -> dict[str, Any]:
    import vllm.envs as envs

    found: dict[str, Any] = {"factors": len(envs.compile_factors())}
    for setting in (None, "0", "1", "", "true", "2"):
        with knobs(**{SMALL: setting}):
            try:
                found[str(setting)] = getattr(envs, SMALL)
            except (ValueError, AttributeError) as error:
                found[str(setting)] = str(error)
    return found


def collect(patched: bool) -> dict[str, Any]:
    """Everything; a pristine tree has only what does without the knob."""
    seen: dict[str, Any] = {
        "unchanged": unchanged(),
        "no small k": no_small_k(),
        "settings": settings(),
        "bounds": bounds(),
    }
    if patched:
        seen.update(
            {
                "cuts": cuts(),
                "nearly all NaN": nearly_all_nan(),
                "softmax": softmaxes(),
                "paths": paths(),
                "draws": {
                    "right": draws(20, 0.9),
                    "right, top-k alone": draws(20, 1.0),
                    "one fewer": draws(20, 1.0, "one fewer"),
                    "warm": draws(20, 0.9, "warm"),
                },
                "drafted": {
                    "right": drafted(),
                    "not cut, warmer": drafted(scale="1.5", cut="0"),
                    "biased": drafted(bias=True),
                },
            }
        )
    return seen
