"""Pull requests, asked once and remembered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forge import Forge, Reply, pull, serving
from patchforge.releases import forge as asked
from patchforge.releases.forge import Place
from patchforge.releases.pulls import Pull, look_up

DEMO = Place("github.com", "org", "demo")
NOW = datetime(2026, 12, 2, 12, 0, tzinfo=UTC)
SECRET = "ghp_0123456789secret"


@pytest.fixture
def forge() -> Iterator[Forge]:
    pulls = {"org/demo/1": pull(1), "org/demo/2": pull(2, "closed", merged="2026-11-20T08:30:00Z")}
    with serving(Forge(pulls)) as found:
        yield found


def known(forge: Forge, cache: Path, *numbers: int, now: datetime = NOW, ask: bool = True) -> list[Pull]:
    forges = {"github.com": asked.Forge(forge.url, SECRET, timeout=2)}
    found = look_up([(DEMO, number) for number in numbers], forges, cache, now, ask)
    assert list(found) and set(found) == {(DEMO, number) for number in numbers}
    return [found[DEMO, number] for number in numbers]


def state(found: Pull) -> str:
    return found.said.state if found.said is not None else ""


def test_each_is_asked_once_and_remembered(forge: Forge, tmp_path: Path) -> None:
    first = known(forge, tmp_path, 1, 2, 1)
    assert [state(p) for p in first] == ["open", "merged", "open"]
    assert {p.asked for p in first} == {"2026-12-02T12:00:00Z"}
    assert len(forge.asked) == 2
    assert known(forge, tmp_path, 1, 2, 1, now=NOW + timedelta(hours=23)) == first
    assert len(forge.asked) == 2
    assert not any(SECRET in p.read_text() for p in tmp_path.rglob("*") if p.is_file())
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["1.json", "2.json"]


def test_an_old_answer_is_asked_for_again_and_a_merge_is_for_ever(forge: Forge, tmp_path: Path) -> None:
    known(forge, tmp_path, 1, 2)
    forge.asked.clear()
    later = NOW + timedelta(days=40)
    still, merged = known(forge, tmp_path, 1, 2, now=later)
    assert (state(still), still.asked) == ("open", "2027-01-11T12:00:00Z")
    assert (state(merged), merged.asked) == ("merged", "2026-12-02T12:00:00Z")
    ((path, headers),) = forge.asked
    assert (path, headers["if-none-match"]) == ("/repos/org/demo/pulls/1", 'W/"1-open"')
    # What "nothing has changed" brought is fresh again.
    known(forge, tmp_path, 1, now=later + timedelta(hours=1))
    assert len(forge.asked) == 1
    forge.pulls["org/demo/1"] = pull(1, "closed")
    assert [state(p) for p in known(forge, tmp_path, 1, now=later + timedelta(days=2))] == ["closed"]


def test_an_answer_from_the_future_is_asked_for_again(forge: Forge, tmp_path: Path) -> None:
    known(forge, tmp_path, 1, now=NOW + timedelta(days=5))
    known(forge, tmp_path, 1)
    assert len(forge.asked) == 2


def test_without_asking(forge: Forge, tmp_path: Path) -> None:
    (nothing,) = known(forge, tmp_path, 1, ask=False)
    assert (nothing.said, nothing.why) == (None, "not looked up: it is not in the cache")
    assert not forge.asked
    known(forge, tmp_path, 1)
    (old,) = known(forge, tmp_path, 1, now=NOW + timedelta(days=400), ask=False)
    assert (state(old), old.asked, old.why) == ("open", "2026-12-02T12:00:00Z", "")
    assert len(forge.asked) == 1


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b"null",
        b"\xff",
        b'{"api": "API", "asked": "2026-12-02T12:00:00Z", "said": {"state": "merged"}}',
        b'{"api": "API", "asked": "2026-99-02T12:00:00Z", "said": {"state": "open"}}',
        b'{"api": "API", "asked": "\\u001b[2J", "said": {"state": "open"}}',
        b'{"api": "API", "said": {"state": "open"}}',
    ],
    ids=range(9),
)
def test_a_damaged_answer_is_asked_for_again(forge: Forge, tmp_path: Path, damage: bytes) -> None:
    (first,) = known(forge, tmp_path, 1)
    (file,) = tmp_path.rglob("1.json")
    file.write_bytes(damage.replace(b"API", forge.url.encode()))
    assert known(forge, tmp_path, 1) == [first]
    assert len(forge.asked) == 2
    assert json.loads(file.read_bytes())["said"]["state"] == "open"


def test_an_answer_of_another_address_is_not_taken(forge: Forge, tmp_path: Path) -> None:
    known(forge, tmp_path, 1)
    with serving(Forge({"org/demo/1": pull(1, "closed")})) as other:
        assert [state(p) for p in known(other, tmp_path, 1)] == ["closed"]
    assert [state(p) for p in known(forge, tmp_path, 1)] == ["open"]


def test_no_answer_leaves_what_was_known(forge: Forge, tmp_path: Path) -> None:
    known(forge, tmp_path, 1)
    forge.pulls["org/demo/1"] = Reply(500)
    old, never = known(forge, tmp_path, 1, 3, now=NOW + timedelta(days=2))
    assert (state(old), old.asked) == ("open", "2026-12-02T12:00:00Z")
    assert "status 500" in old.why
    assert never.said is None and never.why


def test_no_answer_is_not_remembered(forge: Forge, tmp_path: Path) -> None:
    (gone,) = known(forge, tmp_path, 9)
    assert gone.said is None and "gone" in gone.why
    forge.pulls["org/demo/9"] = pull(9)
    assert [state(p) for p in known(forge, tmp_path, 9)] == ["open"]


def test_a_forge_that_refuses_is_left_alone(forge: Forge, tmp_path: Path) -> None:
    forge.pulls |= {f"org/demo/{n}": Reply(429, headers={"Retry-After": "60"}) for n in range(100, 140)}
    found = known(forge, tmp_path, *range(100, 140))
    assert {"answers no more for 60 s" in p.why for p in found} == {True}
    assert len(forge.asked) <= 4


def test_a_few_at_a_time(forge: Forge, tmp_path: Path) -> None:
    forge.pulls |= {f"org/demo/{n}": replace(pull(n), slow=0.05) for n in range(100, 120)}
    assert {state(p) for p in known(forge, tmp_path, *range(100, 120))} == {"open"}
    assert len(forge.asked) == 20
    assert 1 < forge.most_at_once <= 4


def test_a_cache_that_cannot_be_written(forge: Forge, tmp_path: Path) -> None:
    (tmp_path / "pulls").write_bytes(b"in the way")
    assert [state(p) for p in known(forge, tmp_path, 1)] == ["open"]


def test_a_bug_is_not_lost_in_a_thread(forge: Forge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*words: object) -> None:
        raise IndexError("a bug")

    monkeypatch.setattr(asked.Forge, "ask", broken)
    with pytest.raises(IndexError, match="a bug"):
        known(forge, tmp_path, 1)


def test_nothing_to_look_up(tmp_path: Path) -> None:
    assert look_up([], {}, tmp_path, NOW) == {}
