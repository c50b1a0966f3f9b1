"""Where signals other than the trees come in: history, probes, names that are gone, and a search that was not whole."""

from __future__ import annotations

from typing import Any

import pytest
from test_truth import FIXED, OLD, ROWS, SHIFT, diff

from patchforge.diff import parse_patch
from patchforge.engine.model import Entry, FileState
from patchforge.engine.plan import plan_series
from patchforge.evidence.model import Past, Verdict
from patchforge.evidence.past import numbers_of, past_of
from patchforge.evidence.scan import scan
from patchforge.evidence.units import Release
from patchforge.headers.probe import parse_probe
from patchforge.headers.upstream import parse_upstream
from patchforge.releases.history import Logged

CARRIED, BACK = "abc (Mend it (#12))", 'def (Revert "Mend it (#12)")'
SOLVED = next(row.new for row in ROWS if row.name == "solved another way")


def judged(new: dict[str, str], old: str = OLD, fixed: str = FIXED, **words: Any) -> Verdict:
    def reader(files: dict[str, str]):  # type: ignore[no-untyped-def]
        return lambda path: FileState.of(files[path].encode(), False) if path in files else None

    patch = parse_patch(diff(old, fixed), name="p")
    plan = plan_series([Entry(patch)], reader({"store.py": old}))
    assert plan.failure is None
    complete = words.pop("complete", True)
    release = Release(reader(new), lambda: list(new), lambda: complete)
    (found,) = scan([patch], plan, release, words.pop("probes", {}), **words)
    return found


def after(new: str, past: Past) -> tuple[str, str]:
    found = judged({"store.py": new}, past=lambda name, units: past)
    return found.verdict, found.confidence


def test_carried_then_reverted_is_said() -> None:
    assert after(OLD, Past(CARRIED, BACK)) == ("reverted", "high")
    assert BACK in judged({"store.py": OLD}, past=lambda name, units: Past(CARRIED, BACK)).reason
    assert after(SOLVED, Past(CARRIED, BACK)) == ("reverted", "medium")


def test_a_revert_vetoes_what_the_trees_call_landed() -> None:
    assert after(FIXED, Past(CARRIED)) == ("landed", "high")
    assert after(FIXED, Past(CARRIED, BACK)) == ("landed-changed", "low")


def test_later_commits_lower_and_are_named() -> None:
    assert after(FIXED, Past(CARRIED, "", ("fed (Touch it)",))) == ("landed", "medium")
    assert (
        "fed (Touch it)" in judged({"store.py": FIXED}, past=lambda n, u: Past(CARRIED, "", ("fed (Touch it)",))).reason
    )


def test_solved_another_way_is_superseded_where_history_says_so() -> None:
    assert after(SOLVED, Past()) == ("conflict", "medium")
    assert after(SOLVED, Past(CARRIED)) == ("superseded", "medium")


def test_a_number_in_the_log_lands_nothing() -> None:
    """The field's trap: the pull request is in the release, and its effect is not."""
    assert after(OLD, Past(CARRIED)) == ("keep", "high")
    assert CARRIED in judged({"store.py": OLD}, past=lambda name, units: Past(CARRIED)).reason


def test_history_is_asked_with_the_patchs_own_units() -> None:
    asked: list[tuple[str, list[tuple[str, str, int]]]] = []

    def past(name: str, units: Any) -> None:
        asked.append((name, [(u.name, u.new, u.last) for u in units]))

    judged({"store.py": SHIFT + FIXED}, past=past)
    assert asked == [("p", [("Store.read", "store.py:35", 41), ("Store.write", "store.py:46", 51)])]


class Told:
    """A history that says what it is told."""

    def __init__(self, carries: dict[int, Logged], reverted: dict[int, Logged]) -> None:
        self._carries, self._reverted = carries, reverted
        self.blamed: list[tuple[str, int, int]] = []

    def carries(self, number: int) -> Logged | None:
        return self._carries.get(number)

    def reverted(self, number: int) -> Logged | None:
        return self._reverted.get(number)

    def later(self, landed: Logged, path: str, first: int, last: int) -> list[Logged]:
        self.blamed.append((path, first, last))
        return [Logged("f" * 40, "Touch it", "")]


def test_the_past_of_several_references() -> None:
    mend, back = Logged("a" * 40, "Mend it (#12)", ""), Logged("d" * 40, "Revert (#12)", "")
    units = judged({"store.py": SHIFT + FIXED}).signals.units
    told = Told({12: mend}, {})
    past = past_of((11, 12), units, told)  # type: ignore[arg-type]
    assert past == Past("aaaaaaaaa (Mend it (#12))", "", ("fffffffff (Touch it)",))
    assert told.blamed == [("store.py", 35, 41), ("store.py", 46, 51)]
    told = Told({12: mend}, {12: back})
    assert past_of((12,), units, told) == Past("aaaaaaaaa (Mend it (#12))", "ddddddddd (Revert (#12))")  # type: ignore[arg-type]
    assert told.blamed == []
    assert past_of((99,), units, told) == Past()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        ("vllm #12 (open)", (12,)),
        ("vLLM #12 (merged), flash-attention #9 (open)", (12,)),
        ("https://git.example/org/vllm/pull/31", (31,)),
        ("https://git.example/org/other/pull/31", ()),
        ("none (found here)", ()),
    ],
)
def test_numbers_of_the_projects_own_log(value: str, numbers: tuple[int, ...]) -> None:
    assert numbers_of(parse_upstream(value), "vllm") == numbers


def test_a_probe_that_holds_on_the_release_makes_a_keep_worth_a_look() -> None:
    probes = {"p": parse_probe("source: store.py :: Store.keys contains sorted")}
    found = judged({"store.py": OLD}, probes=probes)
    assert (found.verdict, found.confidence) == ("landed-changed", "low")
    assert "its probe holds" in found.reason


def test_names_the_release_lost_lower_a_keep() -> None:
    old = OLD.replace("import os\n", "import os\n\n\ndef clamp(x):\n    return max(x, 0)\n")
    fixed = old.replace("        self.count += size\n", "        self.count += clamp(size)\n        os.sync()\n")
    found = judged({"store.py": old}, old, fixed)
    assert (found.verdict, found.confidence, found.signals.lost) == ("keep", "high", ())
    gone = old.replace("\n\ndef clamp(x):\n    return max(x, 0)\n", "")
    found = judged({"store.py": gone}, old, fixed)
    assert (found.verdict, found.confidence) == ("keep", "medium")
    assert found.signals.lost == ("store.py: clamp",)
    assert "no longer has what it uses: store.py: clamp" in found.reason
    gone = gone.replace("import os\n", "import json\n")
    assert judged({"store.py": gone}, old, fixed).signals.lost == ("store.py: clamp", "store.py: os")


def test_what_a_patch_brings_itself_is_not_lost() -> None:
    fixed = OLD.replace("import os\n", "import os\nimport zlib\n").replace("return sorted(", "return zlib.crc32(")
    assert judged({"store.py": OLD}, OLD, fixed).signals.lost == ()


def test_gone_and_not_searched_everywhere_is_unknown() -> None:
    less = OLD[: OLD.index("class Store")] + OLD[OLD.index("def unrelated") :]
    found = judged({"store.py": less}, complete=False)
    assert (found.verdict, found.confidence) == ("unknown", "low")
    assert "give the whole wheel" in found.reason
    assert judged({"store.py": less}).verdict == "conflict"
    assert judged({"store.py": SOLVED}, complete=False).verdict == "conflict"  # nothing is missing there
