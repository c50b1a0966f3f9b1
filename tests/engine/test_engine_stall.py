"""A step made to hang: one warning with stacks, then the recovery; nothing while idle."""

from __future__ import annotations

import threading
import time

import httpx

from serving import Server, until

WARNING = "The engine has completed no step for"
RECOVERY = "The engine is no longer stalled."


def test_a_hanging_step_is_reported_once_and_recovers(edges: Server) -> None:
    assert WARNING not in edges.log()
    answers: list[httpx.Response] = []

    def ask() -> None:
        with edges.client(timeout=120) as client:
            body = {"model": "second", "prompt": "hang " * 50, "max_tokens": 3, "ignore_eos": True}
            answers.append(client.post("/v1/completions", json=body))

    asking = threading.Thread(target=ask)
    with edges.held():
        asking.start()
        until(lambda: WARNING in edges.log(), 30, "the stall is not reported")
        time.sleep(5)
        assert edges.log().count(WARNING) == 1
        assert RECOVERY not in edges.log()
    asking.join(60)
    assert answers[0].status_code == 200
    assert answers[0].json()["usage"]["completion_tokens"] == 3
    until(lambda: RECOVERY in edges.log(), 30, "the recovery is not reported")
    report = edges.log().split(WARNING)[1].split(RECOVERY)[0]
    assert "1 requests running and 0 waiting" in report
    assert "held_by_the_test" in report
    assert "step" in report and "MainThread" in report


def test_it_is_silent_while_idle_and_armed_again(edges: Server) -> None:
    before = edges.log().count(WARNING)
    time.sleep(6)
    assert edges.log().count(WARNING) == before
    with edges.client(timeout=120) as client:
        asking = threading.Thread(
            target=lambda: client.post("/v1/completions", json={"model": "second", "prompt": "a"})
        )
        with edges.held():
            asking.start()
            until(lambda: edges.log().count(WARNING) == before + 1, 30, "the second stall is not reported")
        asking.join(60)


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
