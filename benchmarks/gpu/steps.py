"""One boot of the engine and what is measured with it: ``ladder.py`` starts this as a process of its own.

Everything it finds goes into the run's document at once, failures too.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import results
from results import FAILED, MEASURED, NOT_RUN, RUNNING, Budget

COUNTERS = {"drafts": "vllm:spec_decode_num_drafts", "accepted": "vllm:spec_decode_num_accepted_tokens"}
# Steps of a round that are not counted: its first may compile.
SETTLING = 8


class Record:
    """One boot's place in the document."""

    def __init__(self, path: Path, index: int) -> None:
        self.path, self.index = path, index
        self.document = results.read(path)
        self.boot: dict[str, Any] = self.document["boots"][index]

    def save(self, into: dict[str, Any], **found: Any) -> None:
        into.update(found)
        if found.get("status") in (MEASURED, RUNNING):
            into.pop("message", None)
        results.write(self.path, self.document)


def told(error: BaseException) -> str:
    """An error in a line."""
    return f"{type(error).__name__}: {error}".strip()


def attention_in_use(worker: Any) -> dict[str, Any]:
    """Run in the worker: the positions of a page, and the verify attention of its layers with the batches the CUDA kernel takes.

    Imports nothing of vLLM: a tree without the patch has no such module, and none is to be loaded for the question.
    """
    import sys

    module = sys.modules.get("vllm.v1.attention.ops.spec_decode_attn")
    found = [
        {
            "heads": made.num_kv_heads * made.group,
            "cuda": made.cuda is not None,
            "batches": [n for n in range(1, 9) if made.cuda is not None and made.cuda.plan(n, 5) is not None],
        }
        for made in getattr(module, "_instances", {}).values()
    ]
    return {"page": worker.vllm_config.cache_config.block_size, "verify": found}


def prompts(vocabulary: int, batch: int, tokens: int, seed: int) -> list[dict[str, list[int]]]:
    """Random ids, other ones for another seed."""
    rng = random.Random(seed)
    return [{"prompt_token_ids": [rng.randrange(10, vocabulary) for _ in range(tokens)]} for _ in range(batch)]


def drawing(point: dict[str, Any]) -> dict[str, Any]:
    """How a point draws its tokens."""
    if point["sampling"] == "greedy":
        return {"temperature": 0.0}
    return {"temperature": 1.0, "top_k": 20, "top_p": 0.95}


def generate(llm: Any, point: dict[str, Any]) -> dict[str, Any]:
    """Tokens a second of each run, the prompts' prefill in it."""
    from vllm import SamplingParams

    vocabulary = llm.llm_engine.model_config.get_vocab_size()
    rates = []
    for run in range(point["runs"] + 1):
        tokens = point["tokens"] if run else max(1, point["tokens"] // 8)  # the first warms up, and is not counted
        params = SamplingParams(max_tokens=tokens, ignore_eos=True, detokenize=False, seed=None, **drawing(point))
        asked = prompts(vocabulary, point["batch"], point["prompt"], run)
        start = time.perf_counter()
        answers = llm.generate(asked, params, use_tqdm=False)
        took = time.perf_counter() - start
        made = sum(len(answer.outputs[0].token_ids) for answer in answers)
        if made != tokens * point["batch"]:
            raise RuntimeError(f"{made} tokens came, not {tokens} for each of {point['batch']}")
        if run:
            rates.append(round(made / took, 2))
    return {"runs": rates}


def together(stamps: Sequence[tuple[float, int, int]], batch: int) -> tuple[list[float], int]:
    """Milliseconds of each step all requests had a part in, and the tokens of those steps.

    Args:
        stamps: of each answer of the engine the second it came, the requests it is about and the new tokens of them.
        batch: all requests.

    A step is measured from the answer before, which must be about all requests too: what prefills in between is no decoding.
    """
    gaps, tokens = [], 0
    for before, stamp in itertools.pairwise(stamps):
        if before[1] == stamp[1] == batch:
            gaps.append((stamp[0] - before[0]) * 1000)
            tokens += stamp[2]
    return gaps, tokens


def counters(llm: Any) -> dict[str, float]:
    found = {metric.name: getattr(metric, "value", 0) for metric in llm.get_metrics()}
    return {name: found.get(metric, 0) for name, metric in COUNTERS.items()}


def decode(llm: Any, point: dict[str, Any], seed: int) -> dict[str, Any]:
    """A round: the requests are aborted once they have made the steps asked for."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    engine, batch, wanted = llm.llm_engine, point["batch"], point["steps"]
    # Nobody may finish before all have made their steps, were every draft accepted and the last prefilled long after the first.
    room = engine.model_config.max_model_len - point["context"] - 1
    params = SamplingParams(
        max_tokens=room, ignore_eos=True, detokenize=False, output_kind=RequestOutputKind.DELTA, **drawing(point)
    )
    before = counters(llm)
    asked = prompts(engine.model_config.get_vocab_size(), batch, point["context"], seed)
    start = time.perf_counter()
    ids = [f"{seed}-{number}" for number in range(batch)]
    inner = [engine.add_request(name, prompt, params) for name, prompt in zip(ids, asked, strict=True)]
    stamps: list[tuple[float, int, int]] = []
    full = 0
    while full < wanted + 1:
        answers = engine.step()
        if answers:
            new = [len(answer.outputs[0].token_ids) for answer in answers]
            stamps.append((time.perf_counter(), len(answers), sum(new)))
            full += len(answers) == batch
        elif not engine.has_unfinished_requests():
            raise RuntimeError(f"the requests ended after {full} steps of {wanted}")
    engine.abort_request(inner, internal=True)
    while engine.has_unfinished_requests():
        engine.step()
    after = counters(llm)
    settled = next(stamp for stamp in stamps if stamp[1] == batch)[0] - start
    gaps, tokens = together(stamps, batch)
    per_step = tokens / len(gaps) / batch
    gaps = gaps[min(SETTLING, len(gaps) // 2) :]
    tenths = statistics.quantiles(gaps, n=10)
    return {
        "steps": len(gaps),
        "median": round(statistics.median(gaps), 4),
        "mean": round(statistics.fmean(gaps), 4),
        "p10": round(tenths[0], 4),
        "p90": round(tenths[-1], 4),
        "tokens": round(per_step, 3),
        "drafts": after["drafts"] - before["drafts"],
        "accepted": after["accepted"] - before["accepted"],
        "prefill_s": round(settled, 3),
    }


def steps(llm: Any, point: dict[str, Any]) -> dict[str, Any]:
    """Each round's milliseconds a step."""
    seed = point["context"] * 100 + point["batch"] * 10
    return {"rounds": [decode(llm, point, seed + turn) for turn in range(point["rounds"])]}


MEASURES: dict[str, Callable[[Any, dict[str, Any]], dict[str, Any]]] = {"generate": generate, "steps": steps}


def ready_library(knobs: dict[str, str]) -> str | None:
    """The library of the CUDA verify attention, built in vLLM's cache where it is nowhere: the Triton kernel that would run
    in its place is not what is to be measured."""
    if knobs.get("VLLM_SPEC_DECODE_ATTN_CUDA") != "1":
        return None
    from vllm.v1.attention.ops.spec_decode_attn_cuda import library

    places = library.places()
    if any((place / library.NAME).is_file() for place in places):
        return "found"
    start = time.monotonic()
    library.build(places[1])
    return f"built in {time.monotonic() - start:.0f} s"


def measure(llm: Any, record: Record, budget: Budget) -> None:
    """Every point of the boot that there is time for."""
    from vllm.v1.engine.exceptions import EngineDeadError

    dead = ""
    for point in record.boot["points"]:
        if refusal := dead or budget.refusal(point["estimate"]):
            record.save(point, status=NOT_RUN, message=refusal)
            continue
        record.save(point, status=RUNNING)
        start = time.monotonic()
        try:
            record.save(point, **MEASURES[point["kind"]](llm, point), status=MEASURED)
        except Exception as error:
            record.save(point, status=FAILED, message=told(error))
            if isinstance(error, EngineDeadError):
                dead = "the engine died at an earlier point"
        took = time.monotonic() - start
        budget.learn(point["estimate"], took)
        print(f"{point} {took:.1f} s", flush=True)


def watch(deadline: float, parent: int) -> None:
    """End the whole group where nobody else does: the engine holds the card until it is ended.

    The caller may be killed, and then neither its limit nor its care for what it started is left.
    """
    while time.time() < deadline and os.getppid() == parent:
        time.sleep(0.5)
    os.killpg(os.getpid(), signal.SIGKILL)


def versions() -> dict[str, str]:
    import torch
    import transformers
    import triton
    import vllm

    found = {"python": sys.version.split()[0], "torch": torch.__version__, "triton": triton.__version__}
    return {**found, "transformers": transformers.__version__, "vllm": vllm.__version__}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--boot", type=int, required=True, help="its place in the document")
    parser.add_argument("--deadline", type=float, required=True, help="seconds since the epoch")
    given = parser.parse_args()
    if os.getpgid(0) == os.getpid():
        late = given.deadline + 10
        threading.Thread(target=watch, args=(late, os.getppid()), daemon=True).start()
    record = Record(given.out, given.boot)
    boot, small = record.boot, record.document["small"]
    record.save(boot, status=RUNNING)
    try:
        record.save(boot, versions=versions())
        if not small:
            record.save(boot, library=ready_library(boot["knobs"]))
        from vllm import LLM

        start = time.monotonic()
        llm = LLM(**boot["engine"])
        record.save(boot, boot_s=round(time.monotonic() - start, 1))
        try:
            record.save(boot, attention=llm.collective_rpc(attention_in_use)[0])
        except Exception as error:
            record.save(boot, attention=f"not known: {told(error)}")
    except Exception as error:
        record.save(boot, status=FAILED, message=told(error))
        raise
    measure(llm, record, Budget(given.deadline))
    record.save(boot, status=MEASURED)
    sys.stdout.flush()
    # The caller ends what is left of the engine; taking it down nicely would take seconds of the card.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
