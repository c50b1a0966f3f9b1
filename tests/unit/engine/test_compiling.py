from __future__ import annotations

import os

import pytest

from patchforge.engine import compiling
from patchforge.engine.compiling import syntax_problems
from patchforge.engine.model import FileState, Plan

GOOD, BAD = b"x = 1\n", b"x = = 1\n"


def plan(**files: tuple[bytes | None, bytes | None]) -> Plan:
    def state(data: bytes | None) -> FileState | None:
        return None if data is None else FileState.of(data, False)

    paths = {name.replace("_", "."): pair for name, pair in files.items()}
    return Plan((), {p: state(b) for p, (b, _) in paths.items()}, {p: state(a) for p, (_, a) in paths.items()})


@pytest.mark.parametrize(
    ("before", "after", "installed", "problems"),
    [
        (GOOD, BAD, True, 1),
        (GOOD, BAD, False, 1),
        (GOOD, b"x = 2\n", True, 0),
        (BAD, b"x = = 2\n", True, 0),
        (None, BAD, True, 1),
        (None, BAD, False, 0),
        (GOOD, None, True, 0),
        (GOOD, b"return 1\n", True, 1),
        (GOOD, b"x = 1\n\0", True, 1),
        (GOOD, b"# coding: nonsense\n", True, 1),
    ],
)
def test_what_is_held_against_a_patch(
    before: bytes | None, after: bytes | None, installed: bool, problems: int
) -> None:
    assert len(syntax_problems(plan(a_py=(before, after)), set(), installed)) == problems


def test_only_python_is_compiled() -> None:
    assert syntax_problems(plan(a_txt=(GOOD, BAD), b_pyi=(GOOD, BAD)), set(), True) == []


def test_what_the_lock_has_seen_is_not_compiled_again() -> None:
    import hashlib

    digest = hashlib.sha256(BAD).hexdigest()
    assert syntax_problems(plan(a_py=(GOOD, BAD)), {("a.py", digest)}, True) == []
    assert syntax_problems(plan(a_py=(GOOD, BAD)), {("b.py", digest)}, True) != []


@pytest.mark.parametrize("broken", [False, True])
def test_several_processors_find_the_same(monkeypatch: pytest.MonkeyPatch, broken: bool) -> None:
    files = {f"m{n}_py": (GOOD, BAD if n % 7 == 3 else b"y = %d\n" % n) for n in range(60)}
    alone = syntax_problems(plan(**files), set(), True)
    assert len(alone) == 9
    monkeypatch.setattr(compiling, "_MANY", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    if broken:  # a child that dies without an answer
        real = os.fork

        def fork() -> int:
            child = real()
            if child == 0:
                os._exit(9)
            return child

        monkeypatch.setattr(os, "fork", fork)
    assert syntax_problems(plan(**files), set(), True) == alone
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
