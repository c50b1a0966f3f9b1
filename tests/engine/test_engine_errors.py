"""Clients that give up or send nonsense: clean errors, and no request is left behind (checked after every test)."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import openai
import pytest
from launching import until

from serving import KEY, OTHER_KEY, Server

NAMES = ["pristine dense", "patched dense", "patched hybrid", "edges"]
LONG = "the quick brown fox jumps over the lazy dog " * 110


NONSENSE = [
    (b"{", 400),
    (b"", 400),
    (b"[]", 400),
    (b'{"prompt": 7}', 400),
    (b'{"prompt": "a", "max_tokens": "many"}', 400),
    (b'{"prompt": "a", "max_tokens": -1}', 400),
    (b'{"prompt": "a", "temperature": -5}', 400),
    (b"\xff\xfe\x00", 400),
    (b'{"prompt": "\xff"}', 400),
    (b'{"model": "nobody", "prompt": "a"}', 404),
]


def complain(server: Server, body: bytes) -> tuple[int, Any]:
    with server.client() as client:
        answer = client.post("/v1/completions", content=body, headers={"Content-Type": "application/json"})
    return answer.status_code, answer.json()


@pytest.mark.parametrize(("body", "status"), NONSENSE)
@pytest.mark.parametrize("name", NAMES)
def test_nonsense_is_a_clean_error(servers: dict[str, Server], name: str, body: bytes, status: int) -> None:
    seen, answer = complain(servers[name], body)
    assert seen == status
    try:
        json.loads(body or b"{}")
    except UnicodeDecodeError:
        # What cannot be decoded never reaches vLLM's own handlers, pristine or patched.
        assert answer == {"detail": "There was an error parsing the body"}
        return
    except json.JSONDecodeError:
        pass
    assert answer["error"]["code"] == status and answer["error"]["message"]


@pytest.mark.parametrize(("body", "status"), [case for case in NONSENSE if case[1] != 404])
def test_nonsense_is_answered_as_pristine_does(servers: dict[str, Server], body: bytes, status: int) -> None:
    for model in ("dense", "hybrid"):
        answers = [complain(servers[f"{tree} {model}"], body) for tree in ("pristine", "patched")]
        assert answers[0] == answers[1]
        assert answers[0][0] == status


def test_the_404_names_the_served_models(edges: Server) -> None:
    with edges.client() as client:
        for path in ("/v1/completions", "/v1/chat/completions", "/v1/tokenize", "/tokenize"):
            body = {"model": "nobody", "prompt": "a", "messages": [{"role": "user", "content": "a"}]}
            if "chat" in path:
                del body["prompt"]
            answer = client.post(path, json=body)
            assert answer.status_code == 404
            assert "Valid aliases: hq-27b, second." in answer.json()["error"]["message"]


def test_the_official_client_tells_the_errors_apart(edges: Server) -> None:
    def ask(key: str, model: str, **body: Any) -> Any:
        with openai.OpenAI(base_url=f"{edges.url}/v1", api_key=key, max_retries=0, timeout=60) as client:
            messages: Any = [{"role": "user", "content": "a fox"}]
            return client.chat.completions.create(model=model, messages=messages, max_tokens=3, **body)

    with pytest.raises(openai.AuthenticationError):
        ask("no", "second")
    with pytest.raises(openai.NotFoundError, match="Valid aliases: hq-27b, second"):
        ask(KEY, "nobody")
    with pytest.raises(openai.BadRequestError):
        ask(KEY, "second", temperature=-5)
    for key in (KEY, OTHER_KEY):
        answer = ask(key, "second", extra_body={"ignore_eos": True})
        assert answer.usage.completion_tokens == 3 and answer.choices[0].finish_reason == "length"


def test_a_model_may_be_named_by_its_path(edges: Server) -> None:
    with edges.client() as client:
        for name in ("hq-27b", "second", str(edges.model), edges.model.name):
            answer = client.post("/v1/completions", json={"model": name, "prompt": "a", "max_tokens": 1})
            assert answer.status_code == 200, name
        for name in (edges.model.name[:-1], edges.model.name.upper(), edges.model.parent.name):
            assert client.post("/v1/completions", json={"model": name, "prompt": "a"}).status_code == 404, name


def test_tokens_are_counted_under_v1_too(edges: Server) -> None:
    with edges.client() as client:
        body = {"model": "second", "prompt": "the quick fox"}
        counted = [client.post(path, json=body).json() for path in ("/tokenize", "/v1/tokenize")]
        assert counted[0] == counted[1]
        assert counted[0]["count"] == 3
        text = client.post("/v1/detokenize", json={"model": "second", "tokens": counted[0]["tokens"]}).json()
        assert text["prompt"] == "the quick fox"


def test_a_client_that_leaves_in_mid_prefill(edges: Server) -> None:
    body = {"model": "second", "prompt": f"leaving {time.time()} {LONG}", "max_tokens": 50, "stream": True}
    with (
        edges.client() as client,
        client.stream("POST", "/v1/completions", json={**body, "return_progress": True}) as answer,
    ):
        lines = (line for line in answer.iter_lines() if line.startswith("data: "))
        first = json.loads(next(lines)[6:])["prompt_progress"]
        assert first["processed"] < first["total"]
    until(edges.idle, 60, "the request of a client that left is still there")
    assert edges.process is not None and edges.process.poll() is None


def test_a_client_that_leaves_while_a_step_hangs(edges: Server) -> None:
    counted = edges.metrics("vllm:generation_tokens_total")[0]
    body = {"model": "second", "prompt": f"gone {time.time()} {LONG}", "max_tokens": 900, "ignore_eos": True}
    with edges.client() as client:
        with edges.held(), pytest.raises(httpx.ReadTimeout):
            client.post("/v1/completions", json=body, timeout=1)
        # The engine gets on, and whoever comes next is served.
        answer = client.post("/v1/completions", json={"model": "second", "prompt": "next", "max_tokens": 2})
    assert answer.status_code == 200
    until(edges.idle, 60, "the request of a client that left is still there")
    assert edges.metrics("vllm:generation_tokens_total")[0] - counted < 900


@pytest.mark.parametrize("name", ["patched dense", "patched hybrid"])
def test_clients_that_leave_while_tokens_come(servers: dict[str, Server], name: str) -> None:
    server = servers[name]
    body = {"prompt": "the fox", "max_tokens": 1500, "stream": True, "ignore_eos": True}
    for _ in range(3):
        with server.client() as client, client.stream("POST", "/v1/completions", json=body) as answer:
            assert answer.status_code == 200
            for _, line in zip(range(4), answer.iter_lines(), strict=False):
                assert line == "" or line.startswith("data: ")
    until(server.idle, 60, "requests of clients that left are still there")
    assert server.metrics("vllm:generation_tokens_total")[0] < 3 * 1500
