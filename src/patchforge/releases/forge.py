"""A forge's REST API, as GitHub and GitHub Enterprise Server speak it: what it says of one pull request.

Nothing else is asked, and nothing here is asked unless a command line wants it.  Proxies and certificates are those of
Python's standard library: HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from patchforge import __version__

if TYPE_CHECKING:
    from email.message import Message
    from http.client import HTTPResponse
    from urllib.request import OpenerDirector

GITHUB = "github.com"
MAX_ANSWER = 2 << 20
"""Bytes of an answer that are read at most; a pull request with the longest description is a tenth of it."""

_NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,100}\Z")
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?(?::\d{1,5})?\Z")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")
_COMMIT = re.compile(r"[0-9a-f]{40,64}\Z")
_ETAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]{1,200}"\Z')
_REDIRECTS = 3
_DELETED = (404, 410)


@dataclass(frozen=True, slots=True)
class Place:
    """A repository on a forge."""

    host: str
    owner: str
    name: str

    def __str__(self) -> str:
        """As a person writes it: the host where it is not GitHub's."""
        return f"{self.owner}/{self.name}" if self.host == GITHUB else f"{self.host}/{self.owner}/{self.name}"


def place_of(host: str, owner: str, name: str) -> Place | None:
    """The repository, its host in lower case; ``None`` where one of the words cannot be part of its address."""
    host, name = host.lower().removeprefix("www."), name.removesuffix(".git")
    return Place(host, owner, name) if _HOST.match(host) and _NAME.match(owner) and _NAME.match(name) else None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a forge said of a pull request.

    ``state``: ``open``, ``closed`` (without a merge) or ``merged``; ``merged`` and ``closed`` are times, ISO 8601 in UTC, empty
    where it is not so; ``commit`` is the merge's, ``base`` the branch it is for; ``etag`` asks whether it has changed.
    """

    state: str
    merged: str = ""
    closed: str = ""
    commit: str = ""
    base: str = ""
    etag: str = ""


class UnansweredError(Exception):
    """The forge gave no answer, in words; ``final``: it will give none to another question either."""

    def __init__(self, why: str, final: bool = False) -> None:
        super().__init__(why)
        self.why, self.final = why, final


def api_of(host: str) -> str:
    """The API's address for repositories on ``host``."""
    return f"https://api.{host}" if host == GITHUB or host.endswith(".ghe.com") else f"https://{host}/api/v3"


def is_safe(api: str) -> bool:
    """True where what is sent to the address ``api`` can be read by nobody on the way: it is encrypted, or on this machine."""
    return urlsplit(api).scheme == "https" or _is_here(urlsplit(api).hostname or "")


def _is_here(host: str) -> bool:
    import ipaddress

    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Forge:
    """The API at the address ``api``; ``token`` goes there and nowhere else, and only where :func:`is_safe`.

    ``timeout``, in seconds, is for the connection, for each wait for data, and for the whole body of an answer.
    """

    api: str
    token: str = field(default="", repr=False)
    timeout: float = 10.0

    def ask(self, place: Place, number: int, etag: str = "") -> Answer | None:
        """What the forge says of pull request ``number``; ``None`` when nothing has changed since the answer with ``etag``.

        Raises :class:`UnansweredError`.
        """
        url = f"{self.api}/repos/{place.owner}/{place.name}/pulls/{number}"
        for _ in range(_REDIRECTS + 1):
            status, headers, body = self._get(url, etag)
            if status not in (301, 302, 307, 308):
                break
            # A repository that was renamed.  Another host is another party: it is not asked.
            url = _joined(url, headers.get("Location", ""))
            if _origin(url) != _origin(self.api):
                raise UnansweredError(f"the answer leads to another address ({_shown(url)}), which was not followed")
        if status == 304 and etag:
            return None
        if status != 200:
            raise self._refused(status, headers)
        return _answer(body, number, headers.get("ETag", ""))

    def _get(self, url: str, etag: str) -> tuple[int, Message, bytes]:
        """One request: status, headers, body."""
        from http.client import HTTPException
        from urllib.error import URLError
        from urllib.request import Request

        request = Request(  # noqa: S310
            url,
            headers={
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": "2022-11-28",
                "User-Agent": f"patchforge/{__version__}",
                **({"If-None-Match": etag} if _ETAG.match(etag) else {}),
            },
        )
        if self.token and is_safe(self.api):
            request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        try:
            with _opener(url).open(request, timeout=self.timeout) as answer:
                return answer.status, answer.headers, _body(answer, time.monotonic() + self.timeout)
        except TimeoutError:
            raise self._late() from None
        except URLError as error:
            if isinstance(error.reason, TimeoutError):
                raise self._late() from None
            reason = error.reason.strerror if isinstance(error.reason, OSError) else None
            raise UnansweredError(f"cannot reach {_shown(self.api)}: {reason or error.reason}", final=True) from None
        except (OSError, HTTPException, ValueError, OverflowError) as error:
            # The kind alone: the message could quote what was sent.
            raise UnansweredError(f"{_shown(self.api)} gave no proper answer ({type(error).__name__})") from None

    def _late(self) -> UnansweredError:
        return UnansweredError(f"{_shown(self.api)} gave no answer within {self.timeout:g} s", final=True)

    def _refused(self, status: int, headers: Message) -> UnansweredError:
        host = _shown(self.api)
        if status in _DELETED:
            return UnansweredError("there is no such pull request: an issue, private, or gone")
        if status in (403, 429):
            spent = headers.get("X-RateLimit-Remaining") == "0"
            wait = headers.get("Retry-After", "")
            if spent or wait or status == 429:
                until = _clock(headers.get("X-RateLimit-Reset", "")) if spent else ""
                more = f" until {until}" if until else f" for {int(wait)} s" if re.fullmatch(r"\d{1,6}", wait) else ""
                hint = "" if self.token else "; with a token it answers more"
                return UnansweredError(
                    f"{host} answers no more{more}: its limit of requests is reached{hint}", final=True
                )
        if status == 401:
            return UnansweredError(f"{host} does not take the token", final=True)
        return UnansweredError(f"{host} answered with status {status}", final=status >= 500)


def _opener(url: str) -> OpenerDirector:
    """HTTP and HTTPS alone, no redirects; this machine itself is asked without a proxy."""
    from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, UnknownHandler

    here = _is_here(urlsplit(url).hostname or "")
    opener = OpenerDirector()
    for handler in (ProxyHandler({} if here else None), HTTPHandler(), HTTPSHandler(), UnknownHandler()):
        opener.add_handler(handler)
    return opener


def _body(answer: HTTPResponse, deadline: float) -> bytes:
    """The body, as far as it is not too much and does not take too long."""
    parts, size = [], 0
    while part := answer.read1(1 << 16):
        size += len(part)
        if size > MAX_ANSWER:
            raise UnansweredError(f"the answer is larger than {MAX_ANSWER >> 20} MiB")
        if time.monotonic() > deadline:
            raise TimeoutError
        parts.append(part)
    return b"".join(parts)


def _answer(body: bytes, number: int, etag: str) -> Answer:
    """The answer in ``body``.  Raises :class:`UnansweredError` for anything but the pull request that was asked for."""
    wrong = UnansweredError("the answer is not about a pull request as GitHub writes it")
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise wrong from None
    if not isinstance(data, dict) or data.get("number") != number or data.get("state") not in ("open", "closed"):
        raise wrong
    merged, closed = time_of(data.get("merged_at")), time_of(data.get("closed_at"))
    if bool(data.get("merged", bool(merged))) != bool(merged) or (merged and data["state"] == "open"):
        raise wrong  # merged, and never: neither can be believed
    base = data.get("base")
    return Answer(
        "merged" if merged else data["state"],
        merged,
        closed,
        # Of an open one it is a merge tried out: it says nothing.
        _match(_COMMIT, data.get("merge_commit_sha")) if merged else "",
        branch(base.get("ref")) if isinstance(base, dict) else "",
        _match(_ETAG, etag),
    )


def branch(name: object) -> str:
    """The name of a branch; empty for what no terminal should be shown."""
    return name if isinstance(name, str) and 0 < len(name) <= 255 and name.isprintable() else ""


def remembered(data: object) -> Answer | None:
    """An answer as it was kept; ``None`` where it is damaged."""
    if not isinstance(data, dict) or data.get("state") not in ("open", "closed", "merged"):
        return None
    merged = time_of(data.get("merged"))
    if (data["state"] == "merged") != bool(merged):
        return None
    return Answer(
        data["state"],
        merged,
        time_of(data.get("closed")),
        _match(_COMMIT, data.get("commit")),
        branch(data.get("base")),
        _match(_ETAG, data.get("etag")),
    )


def time_of(value: object) -> str:
    """A time as forges write it, ISO 8601 in UTC; empty for anything else."""
    return _match(_TIME, value)


def _match(pattern: re.Pattern[str], value: object) -> str:
    return value if isinstance(value, str) and pattern.match(value) else ""


def _clock(seconds: str) -> str:
    try:
        return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return ""


def _joined(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError:
        return ""


def _origin(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return "", "", None


def _shown(url: str) -> str:
    """The host of an address, and nothing else of it: no credentials, no path."""
    _, host, port = _origin(url)
    plain = host if host.isascii() and host.isprintable() else ""
    return f"{plain}{f':{port}' if port not in (80, 443, None) else ''}" or "nowhere"
