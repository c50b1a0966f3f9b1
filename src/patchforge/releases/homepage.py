"""Where a distribution is developed, as its own metadata says."""

from __future__ import annotations

import re
from collections.abc import Container
from urllib.parse import urlsplit

from patchforge.releases.forge import Place, place_of

# In the order they are believed: a homepage may be anything, a link to the source is the source.
_LABELS = (
    "source",
    "sourcecode",
    "repository",
    "github",
    "code",
    "homepage",
    "home",
    "issues",
    "bugtracker",
    "tracker",
)


def developed_at(metadata: bytes, hosts: Container[str]) -> Place | None:
    """The repository that ``METADATA`` names in Project-URL or Home-page, on one of ``hosts``; ``None`` where it names none."""
    from email.parser import BytesHeaderParser

    headers = BytesHeaderParser().parsebytes(metadata)
    found: dict[str, str] = {}
    for value in headers.get_all("Project-URL", []):
        label, _, url = str(value).partition(",")
        found.setdefault(re.sub(r"[\W_]+", "", label).lower(), url.strip())
    found.setdefault("homepage", str(headers.get("Home-page", "")).strip())
    for label in _LABELS:
        place = _repository(found.get(label, ""))
        if place is not None and place.host in hosts:
            return place
    return None


def _repository(url: str) -> Place | None:
    """The repository that a web address is in: what it names first and second."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    words = parts.path.strip("/").split("/")
    if parts.scheme not in ("https", "http") or len(words) < 2:
        return None
    return place_of(parts.netloc, words[0], words[1])
