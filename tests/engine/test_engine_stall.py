"""A step made to hang: one warning with stacks, then the recovery; nothing while idle."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from launching import until

from serving import Server

WARNING = "The engine has completed no step for"
RECOVERY = "The engine is no longer stalled."


def since(server: Server, start: int) -> str:
    return server.log()[start:]


@contextlib.contextmanager
def asked(server: Server, tokens: int) -> Iterator[list[httpx.Response]]:
    """A request that runs beside the block and is answered after it."""
    answers: list[httpx.Response] = []

    def ask() -> None:
        with server.client(timeout=240) as client:
            body = {"model": "second", "prompt": "hang " * 50, "max_tokens": tokens, "ignore_eos": True}
            answers.append(client.post("/v1/completions", json=body))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield answers
    finally:
        server.release()
        asking.join(240)


@pytest.mark.parametrize(
    ("where", "shown"),
    [("engine", "in held_by_the_test"), ("worker", "multiproc_executor.py")],
    ids=["engine", "worker"],
)
def test_a_hanging_step_is_reported_once_and_recovers(edges: Server, where: str, shown: str) -> None:
    start = len(edges.log())
    with edges.held(where), asked(edges, 3) as answers:
        until(lambda: WARNING in since(edges, start), 60, "the stall is not reported")
        # Another three times the threshold.
        time.sleep(6)
        assert since(edges, start).count(WARNING) == 1
        assert RECOVERY not in since(edges, start)
        assert answers == []
    assert answers[0].status_code == 200
    assert answers[0].json()["usage"]["completion_tokens"] == 3
    until(lambda: RECOVERY in since(edges, start), 60, "the recovery is not reported")
    assert since(edges, start).count(WARNING) == 1
    report = since(edges, start).split(WARNING)[1].split(RECOVERY)[0]
    assert "1 requests running and 0 waiting" in report
    main = report.split("MainThread")[1]
    assert shown in main and "in run_busy_loop" in main


def test_it_is_silent_while_idle(edges: Server) -> None:
    until(edges.idle, 60, "")
    start = len(edges.log())
    time.sleep(6)
    assert WARNING not in since(edges, start)


def test_each_step_has_its_line(edges: Server) -> None:
    before = edges.log().count("Engine step ")
    with edges.client() as client:
        body = {"model": "second", "prompt": "the fox", "max_tokens": 5, "ignore_eos": True}
        assert client.post("/v1/completions", json=body).status_code == 200
    until(lambda: edges.log().count("Engine step ") >= before + 5, 10, "steps are not logged")


def test_without_the_knobs_there_is_neither(servers: dict[str, Server]) -> None:
    for name in ("patched dense", "patched hybrid"):
        log = servers[name].log()
        assert "EngineStallSentinel" not in log and WARNING not in log and "Engine step " not in log
