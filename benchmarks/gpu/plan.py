"""What the ladder measures: the boots of the engine, and the points of each, with guesses of the seconds they take."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from results import NOT_RUN

PARTS = ("ladder", "spec", "long")
DRAFTS = 4
# What the patched tree is measured with, where its knobs are on.
KNOBS = {"VLLM_SPEC_DECODE_ATTN": "1", "VLLM_SPEC_DECODE_ATTN_CUDA": "1", "VLLM_SAMPLER_SMALL_TOPK": "1"}
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_USE_FLASHINFER_SAMPLER": "0",
    # The worker is asked which kernels its layers hold, with a function of ours.
    "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",
}
CPU_ENVIRONMENT = {
    "VLLM_TARGET_DEVICE": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
}
PENDING = "the run ended before it"


@dataclass(frozen=True)
class Generate:
    """``batch`` requests at once, from the first prompt to the last token, ``runs`` times: tokens a second."""

    batch: int
    sampling: str  # "greedy", or "sampled": temperature 1, top_k 20, top_p 0.95
    prompt: int
    tokens: int
    runs: int = 3
    kind: str = "generate"

    @property
    def seconds(self) -> float:
        # A step of the 27B in bfloat16 reads 51 GB; requests add little to it.
        once = self.tokens * (0.016 + 0.00012 * self.batch) + 0.3
        return (self.runs + 0.25) * once


@dataclass(frozen=True)
class Steps:
    """``batch`` requests that decode at once after ``context`` tokens each: milliseconds a step, ``rounds`` times."""

    batch: int
    context: int
    rounds: int
    steps: int
    sampling: str = "greedy"  # or "sampled", as above
    kind: str = "steps"

    @property
    def seconds(self) -> float:
        prefill = self.batch * self.context / 8000
        return self.rounds * (prefill + self.steps * 0.03 + 0.5)


Point = Generate | Steps

LADDER: tuple[Point, ...] = (
    *(Generate(batch, "greedy", 128, 256) for batch in (1, 8, 32, 64)),
    *(Generate(batch, "sampled", 128, 256) for batch in (1, 64)),
)
# What matters most first.  One batch of seven: there FlashAttention 3 is slowest beside the CUDA kernel.
SPEC: tuple[Point, ...] = (
    *(Steps(1, context, 3, 72) for context in (1024, 8192, 25600, 32768)),
    *(Steps(batch, 128, 2, 72) for batch in (1, 8, 32, 64)),
    *(Steps(batch, 128, 2, 72, "sampled") for batch in (1, 64)),
    Steps(7, 8192, 1, 72),
    *(Steps(4, context, 1, 72) for context in (1024, 8192, 25600, 32768)),
)
SMALL_LADDER: tuple[Point, ...] = (Generate(1, "greedy", 16, 8), Generate(2, "greedy", 16, 8))
# Nothing sampled: with drafts and a top-k the release's CPU build reads indices that nobody wrote, pristine too.
SMALL_SPEC: tuple[Point, ...] = (Steps(1, 64, 2, 12), Steps(2, 64, 1, 12))


def engine(part: str, model: Path, *, small: bool) -> dict[str, Any]:
    """The arguments of vLLM's ``LLM``: the same for both trees."""
    speculative = part != "ladder"
    arguments: dict[str, Any] = {
        "model": str(model),
        "load_format": "dummy",
        "dtype": "bfloat16",
        "seed": 0,
        "max_model_len": 40960 if speculative else 2048,
        "max_num_seqs": 64,
        "max_num_batched_tokens": 8192,
        "enable_prefix_caching": False,
        "gdn_prefill_backend": "triton",
        # Nothing is left to how much memory another process uses.  A request with drafts has 0.77 GB of recurrent states.
        "kv_cache_memory_bytes": (72 if speculative else 40) << 30,
        "disable_log_stats": not speculative,
        # Verify batches of 1, 2, 4, 7, 8, 32 and 64 requests, which are drafts of up to 64; or each eighth up to 64.
        "compilation_config": {
            "cudagraph_capture_sizes": [5, 10, 20, 35, 40, 160, 320] if speculative else [1, 2, 4, *range(8, 65, 8)]
        },
    }
    if speculative:
        arguments["speculative_config"] = {"method": "mtp", "num_speculative_tokens": DRAFTS}
    if small:
        for name in ("compilation_config", "gdn_prefill_backend", "kv_cache_memory_bytes"):
            del arguments[name]
        arguments |= {"enforce_eager": True, "max_model_len": 1024, "max_num_seqs": 4, "max_num_batched_tokens": 512}
    return arguments


def boots(name: str, parts: list[str], model: Path, *, small: bool) -> list[dict[str, Any]]:
    """What is to be booted of the tree ``name`` for some parts, as the document has it before anything is run."""
    made = []
    for part in parts:
        spec, ladder = (SMALL_SPEC, SMALL_LADDER) if small else (SPEC, LADDER)
        boot: dict[str, Any] = {
            "part": part,
            "knobs": KNOBS if name == "patched" and part != "long" else {},
            "engine": engine(part, model, small=small),
            "status": NOT_RUN,
            "message": PENDING,
            "points": [
                {**asdict(point), "estimate": round(point.seconds, 1), "status": NOT_RUN, "message": PENDING}
                for point in (ladder if part == "ladder" else spec)
            ],
        }
        if part == "long" and name == "pristine":
            # It would be the part spec again.
            boot |= {"message": "the pristine tree has no knobs to leave off", "points": []}
        made.append(boot)
    return made
