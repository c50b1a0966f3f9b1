"""Asking a forge for one pull request: every answer it may give, and where the token goes."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from forge import COMMIT, Forge, Reply, pull, serving
from patchforge.releases import forge as asked
from patchforge.releases.forge import Answer, Place, UnansweredError, api_of, is_safe, place_of, remembered

DEMO = Place("github.com", "org", "demo")
SECRET = "ghp_0123456789secret"


@pytest.fixture
def forge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Forge]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with serving(Forge()) as found:
        yield found


def api(forge: Forge, **words: object) -> asked.Forge:
    return replace(asked.Forge(forge.url, SECRET, timeout=5), **words)


def why(forge: Forge, reply: Reply, final: bool, **words: object) -> str:
    forge.pulls["org/demo/12"] = reply
    with pytest.raises(UnansweredError) as caught:
        api(forge, **words).ask(DEMO, 12)
    assert caught.value.final is final
    assert SECRET not in str(caught.value)
    return caught.value.why


def test_a_merged_one(forge: Forge) -> None:
    forge.pulls["org/demo/12"] = pull(12, "closed", merged="2026-11-20T08:30:00Z")
    assert api(forge).ask(DEMO, 12) == Answer(
        "merged", "2026-11-20T08:30:00Z", "2026-11-20T08:30:00Z", COMMIT, "main", 'W/"12-closed"'
    )
    ((path, headers),) = forge.asked
    assert path == "/repos/org/demo/pulls/12"
    assert headers["authorization"] == f"Bearer {SECRET}"
    assert headers["accept"] == "application/vnd.github+json"
    assert headers["user-agent"].startswith("patchforge/")


def test_an_open_one_has_no_merge_commit(forge: Forge) -> None:
    """The API gives one all the same: that of a merge it tried out."""
    forge.pulls["org/demo/12"] = pull(12)
    assert api(forge, token="").ask(DEMO, 12) == Answer("open", base="main", etag='W/"12-open"')
    assert forge.tokens == [""]


def test_a_closed_one(forge: Forge) -> None:
    forge.pulls["org/demo/12"] = pull(12, "closed")
    assert api(forge).ask(DEMO, 12) == Answer(
        "closed", closed="2026-11-03T10:00:00Z", base="main", etag='W/"12-closed"'
    )


def test_nothing_has_changed(forge: Forge) -> None:
    forge.pulls["org/demo/12"] = pull(12)
    answer = api(forge).ask(DEMO, 12)
    assert answer is not None
    assert api(forge).ask(DEMO, 12, answer.etag) is None
    assert forge.asked[1][1]["if-none-match"] == answer.etag


@pytest.mark.parametrize("status", [404, 410])
def test_an_issue_or_gone(forge: Forge, status: int) -> None:
    assert "an issue, private, or gone" in why(forge, Reply(status), False)


def test_the_limit_of_requests_with_its_end(forge: Forge) -> None:
    spent = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1796256000"}
    for status in (403, 429):
        said = why(forge, Reply(status, headers=spent), True, token="")
        assert "answers no more until 2026-12-03 00:00 UTC" in said
        assert "with a token" in said
    assert "token" not in why(forge, Reply(403, headers=spent), True)


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"Retry-After": "60"}, "for 60 s"),
        ({"Retry-After": "\x41" * 50}, "no more: its limit"),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "soon"}, "no more: its limit"),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9" * 30}, "no more: its limit"),
        ({}, "no more: its limit"),
    ],
)
def test_a_limit_without_a_proper_end(forge: Forge, headers: dict[str, str], said: str) -> None:
    assert said in why(forge, Reply(429, headers=headers), True)


@pytest.mark.parametrize(
    ("status", "said", "final"),
    [
        (401, "does not take the token", True),
        (403, "status 403", False),
        (500, "status 500", True),
        (204, "204", False),
    ],
)
def test_other_refusals(forge: Forge, status: int, said: str, final: bool) -> None:
    assert said in why(forge, Reply(status, b""), final)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>a page</html>",
        b"[" * 100_000,
        b"[]",
        b'{"number": 1e999}',
        b"\xff\xfe{",
        pull(13).body,
        pull(12, "gone").body,
        pull(12, "closed", merged="2026-11-20T08:30:00Z", merged_at=None).body,
        pull(12, "closed", merged_at="yesterday", merged=True).body,
        pull(12, "open", merged="2026-11-20T08:30:00Z").body,
        json.dumps({"number": "12", "state": "open"}).encode(),
    ],
    ids=range(12),
)
def test_what_is_no_pull_request(forge: Forge, body: bytes) -> None:
    assert "is not about a pull request" in why(forge, Reply(body=body), False)


def test_names_that_no_terminal_should_be_shown(forge: Forge) -> None:
    for ref in ("\x1b[2Jmain", "a" * 300, 7, ""):
        forge.pulls["org/demo/12"] = pull(12, base={"ref": ref})
        answer = api(forge).ask(DEMO, 12)
        assert answer is not None and answer.base == ""
    forge.pulls["org/demo/12"] = pull(12, base=None)
    assert api(forge).ask(DEMO, 12) is not None


def test_an_answer_without_end(forge: Forge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "MAX_ANSWER", 1 << 20)
    assert "larger than 1 MiB" in why(forge, Reply(body=b" " * (1 << 20) + pull(12).body), False)


def test_one_that_takes_its_time(forge: Forge) -> None:
    assert "no answer within 0.05 s" in why(forge, replace(pull(12), slow=0.2), True, timeout=0.05)
    assert "no answer within 0.1 s" in why(forge, replace(pull(12), drip=0.03), True, timeout=0.1)


def test_nobody_there(forge: Forge) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert "Connection refused" in why(forge, Reply(), True, api=f"http://127.0.0.1:{port}")
    assert not forge.asked


@pytest.mark.parametrize("api", ["http://127.0.0.1:99999", "http://a..b", "http://127.0.0.1:x", "gopher://127.0.0.1"])
def test_an_address_that_is_none(forge: Forge, api: str) -> None:
    with pytest.raises(UnansweredError):
        asked.Forge(api, SECRET, timeout=5).ask(DEMO, 12)


def test_something_else_is_there(forge: Forge) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        import threading

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"220 mail.example ESMTP\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        assert "no proper answer" in why(forge, Reply(), False, api=f"http://127.0.0.1:{server.getsockname()[1]}")
        thread.join()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_repository_that_was_renamed(forge: Forge, status: int) -> None:
    forge.pulls["org/demo/12"] = Reply(status, headers={"Location": "/repositories/7/pulls/12"})
    forge.paths["/repositories/7/pulls/12"] = pull(12)
    answer = api(forge).ask(DEMO, 12)
    assert answer is not None and answer.state == "open"
    assert forge.tokens == [f"Bearer {SECRET}"] * 2


def test_another_host_is_not_asked(forge: Forge) -> None:
    with serving(Forge({"org/demo/12": pull(12)})) as other:
        for url in (
            f"{other.url}/repos/org/demo/pulls/12",
            other.url.replace("http", "https"),
            "file:///etc/passwd",
            "//[",
        ):
            said = why(forge, Reply(302, headers={"Location": url}), False)
            assert "was not followed" in said
        assert not other.asked


def test_a_circle(forge: Forge) -> None:
    assert "status 302" in why(forge, Reply(302, headers={"Location": "/repos/org/demo/pulls/12"}), False)
    assert len(forge.asked) == 4


def test_a_token_is_not_sent_readable(forge: Forge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain HTTP to another machine; the name is made to lead here, through what the system has for a proxy."""
    monkeypatch.setenv("http_proxy", forge.url)
    forge.paths["http://forge.example/repos/org/demo/pulls/12"] = pull(12)
    answer = api(forge, api="http://forge.example").ask(DEMO, 12)
    assert answer is not None and answer.state == "open"
    assert forge.tokens == [""]


def test_this_machine_is_asked_without_a_proxy(forge: Forge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    forge.pulls["org/demo/12"] = pull(12)
    assert api(forge).ask(DEMO, 12) is not None


def test_a_forge_does_not_show_its_token() -> None:
    assert SECRET not in repr(asked.Forge("https://api.github.com", SECRET))


@pytest.mark.parametrize(
    ("api", "safe"),
    [
        ("https://api.github.com", True),
        ("http://api.github.com", False),
        ("http://127.0.0.1:8080", True),
        ("http://[::1]:80", True),
        ("http://localhost", True),
        ("http://127.0.0.1.example", False),
        ("", False),
    ],
)
def test_where_a_token_may_go(api: str, safe: bool) -> None:
    assert is_safe(api) is safe


@pytest.mark.parametrize(
    ("host", "api"),
    [
        ("github.com", "https://api.github.com"),
        ("git.example:8443", "https://git.example:8443/api/v3"),
        ("acme.ghe.com", "https://api.acme.ghe.com"),
    ],
)
def test_where_the_api_is(host: str, api: str) -> None:
    assert api_of(host) == api


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("WWW.GitHub.com", "org", "demo.git"), "org/demo"),
        (("git.example:8443", "org", "demo"), "git.example:8443/org/demo"),
        (("git.example", "..", "demo"), None),
        (("git.example", "org", "."), None),
        (("git.example", "org", "a b"), None),
        (("user@git.example", "org", "demo"), None),
        (("", "org", "demo"), None),
    ],
)
def test_repositories(words: tuple[str, str, str], place: str | None) -> None:
    found = place_of(*words)
    assert (None if found is None else str(found)) == place


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"state": "gone"},
        {"state": "merged"},
        {"state": "merged", "merged": 7},
        {"state": "open", "merged": "2026-11-20T08:30:00Z"},
    ],
)
def test_a_damaged_memory(data: object) -> None:
    assert remembered(data) is None


def test_a_memory_is_as_clean_as_an_answer() -> None:
    data = {"state": "closed", "closed": "x", "commit": "y", "base": "\x1b", "etag": '"a"\r\nX: 1'}
    assert remembered(data) == Answer("closed")
