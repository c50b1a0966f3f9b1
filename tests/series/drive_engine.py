"""The engine core's step functions with a scheduler and an executor that stand in: what is logged, and when."""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any


class Clock:
    """A clock the test moves by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Batches:
    """A scheduler with a fixed list of batches, given by their numbers of tokens."""

    def __init__(self, tokens: list[int], clock: Clock, log: list[str]) -> None:
        self.left, self.clock, self.log = deque(tokens), clock, log

    def has_requests(self) -> bool:
        return bool(self.left)

    def schedule(self, *_: Any) -> Any:
        tokens = self.left.popleft()
        self.log.append(f"schedule {tokens}")
        return SimpleNamespace(total_num_scheduled_tokens=tokens, pending_structured_output_tokens=False)

    def get_grammar_bitmask(self, *_: Any) -> None:
        return None

    def update_from_output(self, scheduled: Any, _: Any) -> dict[int, Any]:
        self.log.append(f"update {scheduled.total_num_scheduled_tokens}")
        return {}

    def get_request_counts(self) -> tuple[int, int]:
        return len(self.left), 1


def done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


class Slow(Future):
    """A result that takes a while to arrive."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        super().__init__()
        self.clock, self.seconds = clock, seconds
        self.set_result(object())

    def result(self, timeout: float | None = None) -> Any:
        self.clock.now += self.seconds
        return super().result(timeout)


def core(tokens: list[int], seconds: float, queue_size: int, on: bool, log: list[str]) -> tuple[Any, Clock]:
    """An engine core made by hand, with the parts its step functions use."""
    from vllm.v1.engine import core as module

    clock = Clock()
    engine = module.EngineCore.__new__(module.EngineCore)
    engine.scheduler = Batches(tokens, clock, log)
    executor = SimpleNamespace(
        execute_model=lambda *_, **__: Slow(clock, seconds), sample_tokens=lambda *_, **__: Slow(clock, seconds)
    )
    engine.model_executor = executor
    engine.batch_queue = deque() if queue_size > 1 else None
    engine.batch_queue_size = queue_size
    engine.capture_iteration_details = lambda *_: contextlib.nullcontext()
    engine.log_error_detail = lambda *_: contextlib.nullcontext()
    engine._process_aborts_queue = lambda: None
    engine._attach_iteration_details = lambda *_: None
    engine._should_throttle_prefills = lambda: False
    engine.is_mm_encoder_only = engine.is_pooling_model = engine.check_for_draft_tokens = False
    engine.log_completed_steps, engine._completed_steps, engine._step_start = on, 0, None
    module.time = SimpleNamespace(monotonic=clock.monotonic, time=clock.monotonic, sleep=lambda _: None)
    return engine, clock


def run(tokens: list[int], queue_size: int, on: bool, idle: float = 0.0) -> dict[str, Any]:
    """Run every batch; between the first and the rest the engine idles for ``idle`` seconds."""
    from vllm.v1.engine import core as module

    lines: list[str] = []
    log: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    module.logger.addHandler(handler)
    level = module.logger.level
    module.logger.setLevel(logging.INFO)
    keep = module.time
    try:
        engine, clock = core(tokens[:1] if idle else tokens, 0.010, queue_size, on, log)
        step = engine.step if queue_size == 1 else engine.step_with_batch_queue
        for _ in range(40):
            if not engine.scheduler.has_requests() and not engine.batch_queue:
                if not idle:
                    break
                clock.now += idle
                idle = 0.0
                engine.scheduler.left.extend(tokens[1:])
            step()
    finally:
        module.time = keep
        module.logger.removeHandler(handler)
        module.logger.setLevel(level)
    return {"lines": [line for line in lines if line.startswith("Engine step")], "log": log}


def knob() -> dict[str, Any]:
    """The knob's value for several settings, and whether it is in the compilation cache key."""
    import os

    import vllm.envs as envs

    known = "VLLM_ENGINE_COMPLETION_LOG" in envs.environment_variables
    values: dict[str, bool | str | None] = {}
    for setting in (None, "", "0", "1", "true", "2"):
        os.environ.pop("VLLM_ENGINE_COMPLETION_LOG", None)
        if setting is not None:
            os.environ["VLLM_ENGINE_COMPLETION_LOG"] = setting
        try:
            values[str(setting)] = envs.VLLM_ENGINE_COMPLETION_LOG if known else None
        except ValueError as error:
            values[str(setting)] = str(error)
    os.environ.pop("VLLM_ENGINE_COMPLETION_LOG", None)
    factors = envs.compile_factors() if hasattr(envs, "compile_factors") else {}
    return {
        "known": known,
        "values": values,
        "factor": "VLLM_ENGINE_COMPLETION_LOG" in factors,
        "factors": len(factors),
    }


def collect() -> dict[str, Any]:
    """Everything about the completion log."""
    return {
        "knob": knob(),
        "steps": {
            "one at a time": run([5, 0, 7], 1, True),
            "overlapping": run([5, 6, 7], 2, True),
            "idle between": run([5, 7], 1, True, idle=60.0),
            "idle between, overlapping": run([5, 7], 2, True, idle=60.0),
            "off": run([5, 0, 7], 1, False),
            "off, overlapping": run([5, 6, 7], 2, False),
        },
    }
