"""The stall sentinel: looked at by hand with made-up clocks and counts, and its thread on a real one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any


@contextmanager
def lines_of(logger: logging.Logger) -> Iterator[list[str]]:
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(f"{record.levelname} {record.getMessage()}")  # type: ignore[method-assign]
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class Script:
    """A sentinel with a threshold of 10 s and an engine that is what the script says."""

    def __init__(self, module: Any) -> None:
        self.counts, self.paused = (0, 0), False
        self.sentinel = module.StallSentinel(10.0, lambda: self.counts, lambda: self.paused)
        self.now = 1000.0

    def looks(self, seconds: float, step_every: float | None = None) -> None:
        """Look every second, with completed steps between."""
        for second in range(int(seconds)):
            if step_every is not None and second % step_every == 0:
                self.sentinel.step_completed()
            self.now += 1
            self.sentinel.look(self.now)


def scripts(module: Any) -> dict[str, Callable[[Script], None]]:
    def hang(s: Script) -> None:
        s.counts = (2, 1)
        s.looks(60)

    def busy(s: Script) -> None:
        s.counts = (2, 1)
        s.looks(60, step_every=4)

    def idle(s: Script) -> None:
        s.looks(60)

    def idle_then_busy(s: Script) -> None:
        s.looks(3600)
        s.counts = (1, 0)
        s.looks(9)
        s.looks(60, step_every=5)

    def recovers_and_hangs_again(s: Script) -> None:
        s.counts = (1, 0)
        s.looks(30)
        s.looks(3, step_every=1)
        s.looks(30)

    def paused(s: Script) -> None:
        s.counts, s.paused = (1, 0), True
        s.looks(60)

    def aborted(s: Script) -> None:
        s.counts = (1, 0)
        s.looks(20)
        s.counts = (0, 0)
        s.looks(60)

    def just_short(s: Script) -> None:
        s.counts = (1, 0)
        s.looks(10)
        s.looks(1, step_every=1)

    cases = (hang, busy, idle, idle_then_busy, recovers_and_hangs_again, paused, aborted, just_short)
    return {case.__name__: case for case in cases}


def on_a_thread(module: Any) -> dict[str, Any]:
    """A real thread, a real clock: counts that raise at first, then a hang, then a step."""
    calls = 0

    def counts() -> tuple[int, int]:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("scheduler in flux")
        return 1, 0

    sentinel = module.StallSentinel(0.2, counts, lambda: False)
    with lines_of(module.logger) as lines:
        sentinel.start()
        give_up = time.monotonic() + 20
        while not any(line.startswith("WARNING") for line in lines) and time.monotonic() < give_up:
            time.sleep(0.01)
        sentinel.step_completed()
        while not any("no longer" in line for line in lines) and time.monotonic() < give_up:
            time.sleep(0.01)
        alive = sentinel._thread.is_alive()
        sentinel._request_counts = lambda: (0, 0)
        time.sleep(0.2)
    return {"lines": lines, "alive": alive, "daemon": sentinel._thread.daemon}


def steps(with_sentinel: bool) -> dict[str, Any]:
    """What ``_process_engine_step`` tells a sentinel, for steps of every kind."""
    from vllm.v1.engine import core as module

    told = 0

    def note() -> None:
        nonlocal told
        told += 1

    results = [({}, True), ({0: "output"}, False), ({}, False), (None, False), (None, True)]
    engine = module.EngineCoreProc.__new__(module.EngineCoreProc)
    engine.scheduler = SimpleNamespace(has_requests=lambda: False)
    engine.output_queue = SimpleNamespace(put_nowait=lambda _: None)
    engine.post_step = lambda _: None
    engine.stall_sentinel = SimpleNamespace(step_completed=note) if with_sentinel else None
    answers = []
    for outputs, executed in results:
        engine.step_fn = lambda outputs=outputs, executed=executed: (outputs, executed)
        before = told
        answers.append([engine._process_engine_step(), told - before])
    return {"answers": answers}


def collect() -> dict[str, Any]:
    """Everything about the sentinel, or what there is to see where there is none."""
    try:
        from vllm.v1.engine import stall_sentinel as module
    except ImportError:
        return {"sentinel": None, "sentinel steps": {"off": steps(False)}}
    seen = {}
    for name, case in scripts(module).items():
        with lines_of(module.logger) as lines:
            case(Script(module))
        seen[name] = lines
    return {
        "sentinel": {"scripts": seen, "thread": on_a_thread(module), "stacks": module.thread_stacks()},
        "sentinel steps": {"off": steps(False), "on": steps(True)},
    }
