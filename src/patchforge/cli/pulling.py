"""What ``--pulls`` asks: which repository, at which address, with which token."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import SplitResult, urlsplit

from patchforge.cli.options import Pulls
from patchforge.cli.session import cache_directory
from patchforge.errors import InputError
from patchforge.evidence.model import Said
from patchforge.evidence.pulls import Places, said_of
from patchforge.headers.upstream import parse_upstream
from patchforge.releases.forge import GITHUB, Forge, Place, api_of, is_safe, place_of
from patchforge.releases.homepage import developed_at
from patchforge.releases.pulls import look_up
from patchforge.series.parsed import ParsedPatch
from patchforge.series.pin import normalize
from patchforge.series.project import Series
from patchforge.tree.target import Target

API, TOKEN = "PATCHFORGE_GITHUB_API", "PATCHFORGE_GITHUB_TOKEN"
"""Variables: another address of GitHub's API, and the token for wherever that is."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The options and the environment, checked: repositories by project (``""``: the pin's own), and forges by host."""

    when: Pulls
    repositories: Mapping[str, Place]
    forges: Mapping[str, Forge]

    def said(
        self, parsed: Iterable[ParsedPatch], series: Series, target: Target, show: Callable[[str, int, int], None]
    ) -> dict[str, tuple[Said, ...]]:
        """What is known of the references of each patch, by its name; the forges are asked here."""
        assert series.pin is not None
        own = normalize(series.pin.distribution)
        by_name = {name or own: place for name, place in self.repositories.items()}
        if own not in by_name:
            place = developed_at(_metadata(target), self.forges)
            by_name |= {own: place} if place is not None else {}
        places = Places(by_name, frozenset(self.forges))
        references = {
            item.file.name: parse_upstream(item.header.get("Upstream")) for item in parsed if item.header is not None
        }
        found = [places.find(reference) for those in references.values() for reference in those]
        keys = [key for key in found if not isinstance(key, str)]
        if keys:
            show(f"looking up {len(set(keys))} pull requests", 0, 0)
        known = look_up(keys, self.forges, cache_directory(), datetime.now(UTC), self.when is Pulls.ask)
        return {name: said_of(those, places, known) for name, those in references.items()}


def asked(when: Pulls | None, repositories: Iterable[str] | None, series: Series) -> Asked | None:
    """What the options want; ``None`` without ``--pulls``.  Raises :class:`InputError`."""
    if when is None:
        if repositories:
            raise InputError("--repository says where --pulls looks: give both", reason="usage")
        return None
    if series.pin is None:
        raise InputError("--pulls is for a project: a bare series has no Upstream headers", reason="usage")
    named = dict(map(_repository, repositories or ()))
    hosts = dict.fromkeys([GITHUB, _enterprise() or GITHUB, *(place.host for place in named.values())])
    return Asked(when, named, {host: _forge(host) for host in hosts})


def _repository(text: str) -> tuple[str, Place]:
    """``[PROJECT=][HOST/]OWNER/NAME``, or its web address: the project, normalized, and the repository."""
    project, equals, address = text.rpartition("=")
    words = re.sub(r"\Ahttps?://", "", address).strip("/").split("/")
    words = [GITHUB, *words] if len(words) == 2 else words
    place = place_of(*words) if len(words) == 3 else None
    if place is None or (equals and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", project)):
        raise InputError(f"--repository '{text}' is not [PROJECT=][HOST/]OWNER/NAME", reason="usage")
    return normalize(project), place


def _enterprise() -> str:
    """The host of an enterprise's own GitHub, as GitHub's command line finds it; empty where there is none."""
    host = os.environ.get("GH_HOST", "").strip()
    place = place_of(host, "owner", "name") if host else None
    if host and place is None:
        raise InputError(f"GH_HOST='{host}' is not a host", reason="usage")
    return place.host if place is not None else ""


def _forge(host: str) -> Forge:
    api = os.environ.get(API, "").strip().rstrip("/") if host == GITHUB else ""
    if not api:
        return Forge(api_of(host), _token_for(host))
    parts = _parts(api)
    if parts is None or parts.scheme not in ("https", "http") or "@" in parts.netloc or parts.query or parts.fragment:
        raise InputError(f"{API} is not an address such as https://api.github.com", reason="usage")
    token = _variable(TOKEN)  # the other tokens belong to GitHub, not to whatever this address is
    if token and not is_safe(api):
        raise InputError(f"{TOKEN} would travel readable to {parts.hostname}: {API} has to be https", reason="usage")
    return Forge(api, token)


def _token_for(host: str) -> str:
    """The token that the environment has for ``host``: a token belongs to one host, and no other is shown it."""
    tenant = _enterprise()
    if host == GITHUB or host.endswith(".ghe.com"):
        # Where GH_HOST names a tenant of ghe.com, GH_TOKEN is the tenant's.
        mine = _variable("GH_TOKEN") if host == (tenant if tenant.endswith(".ghe.com") else GITHUB) else ""
    else:
        mine = _variable("GH_ENTERPRISE_TOKEN") or _variable("GITHUB_ENTERPRISE_TOKEN") if host == tenant else ""
    # The job's own token, where the job runs: on GitHub, or on the server that a runner names.
    named = os.environ.get("GITHUB_SERVER_URL", "")
    server = _parts(named) if named else urlsplit(f"https://{GITHUB}")
    job = _variable("GITHUB_TOKEN") if server is not None and host == server.netloc.lower() else ""
    return (_variable(TOKEN) if host == GITHUB else "") or mine or job


def _parts(url: str) -> SplitResult | None:
    """The parts of an address; ``None`` where it is none, or names no host."""
    try:
        parts = urlsplit(url)
        return parts if parts.hostname and parts.port != 0 else None  # a port that is no number raises
    except ValueError:
        return None


def _variable(name: str) -> str:
    """A token from the environment.  Raises :class:`InputError`, which does not show it."""
    value = os.environ.get(name, "").strip()
    if not re.fullmatch(r"[\x21-\x7e]*", value):
        raise InputError(f"{name} has characters that no token has", reason="usage")
    return value


def _metadata(target: Target) -> bytes:
    found = target.root.read(f"{target.info}/METADATA") if target.info else None
    return b"" if found is None else found.data
