"""A running server with a key: what answers without it, by every route it has, every method and every trick of spelling."""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Iterator

import pytest

from serving import KEY, Server

PUBLIC = {"/health", "/ping", "/load", "/version"}
ASKED_FIRST = {"/", "/api/status", "/api/show", "/api/experimental/model-recommendations"}
OPEN = PUBLIC | ASKED_FIRST
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]
ROOT = "/proxied"

Headers = list[tuple[str, bytes]]


def ask(server: Server, method: str, path: str, headers: Headers | None = None) -> int:
    """The status of a request whose path goes out as it is, and whose headers may be any bytes."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers or []:
            connection.putheader(name, value)
        connection.putheader("Content-Length", "0")
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


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


def test_no_route_answers_without_the_key_but_the_open_ones(edges: Server, routes: list[str]) -> None:
    assert OPEN | {"/v1/chat/completions", "/invocations", "/tokenize", "/metrics", "/docs", "/openapi.json"} <= set(
        routes
    )
    opened = {path for path in routes for method in METHODS if ask(edges, method, path) != 401}
    assert opened == OPEN


def test_no_spelling_of_a_guarded_route_does(edges: Server, routes: list[str]) -> None:
    guarded = [path for path in routes if path not in OPEN]
    opened = {
        (method, spelling)
        for path in guarded
        for spelling in spellings(path)
        for method in ("GET", "POST", "OPTIONS")
        if ask(edges, method, spelling) not in (400, 401)
    }
    assert opened == set()


def test_behind_the_prefix_the_same_is_open(edges: Server) -> None:
    for path in PUBLIC:
        assert ask(edges, "GET", ROOT + path) == ask(edges, "GET", path) == 200
    assert ask(edges, "GET", ROOT + ROOT + "/health") == 401
    assert ask(edges, "GET", ROOT) == 401


def test_pristine_guards_no_more_than_its_list(servers: dict[str, Server], routes: list[str]) -> None:
    # The pristine server runs without a key, so that it can be compared; what its guard lets through is in tests/series.
    assert ask(servers["pristine dense"], "GET", "/v1/models") == 200


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
        [("Authorization", "Bearer schlüssel".encode())],
        [("Authorization", b"Bearer \xff\xfe")],
        [("Authorization", b"Bearer no"), ("Authorization", b"Bearer sek")],
        [("X-Api-Key", b"sek")],
        [("Origin", b"https://a.example"), ("Access-Control-Request-Method", b"POST")],
    ],
    ids=lambda headers: " ".join(f"{name}:{value!r}" for name, value in headers) or "none",
)
def test_only_the_key_opens(edges: Server, headers: Headers) -> None:
    for path in ("/v1/models", "/metrics", "/openapi.json"):
        assert ask(edges, "GET", path, headers) == 401


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_key_does(edges: Server, scheme: str) -> None:
    header = [("Authorization", f"{scheme} {KEY}".encode())]
    for path in ("/v1/models", "/metrics", "/openapi.json"):
        assert ask(edges, "GET", path, header) in (200, 307)


def test_only_a_true_preflight_passes(edges: Server) -> None:
    origin, method = ("Origin", b"https://a.example"), ("Access-Control-Request-Method", b"POST")
    assert ask(edges, "OPTIONS", "/v1/completions", [origin, method]) == 200
    for half in ([], [origin], [method]):
        assert ask(edges, "OPTIONS", "/v1/completions", half) == 401
        assert ask(edges, "OPTIONS", "/metrics", half) == 401


@pytest.mark.parametrize("path", ["/v1/realtime", "/v1/completions", "/metrics", "/anything"])
def test_a_websocket_needs_the_key(edges: Server, path: str) -> None:
    upgrade = (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", edges.port), timeout=30) as connection:
        connection.sendall(upgrade.encode())
        status = int(connection.recv(4096).split(b" ")[1])
    assert status in (401, 403)


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
