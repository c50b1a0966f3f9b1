"""Progress of the prefill, piece by piece: the scheduler with made-up results, the output processor, the streams."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from drive_api import make_app

CHUNK = 64
LENGTH = 200


def asking(on: bool, **more: Any) -> Any:
    """Sampling parameters, which ask for progress where the tree can."""
    from vllm import SamplingParams

    return SamplingParams(**({"return_progress": True} if on else {}), max_tokens=8, ignore_eos=True, **more)


def scheduler(model: Path) -> Any:
    import torch
    from vllm.engine.arg_utils import EngineArgs
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
    from vllm.v1.structured_output import StructuredOutputManager

    config = EngineArgs(
        model=str(model),
        max_model_len=256,
        max_num_batched_tokens=CHUNK,
        max_num_seqs=4,
        block_size=16,
        enforce_eager=True,
        enable_prefix_caching=True,
    ).create_engine_config()
    spec = FullAttentionSpec(block_size=16, num_kv_heads=2, head_size=32, dtype=torch.bfloat16)
    cache = KVCacheConfig(num_blocks=40, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer.0"], spec)])
    config.cache_config.num_gpu_blocks = 40
    return Scheduler(config, cache, StructuredOutputManager(config), block_size=16, log_stats=True)


def request(name: str, on: bool, tokens: list[int], params: Any = None) -> Any:
    from vllm.utils.hashing import sha256
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
    from vllm.v1.request import Request

    init_none_hash(sha256)
    return Request(name, tokens, params or asking(on), None, block_hasher=get_request_block_hasher(16, sha256))


def finish_step(made: Any, scheduled: Any) -> list[list[Any]]:
    """Give every request a token where its prompt is done, and return what came out: id, tokens, progress."""
    from vllm.v1.outputs import ModelRunnerOutput

    names = list(scheduled.num_scheduled_tokens)
    in_flight = {n: made.requests[n].num_in_flight_tokens - scheduled.num_scheduled_tokens[n] for n in names}
    done = {n: made.requests[n].num_computed_tokens - in_flight[n] >= made.requests[n].num_prompt_tokens for n in names}
    result = ModelRunnerOutput(
        req_ids=names,
        req_id_to_index={name: index for index, name in enumerate(names)},
        sampled_token_ids=[[7] if done[name] else [] for name in names],
        logprobs=None,
        prompt_logprobs_dict={},
        pooler_output=[],
    )
    outputs = made.update_from_output(scheduled, result)
    return [
        [output.request_id, output.new_token_ids, progress_of(output)]
        for client in outputs.values()
        for output in client.outputs
    ]


def progress_of(output: Any) -> list[int] | None:
    progress = getattr(output, "prompt_progress", None)
    if progress is None:
        return None
    assert progress.time_ms >= 0
    return [progress.total, progress.cached, progress.processed]


def steps(made: Any, count: int) -> list[list[Any]]:
    return [line for _ in range(count) for line in finish_step(made, made.schedule())]


def scheduled(model: Path, can_ask: bool) -> dict[str, Any]:
    prompt = [5 + i % 40 for i in range(LENGTH)]
    seen: dict[str, Any] = {}
    for on in (False, True) if can_ask else (False,):
        made = scheduler(model)
        made.add_request(request("a", on, prompt))
        first = steps(made, 6)
        made.finish_requests("a", status())
        made.add_request(request("b", on, prompt))
        seen["asked" if on else "not asked"] = {"first": first, "again": steps(made, 3)}
    if can_ask:
        made = scheduler(model)
        made.add_request(request("a", True, prompt))
        ahead = [made.schedule(), made.schedule()]
        seen["two in flight"] = [line for one in ahead for line in finish_step(made, one)]
        made = scheduler(model)
        made.add_request(request("a", True, prompt[:20]))
        seen["one chunk"] = steps(made, 2)
        seen["preempted"] = preempted(prompt)
    return seen


def status() -> Any:
    from vllm.v1.request import RequestStatus

    return RequestStatus.FINISHED_ABORTED


def preempted(prompt: list[int]) -> list[int | None]:
    """What a request says as its prefill goes on, falls back to nothing, and comes past where it was."""
    made = request("a", True, prompt)
    said = []
    for computed in (64, 128, 0, 64, 128, 192):
        made.num_computed_tokens = computed
        progress = made.take_prompt_progress(prefilled=False)
        said.append(progress.processed if progress else None)
    return said


def wire(can_ask: bool) -> dict[str, Any]:
    """Outputs through the engine's own encoder: what an old peer reads, and what is sent when nobody asked."""
    from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs
    from vllm.v1.serial_utils import MsgpackDecoder, MsgpackEncoder

    def sent(output: Any) -> list[bytes]:
        frames = MsgpackEncoder().encode(EngineCoreOutputs(outputs=[output], timestamp=1.0))
        return [bytes(frame) for frame in frames]

    plain = sent(EngineCoreOutput(request_id="a", new_token_ids=[1, 2]))
    seen: dict[str, Any] = {"plain": [frame.hex() for frame in plain]}
    if can_ask:
        from vllm.v1.metrics.stats import PromptProgress

        frames = sent(EngineCoreOutput(request_id="a", new_token_ids=[], prompt_progress=PromptProgress(9, 1, 4, 7)))
        back = MsgpackDecoder(EngineCoreOutputs).decode(frames).outputs[0]
        seen["back"] = [type(back.prompt_progress).__name__, *progress_of(back), back.prompt_progress.time_ms]
    return seen


def processed(model: Path, on: bool, n: int = 1) -> dict[str, Any]:
    """An output processor fed progress and then tokens: what the stream gets, and what the statistics count."""
    from transformers import AutoTokenizer
    from vllm.sampling_params import RequestOutputKind
    from vllm.v1.engine import EngineCoreOutput, EngineCoreRequest
    from vllm.v1.engine.output_processor import OutputProcessor, RequestOutputCollector
    from vllm.v1.engine.parallel_sampling import ParentRequest
    from vllm.v1.metrics.stats import IterationStats, PrefillStats

    params = asking(on, output_kind=RequestOutputKind.DELTA, n=n)
    whole = EngineCoreRequest("r", [5] * 9, None, params, None, 1.0, None, None, None)
    whole.external_req_id = "outside"
    processor = OutputProcessor(AutoTokenizer.from_pretrained(model), log_stats=True)
    queue = RequestOutputCollector(RequestOutputKind.DELTA, "r")
    parent = ParentRequest(whole) if n > 1 else None
    names = []
    for index in range(n):
        name, child = parent.get_child_info(index) if parent else ("r", params)
        one = EngineCoreRequest(name, [5] * 9, None, child, None, 1.0, None, None, None)
        one.external_req_id = "outside"
        processor.add_request(one, None, parent, index, queue)
        names.append(name)
    taken: list[list[Any]] = []
    counted: list[list[int]] = []

    def feed(*outputs: Any, take: bool = True) -> None:
        stats = IterationStats()
        processor.process_outputs(list(outputs), 50.0, stats)
        counted.append([len(stats.time_to_first_tokens_iter), stats.num_generation_tokens, stats.num_prompt_tokens])
        while take and (got := queue.get_nowait()) is not None:
            taken.append(
                [
                    got.request_id,
                    [[o.index, list(o.token_ids)] for o in got.outputs],
                    progress_of(got),
                    got.num_cached_tokens,
                ]
            )

    def report(name: str, done: int) -> Any:
        from vllm.v1.metrics.stats import PromptProgress

        return EngineCoreOutput(name, [], prompt_progress=PromptProgress(9, 2, done, 1))

    if on:
        feed(*(report(name, 4) for name in names))
        # The client is slow: the report it has not fetched gives way to the next, and that to the first token.
        feed(*(report(name, 6) for name in names), take=False)
        feed(*(report(name, 7) for name in names), take=False)
        if n > 1:
            feed(EngineCoreOutput(names[1], [6], prefill_stats=PrefillStats(9, 7, 2, 2)), report(names[0], 8))
    first = [EngineCoreOutput(name, [7], prefill_stats=PrefillStats(9, 7, 2, 2)) for name in names]
    if on:
        for output, name in zip(first, names, strict=True):
            output.prompt_progress = report(name, 9).prompt_progress
    feed(*first)
    feed(*(EngineCoreOutput(name, [8]) for name in names))
    return {"taken": taken, "counted": counted}


def streams(model: Path, can_ask: bool) -> dict[str, Any]:
    """Both routes over HTTP, the engine a script of outputs."""
    from fastapi.testclient import TestClient
    from vllm.outputs import CompletionOutput, RequestOutput

    asked: list[Any] = []

    def script(prompt: Any, params: Any, on: bool) -> list[Any]:
        tokens = prompt["prompt_token_ids"]

        def output(outputs: list[Any], processed: int | None, finished: bool = False) -> Any:
            more = {}
            if processed is not None and on:
                from vllm.v1.metrics.stats import PromptProgress

                more = {"prompt_progress": PromptProgress(len(tokens), 1, processed, 5)}
            ids = tokens if outputs else None
            return RequestOutput("r", None, ids, None, outputs, finished, num_cached_tokens=1, **more)

        def text(words: str, reason: str | None = None) -> Any:
            return CompletionOutput(0, words, [7], None, None, finish_reason=reason)

        early = [output([], 1), output([], 2)] if on else []
        return [*early, output([text("the")], len(tokens)), output([text(" fox", "stop")], None, True)]

    def answers(app: Any) -> dict[str, Any]:
        async def generate(prompt: Any, params: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
            on = can_ask and params.return_progress
            asked.append(on)
            for one in script(prompt, params, on):
                yield one

        app.state.engine_client.generate = generate
        client = TestClient(app, raise_server_exceptions=False)
        seen = {}
        bodies = {
            "completion": ("/v1/completions", {"prompt": "the quick brown fox"}),
            "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "the fox"}]}),
            "two prompts": ("/v1/completions", {"prompt": ["the quick", "the lazy dog"]}),
        }
        flags = {
            "asked": {"stream": True, "return_progress": True},
            "declined": {"stream": True, "return_progress": False},
            "not asked": {"stream": True},
            "without a stream": {"return_progress": True},
            "nonsense": {"stream": True, "return_progress": "often"},
        }
        for name, (path, body) in bodies.items():
            for flag, more in flags.items():
                asked.clear()
                reply = client.post(path, json={**body, "model": "hq", "max_tokens": 2, **more})
                lines = [line[6:] for line in reply.text.splitlines() if line.startswith("data: ")]
                chunks = [json.loads(line) for line in lines if line != "[DONE]"]
                whole = {} if lines else reply.json()
                for part in (*chunks, whole):
                    # The fingerprint is made from the model's directory, which is another for each tree.
                    for key in ("id", "created", "system_fingerprint"):
                        part.pop(key, None)
                seen[f"{name} {flag}"] = {
                    "status": reply.status_code,
                    "chunks": chunks,
                    "whole": whole,
                    "done": lines[-1:] == ["[DONE]"],
                    "engine asked": list(asked),
                }
        return seen

    template = ["--chat-template", "{% for m in messages %}{{ m.content }}{% endfor %}"]
    plain = answers(make_app(model, *template))
    detailed = answers(make_app(model, *template, "--enable-prompt-tokens-details"))
    return {"plain": plain, "detailed": detailed}


def collect(work: Path) -> dict[str, Any]:
    """Everything about the progress of a prefill."""
    import inspect

    from vllm import SamplingParams

    model = work / "models" / "tiny-qwen"
    can_ask = "return_progress" in inspect.signature(SamplingParams).parameters
    return {
        "progress": {
            "scheduler": scheduled(model, can_ask),
            "wire": wire(can_ask),
            "processor": {
                "off": processed(model, False),
                **({"on": processed(model, True), "three": processed(model, True, 3)} if can_ask else {}),
            },
            "streams": streams(model, can_ask),
        }
    }
