"""Small top-k beside the stock kernels: ``PATCHFORGE_PATCHED_TREE=DIR python benchmarks/gpu/samplers.py > samplers.md``.

The stock kernels are in the patched tree as they were, so one process times both, in CUDA graphs where they can be captured.
Masks are made in place: each launch of a graph has logits of its own, and all are filled again before a replay, untimed.
"""

from __future__ import annotations

import datetime
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import torch

VOCABULARY = 248320
BATCHES = (1, 8, 32, 64)
SOFTMAX_ROWS = (1, 5, 8, 16)
TOP_K, TOP_P, CANDIDATES = (20, 64), 0.95, 16
LAUNCHES, REPLAYS, WARM = 8, 15, 3

Launch = Callable[[torch.Tensor], object]


class Timing:
    """Microseconds a launch: the median and both ends of the replays."""

    def __init__(self, values: list[float], graph: bool) -> None:
        self.median, self.least, self.most = statistics.median(values), min(values), max(values)
        self.graph = graph

    def __str__(self) -> str:
        mark = "" if self.graph else " *"
        return f"{self.median:.1f} [{self.least:.1f}, {self.most:.1f}]{mark}"


def logits_of(kind: str, rows: int, vocabulary: int, device: str) -> torch.Tensor:
    """``flat`` as random weights make them, ``peaked`` with fifty tokens far above the rest, as text has them."""
    generator = torch.Generator(device).manual_seed(rows)
    made = torch.randn(rows, vocabulary, generator=generator, device=device) * 2
    if kind == "peaked":
        places = torch.randint(0, vocabulary, (rows, 50), generator=generator, device=device)
        raised = torch.linspace(6, 14, 50, device=device).expand(rows, -1)
        made.scatter_add_(1, places, raised)
    return made


def timed(launch: Launch, fresh: torch.Tensor) -> Timing:
    """Time launches on copies of ``fresh`` one after another."""
    copies = [fresh.clone() for _ in range(LAUNCHES)]
    for copy in copies[:2]:
        launch(copy)  # compiles
    torch.cuda.synchronize()

    def all_of_them() -> None:
        for copy in copies:
            launch(copy)

    stream, graph, captured = torch.cuda.Stream(), torch.cuda.CUDAGraph(), True
    try:
        with torch.cuda.graph(graph, stream=stream):
            all_of_them()
    except RuntimeError:
        torch.cuda.synchronize()
        captured = False
    values = []
    for turn in range(REPLAYS + WARM):
        for copy in copies:
            copy.copy_(fresh)
        torch.cuda.synchronize()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        if captured:
            graph.replay()
        else:
            all_of_them()
        end.record()
        end.synchronize()
        if turn >= WARM:
            values.append(begin.elapsed_time(end) * 1000 / LAUNCHES)
    return Timing(values, captured)


def row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def table(head: list[str], rows: list[str], left: int = 1) -> list[str]:
    """A Markdown table whose first ``left`` columns are words."""
    return [row(*head), "|" + " --- |" * left + " ---: |" * (len(head) - left), *rows, ""]


def masks(
    vocabulary: int, batches: tuple[int, ...], device: str, time: Callable[[Launch, torch.Tensor], Any]
) -> list[str]:
    """Top-k and top-p: the search over the vocabulary beside ``torch.topk`` and a sweep."""
    from vllm.v1.sample.ops.small_topk import apply_small_top_k_top_p
    from vllm.v1.sample.ops.topk_topp_triton import apply_top_k_top_p_triton

    rows = []
    for kind in ("flat", "peaked"):
        for batch in batches:
            fresh = logits_of(kind, batch, vocabulary, device)
            p = torch.full((batch,), TOP_P, device=device)
            for top_k in TOP_K:
                k = torch.full((batch,), top_k, dtype=torch.int32, device=device)

                def stock(x: torch.Tensor, k: torch.Tensor = k, p: torch.Tensor = p) -> torch.Tensor:
                    return apply_top_k_top_p_triton(x, k, p)

                def small(
                    x: torch.Tensor, k: torch.Tensor = k, p: torch.Tensor = p, top_k: int = top_k
                ) -> torch.Tensor:
                    return apply_small_top_k_top_p(x, k, p, top_k)

                kept = [launch(fresh.clone()).isfinite() for launch in (stock, small)]
                same = int((kept[0] == kept[1]).all(1).sum())
                times = time(stock, fresh), time(small, fresh)
                ratio = f"{times[0].median / times[1].median:.2f}"
                rows.append(row(kind, batch, top_k, *times, ratio, f"{same} of {batch}"))
    return table(["logits", "rows", "top-k", "stock", "patched", "stock / patched", "rows kept alike"], rows)


def softmaxes(
    vocabulary: int, batches: tuple[int, ...], device: str, time: Callable[[Launch, torch.Tensor], Any]
) -> list[str]:
    """torch's softmax beside the one that spreads a row over the device; not in place."""
    from vllm.v1.sample.ops.small_topk import multi_block_softmax

    rows = []
    for batch in batches:
        fresh = logits_of("flat", batch, vocabulary, device)

        def stock(x: torch.Tensor) -> torch.Tensor:
            return x.softmax(dim=-1, dtype=torch.float32)

        error = (stock(fresh) - multi_block_softmax(fresh)).abs().max().item()
        times = time(stock, fresh), time(multi_block_softmax, fresh)
        rows.append(row(batch, *times, f"{times[0].median / times[1].median:.2f}", f"{error:.0e}"))
    return table(["rows", "stock", "patched", "stock / patched", "largest difference"], rows, left=0)


def candidates(
    vocabulary: int, batches: tuple[int, ...], device: str, time: Callable[[Launch, torch.Tensor], Any]
) -> list[str]:
    """The drafter's candidates: what ``VLLM_USE_FLASHINFER_SAMPLER=0`` switches to, beside FlashInfer where that is installed."""
    try:
        import flashinfer
    except ImportError:
        flashinfer = None
    rows = []
    for batch in batches:
        fresh = logits_of("flat", batch, vocabulary, device)
        ours = time(lambda x: torch.topk(x, CANDIDATES), fresh)
        theirs: object = "not installed"
        if flashinfer is not None:
            try:
                theirs = time(lambda x: flashinfer.top_k(x, CANDIDATES, sorted=True, deterministic=True), fresh)
            except Exception as error:
                theirs = f"{type(error).__name__}: {str(error).splitlines()[0][:80] if str(error) else ''}"
        rows.append(row(batch, theirs, ours))
    return table(["rows", "FlashInfer", "torch.topk"], rows, left=0)


def page(masked: list[str], softened: list[str], picked: list[str], head: str) -> str:
    """The whole, to be put under a heading of its own."""
    return "\n".join(
        [
            head,
            "",
            f"Top-k, then top-p {TOP_P}, in place, microseconds; and how many rows the two cut to the same tokens: they may",
            "differ by one where top-p's sum rounds to the other side of it.",
            "",
            *masked,
            "The softmax of up to 16 rows:",
            "",
            *softened,
            f"The {CANDIDATES} candidates of a drafter: with `VLLM_USE_FLASHINFER_SAMPLER=0` the patch",
            "`topk-honour-flashinfer-sampler-switch` goes from the first column to the second; without it nothing changes:",
            "",
            *picked,
        ]
    )


def main() -> None:
    tree = os.environ.get("PATCHFORGE_PATCHED_TREE")
    if not tree or not torch.cuda.is_available():
        raise SystemExit("samplers.py needs PATCHFORGE_PATCHED_TREE and a CUDA device")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_USE_FLASHINFER_SAMPLER", "0")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    sys.path.insert(0, tree)
    import triton

    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    driver = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    copied = math.ceil(VOCABULARY * 4 * LAUNCHES / 1e6)
    head = (
        f"{torch.cuda.get_device_name()}, driver {driver}, torch {torch.__version__}, Triton {triton.__version__},"
        f" {datetime.datetime.now(tz=datetime.UTC).date().isoformat()}. {VOCABULARY:,} logits a row in float32;"
        f" a CUDA graph of {LAUNCHES} launches, each on logits of its own ({copied} MB a row in all: those of few rows are in the"
        f" L2, as behind a head), {REPLAYS} replays: median [least, most]. A star: not to be captured, launched one by one."
    )
    parts = (
        masks(VOCABULARY, BATCHES, "cuda", timed),
        softmaxes(VOCABULARY, SOFTMAX_ROWS, "cuda", timed),
        candidates(VOCABULARY, BATCHES, "cuda", timed),
    )
    print(page(*parts, head))


if __name__ == "__main__":
    main()
