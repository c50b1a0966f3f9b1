"""Changed Python files must compile: the one check of a result that needs no knowledge of what it is for."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable

from patchforge.engine.model import FileState, Plan
from patchforge.errors import Problem

_MANY = 512 * 1024
"""Bytes of Python from which a second process is worth its start."""
_MOST = 4

Source = tuple[str, bytes, FileState | None]
"""Path, new bytes, and the state before (``None``: a new file)."""


def syntax_problems(plan: Plan, vouched: set[tuple[str, str | None]], installed: bool) -> list[Problem]:
    """The syntax errors that a plan brings into Python files, in path order.

    ``vouched`` holds the paths with the SHA-256 that a lock has seen compile.  A file that did not compile before (a template,
    another Python's syntax) is nobody's fault; nor is a new one of a bare tree, which may be for another Python.
    """
    import hashlib

    sources: list[Source] = []
    for path in plan.changed:
        state = plan.after[path]
        if state is None or not path.endswith(".py"):
            continue
        before = plan.before[path]
        if before is None and not installed:
            continue
        data = state.data
        if not vouched or (path, hashlib.sha256(data).hexdigest()) not in vouched:
            sources.append((path, data, before))
    problems = []
    for path, message, line in sorted(_check(sources)):
        patch = _culprit(plan, path)
        by = f" after patch '{patch}'" if patch else ""
        problems.append(
            Problem(f"{path} would not compile{by}: {message}", path, line, "mend the patch", "syntax", patch=patch)
        )
    return problems


def _culprit(plan: Plan, path: str) -> str | None:
    """The last patch that made a file that compiled one that does not."""
    found, broken = None, False
    for result in plan.results:
        for step in result.steps:
            if step.path == path and step.after is not None:
                before, broken = broken, _syntax_error(path, step.after.data) is not None
                found = result.name if broken and not before else found
    return found


Found = tuple[str, str, int | None]


def _check(sources: list[Source]) -> list[Found]:
    """Compile every source, on several processors where there are many bytes."""
    workers = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, _MOST, len(sources))
    if workers < 2 or sum(len(data) for _, data, _ in sources) < _MANY:
        return list(_errors(sources))
    parts = [sources[n::workers] for n in range(workers)]
    children = [(part, *_start(part)) for part in parts[1:]]
    found = list(_errors(parts[0]))
    for part, child, pipe in children:
        with os.fdopen(pipe, "rb") as stream:
            answer = stream.read()
        _, status = os.waitpid(child, 0)
        try:
            if status != 0:
                raise ValueError
            found += [(path, message, line) for path, message, line in json.loads(answer)]
        except ValueError:  # whatever became of the child: its part is done here
            found += _errors(part)
    return found


def _start(part: list[Source]) -> tuple[int, int]:
    """Fork a child that compiles ``part``; return it, and the pipe its answer comes through."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    status = 1
    try:
        os.close(reading)
        with os.fdopen(writing, "wb") as stream:
            stream.write(json.dumps(list(_errors(part))).encode())
        status = 0
    finally:
        os._exit(status)


def _errors(sources: Iterable[Source]) -> Iterable[Found]:
    for path, data, before in sources:
        error = _syntax_error(path, data)
        if error is None or (before is not None and _syntax_error(path, before.data) is not None):
            continue
        yield path, str(getattr(error, "msg", None) or error), getattr(error, "lineno", None)


def _syntax_error(path: str, data: bytes) -> Exception | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, path, "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return error
    return None
