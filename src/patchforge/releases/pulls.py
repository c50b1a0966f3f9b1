"""Pull requests as a forge last described them: asked once each, and remembered with the date."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from patchforge.releases.forge import Answer, Forge, Place, UnansweredError, remembered, time_of

AGE = timedelta(days=1)
"""How long an answer is taken as it is: a merge is for ever, anything else may change."""
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request and what is known of it.

    ``asked``: when the forge said so, ISO 8601 in UTC; ``why``: why it was not asked, or gave no answer, this time.  ``said`` may
    be there all the same, from an earlier time.
    """

    place: Place
    number: int
    said: Answer | None = None
    asked: str = ""
    why: str = ""


Key = tuple[Place, int]


def look_up(
    wanted: Iterable[Key], forges: Mapping[str, Forge], cache: Path, now: datetime, ask: bool = True
) -> dict[Key, Pull]:
    """What is known of each pull request of ``wanted``; ``forges`` by host.  Without ``ask``, only what is in ``cache``.

    Nothing here fails: what cannot be known says why.  Each is asked for at most once, a few at a time, and a forge that
    refuses, or cannot be reached, is left alone.
    """
    found: dict[Key, Pull] = {}
    queue: deque[tuple[Pull, Forge]] = deque()
    for place, number in dict.fromkeys(wanted):
        forge = forges[place.host]
        known = _recall(_file(cache, place, number), forge.api, Pull(place, number))
        if known.said is not None and (not ask or _holds(known, now)):
            found[place, number] = known
        elif not ask:
            found[place, number] = Pull(place, number, why="not looked up: it is not in the cache")
        else:
            queue.append((known, forge))
    _Asking(queue, found, cache, now).run()
    return found


class _Asking:
    """The questions of one run.  Interrupted, it leaves threads that ask nothing more and hold nobody up."""

    def __init__(self, queue: deque[tuple[Pull, Forge]], found: dict[Key, Pull], cache: Path, now: datetime) -> None:
        self._queue, self._found, self._cache, self._now = queue, found, cache, now
        self._closed: dict[str, str] = {}
        self._failure: BaseException | None = None

    def run(self) -> None:
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(min(_AT_ONCE, len(self._queue)))]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        finally:
            self._queue.clear()
        if self._failure is not None:
            raise self._failure

    def _work(self) -> None:
        try:
            while (item := self._next()) is not None:
                self._found[item[0].place, item[0].number] = self._one(*item)
        except BaseException as error:  # a bug: it is the caller's, not a thread's that nobody looks at
            self._failure = error

    def _next(self) -> tuple[Pull, Forge] | None:
        try:
            return self._queue.popleft()
        except IndexError:
            return None

    def _one(self, known: Pull, forge: Forge) -> Pull:
        why = self._closed.get(forge.api)
        if why is None:
            try:
                etag = known.said.etag if known.said is not None else ""
                answer = forge.ask(known.place, known.number, etag) or known.said
            except UnansweredError as error:
                why = error.why
                if error.final:
                    self._closed[forge.api] = why
            else:
                pull = Pull(known.place, known.number, answer, f"{self._now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}")
                _keep(_file(self._cache, known.place, known.number), forge.api, pull)
                return pull
        return Pull(known.place, known.number, known.said, known.asked, why)


def _holds(pull: Pull, now: datetime) -> bool:
    """True when asking again would be of no use: it is merged, or the answer is fresh."""
    if pull.said is not None and pull.said.merged:
        return True
    return timedelta(0) <= now - datetime.fromisoformat(pull.asked) < AGE


def _file(cache: Path, place: Place, number: int) -> Path:
    """Where an answer is kept.  Forges do not tell upper from lower case in names."""
    folder = f"{place.host.replace(':', '+')}/{place.owner}/{place.name}".lower()
    return cache / "pulls" / folder / f"{number}.json"


def _recall(file: Path, api: str, pull: Pull) -> Pull:
    """``pull`` with what was kept of it; what is damaged, or was said at another address, is as if it were not there."""
    try:
        data = json.loads(file.read_bytes())
        if data["api"] != api:
            return pull
        said, asked = remembered(data["said"]), time_of(data["asked"])
        datetime.fromisoformat(asked)
        return pull if said is None else Pull(pull.place, pull.number, said, asked)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return pull


def _keep(file: Path, api: str, pull: Pull) -> None:
    """Keep an answer for the next time.  A cache that cannot be written is none: the answer is there all the same."""
    assert pull.said is not None
    data = {"api": api, "asked": pull.asked, "said": asdict(pull.said)}
    new = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps(data))
        os.replace(new, file)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink()
