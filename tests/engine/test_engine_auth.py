"""A running server with a key: what answers without it, by every route it has, every method and every trick of spelling."""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Iterator

import pytest

from conftest import KEYED
from serving import KEY, OTHER_KEY, Server

PUBLIC = {"/health", "/ping", "/load", "/version"}
ASKED_FIRST = {"/", "/api/status", "/api/show", "/api/experimental/model-recommendations"}
OPEN = PUBLIC | ASKED_FIRST
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]
ROOT = "/proxied"

Headers = list[tuple[str, bytes]]


class Asking:
    """A connection on which requests go out as they are: any path, headers of any bytes."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)

    def __call__(self, method: str, path: str, headers: Headers | None = None) -> int:
        """The status of the answer."""
        self.connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in [("Content-Length", b"0"), *(headers or [])]:
            self.connection.putheader(name, value)
        self.connection.endheaders()
        answer = self.connection.getresponse()
        answer.read()
        return answer.status


def ask(server: Server, method: str, path: str, headers: Headers | None = None) -> int:
    """The status of one request."""
    asking = Asking(server)
    try:
        return asking(method, path, headers)
    finally:
        asking.connection.close()


@pytest.fixture
def asking(edges: Server) -> Iterator[Asking]:
    made = Asking(edges)
    yield made
    made.connection.close()


@pytest.fixture(scope="module")
def routes(edges: Server) -> list[str]:
    """Every path of the router, as the server logs it, and of its own OpenAPI document, parameters filled in."""
    logged = re.findall(r"Route: (\S+), (?:Methods|Endpoint): ", edges.log())
    with edges.client() as client:
        documented = list(client.get("/openapi.json").json()["paths"])
    assert len(logged) > 25 and len(documented) > 25
    # Mounted applications have no methods, so they are not in the log.
    return sorted(
        {re.sub(r"\{[^}]*\}", "x", path) for path in [*logged, *documented, "/metrics", "/metrics/x", "/nothing"]}
    )


def spellings(path: str) -> Iterator[str]:
    """``path`` in other words: none of them may open what ``path`` does not."""
    yield from (path + "/", "/" + path, path + "//", path.upper(), path + "?api_key=sek", path + "#/health")
    yield from (f"/.{path}", f"/x/..{path}", f"/health/..{path}", f"/health/%2e%2e{path}", f"/health%2f..{path}")
    if len(path) > 1:
        yield from (
            f"/%{ord(path[1]):02x}{path[2:]}",
            f"/%{ord(path[1]):02X}{path[2:]}",
            f"/%25{ord(path[1]):02x}{path[2:]}",
        )
    yield from (
        path + "%00",
        path + ";/health",
        path + "%3f/health",
        f"http://127.0.0.1{path}",
        f"{ROOT}{path}",
        f"{ROOT}/{path}",
    )


def test_no_route_answers_without_the_key_but_the_open_ones(asking: Asking, routes: list[str]) -> None:
    known = {"/v1/chat/completions", "/invocations", "/tokenize", "/metrics", "/docs", "/openapi.json"}
    assert OPEN | known <= set(routes)
    opened = {path for path in routes for method in METHODS if asking(method, path) != 401}
    assert opened == OPEN


@pytest.mark.parametrize("method", METHODS)
def test_no_spelling_of_a_guarded_route_does(asking: Asking, routes: list[str], method: str) -> None:
    guarded = [path for path in routes if path not in OPEN]
    # 400 is the HTTP parser's answer to what is no request.
    opened = {
        spelling for path in guarded for spelling in spellings(path) if asking(method, spelling) not in (400, 401)
    }
    assert opened == set()


def test_behind_the_prefix_the_same_is_open(edges: Server) -> None:
    for path in PUBLIC:
        assert ask(edges, "GET", ROOT + path) == ask(edges, "GET", path) == 200
        assert ask(edges, "GET", path + "?a=1") == 200
        assert ask(edges, "GET", path + "/") in (200, 307)
        assert ask(edges, "GET", ROOT + ROOT + path) == 401
        assert ask(edges, "GET", path.upper()) == ask(edges, "GET", f"/{path}") == 401
    assert ask(edges, "GET", ROOT) == 401


def test_pristine_answers_what_the_patch_guards(servers: dict[str, Server]) -> None:
    """The same questions to a pristine server with the same key show that these tests can fail."""
    pristine = Asking(servers[KEYED])
    assert pristine("GET", "/v1/models") == 401
    assert pristine("GET", "/metrics/") == pristine("GET", "/openapi.json") == 200
    assert pristine("POST", "/invocations") not in (401, 404)
    assert pristine("OPTIONS", "/v1/completions") != 401
    pristine.connection.close()


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Authorization", b"")],
        [("Authorization", b"Bearer ")],
        [("Authorization", b"Bearer")],
        [("Authorization", b"Basic sek")],
        [("Authorization", b"Token sek")],
        [("Authorization", b"sek")],
        [("Authorization", b"Bearer  sek")],
        [("Authorization", b"Bearer sek,")],
        [("Authorization", b"Bearer sekx")],
        [("Authorization", b"Bearer se")],
        [("Authorization", b"Bearer SEK")],
        [("Authorization", b"Bearer sek sek")],
        [("Authorization", b"Bearer sek other")],
        [("Authorization", b"Bearer sek, Bearer other")],
        [("Authorization", "Bearer schlüssel".encode())],
        [("Authorization", b"Bearer \xff\xfe")],
        [("Authorization", b"Bearer no"), ("Authorization", b"Bearer sek")],
        [("X-Api-Key", b"sek")],
        [("Origin", b"https://a.example"), ("Access-Control-Request-Method", b"POST")],
    ],
    ids=lambda headers: " ".join(f"{name}:{value!r}" for name, value in headers) or "none",
)
def test_only_the_key_opens(asking: Asking, routes: list[str], headers: Headers) -> None:
    guarded = [path for path in routes if path not in OPEN]
    assert {path for path in guarded for method in ("GET", "POST") if asking(method, path, headers) != 401} == set()


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
@pytest.mark.parametrize("key", [KEY, OTHER_KEY])
def test_either_key_does(asking: Asking, scheme: str, key: str) -> None:
    header = [("Authorization", f"{scheme} {key}".encode())]
    for path in ("/v1/models", "/metrics/", "/openapi.json"):
        assert asking("GET", path, header) == 200


def test_only_a_true_preflight_passes(edges: Server) -> None:
    origin, method = ("Origin", b"https://a.example"), ("Access-Control-Request-Method", b"POST")
    assert ask(edges, "OPTIONS", "/v1/completions", [origin, method]) == 200
    for half in ([], [origin], [method]):
        assert ask(edges, "OPTIONS", "/v1/completions", half) == 401
        assert ask(edges, "OPTIONS", "/metrics", half) == 401


def shake_hands(server: Server, path: str, *headers: str) -> int:
    """The status of the answer to a request for a websocket."""
    lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: Upgrade", "Upgrade: websocket"]
    lines += ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", *headers, "", ""]
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall("\r\n".join(lines).encode())
        return int(connection.recv(4096).split(b" ")[1])


def test_a_websocket_needs_the_key(edges: Server, routes: list[str]) -> None:
    guarded = [path for path in routes if path not in OPEN]
    for path in guarded:
        assert shake_hands(edges, path) == 401, path
    for path in [*spellings("/v1/completions"), "/v1/realtime", "/anything"]:
        assert shake_hands(edges, path) in (400, 401), path
    assert shake_hands(edges, "/v1/completions", "Authorization: Bearer no") == 401
    # With the key the guard lets it through to the router, which has no such websocket.
    for path in ("/v1/completions", "/anything"):
        assert shake_hands(edges, path, f"Authorization: Bearer {KEY}") in (403, 404, 405)


def test_it_still_serves_after_all_that(edges: Server) -> None:
    with edges.client() as client:
        answer = client.post("/v1/completions", json={"model": "hq-27b", "prompt": "the fox", "max_tokens": 4})
    assert answer.status_code == 200
    assert answer.json()["usage"]["completion_tokens"] == 4


def test_an_ollama_client_gets_what_it_asks_first(edges: Server) -> None:
    with edges.client(keyed=False) as client:
        assert client.get("/").status_code == client.head("/").status_code == 200
        assert client.get("/api/status").json() == {"status": "ok"}
        shown = client.post("/api/show", json={"model": "HQ:27b"})
        assert shown.status_code == 200
        assert shown.json()["model_info"]["general.context_length"] == 2048
        missing = client.post("/api/show", json={"model": "nobody"})
        assert (missing.status_code, missing.json()) == (404, {"error": "model 'nobody' not found"})
