"""The changes that the tests of this folder interrupt."""

from __future__ import annotations

import os
import py_compile
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from installed import FILES, FIRST, SECOND, Hook, Place, patch
from patchforge.engine.apply import ApplyOptions, apply_series
from patchforge.engine.revert import revert_bare
from patchforge.series.project import Series, load_quilt
from patchforge.tree.target import open_bare
from trees import snapshot

Action = Callable[[Any, Hook | None], object]

SMALL = {
    "one": patch(
        "one",
        "diff --git a/plain.txt b/plain.txt\n--- a/plain.txt\n+++ b/plain.txt\n@@ -1,2 +1,3 @@\n plain\n+new\n text\n"
        "diff --git a/a/b/c.txt b/a/b/c.txt\nnew file mode 100644\n--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1 @@\n+c\n",
    )
}
DEEP = {
    "one": patch(
        "one",
        "diff --git a/a/b/c/d.txt b/a/b/c/d.txt\nnew file mode 100644\n--- /dev/null\n+++ b/a/b/c/d.txt\n@@ -0,0 +1 @@\n+d\n",
    )
}


@dataclass
class Bare:
    """The demo's files as a bare tree, with a quilt directory beside it."""

    base: Path

    @property
    def site(self) -> Path:
        return self.base / "site"

    def install(self) -> None:
        for path, (data, mode) in FILES.items():
            target = self.site / path.removeprefix("demo/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(mode)

    def _series(self, patches: dict[str, bytes]) -> Series:
        directory = self.base / "patches"
        directory.mkdir(exist_ok=True)
        for name, data in patches.items():
            (directory / name).write_bytes(data)
        (directory / "series").write_text("".join(f"{name}\n" for name in patches))
        return load_quilt(directory)

    def apply(self, patches: dict[str, bytes], hook: Hook | None = None) -> object:
        series = self._series(patches)
        with open_bare(self.site, True, None, hook) as target:
            return apply_series(series, target, None, ApplyOptions())

    def revert(self, hook: Hook | None = None) -> object:
        with open_bare(self.site, True, None, hook) as target:
            return revert_bare(load_quilt(self.base / "patches"), target)

    def recover(self, hook: Hook | None = None) -> str | None:
        with open_bare(self.site, True, None, hook) as target:
            return target.recovered


def _apply(patches: dict[str, bytes]) -> Action:
    return lambda place, hook: place.apply(patches, hook)


def _revert(place: Any, hook: Hook | None) -> object:
    return place.revert(hook)


SHAPES: dict[str, tuple[type, list[dict[str, bytes]], Action]] = {
    "apply": (Place, [], _apply(FIRST)),
    "revert": (Place, [FIRST], _revert),
    "replace": (Place, [FIRST], _apply(SECOND)),
    "replace-back": (Place, [SECOND], _apply(FIRST)),
    "small": (Place, [], _apply(SMALL)),
    "deep": (Place, [], _apply(DEEP)),
    "deep-revert": (Place, [DEEP], _revert),
    "bare-apply": (Bare, [], _apply(FIRST)),
    "bare-revert": (Bare, [FIRST], _revert),
}


class Scene:
    """A shape made ready: the tree before it and after it, and copies of it to break."""

    def __init__(self, folder: Path, shape: str) -> None:
        self.folder = folder
        self.kind, before, self.action = SHAPES[shape]
        self.start = self.kind(folder / "start")
        self.start.install()
        if self.kind is Place:
            # Bytecode that stays, in a directory from which some goes.
            py_compile.compile(str(self.start.site / "demo/__init__.py"))
        for patches in before:
            self.start.apply(patches)
        self.old = snapshot(self.start.site)
        done = self.copy("done")
        self.steps: list[str] = []
        self.action(done, self.steps.append)
        self.new = snapshot(done.site)
        assert self.old != self.new
        self.decided = next(n for n, step in enumerate(self.steps) if step.startswith("committed"))

    def copy(self, name: str, source: Any = None) -> Any:
        base = self.folder / name
        shutil.rmtree(base, ignore_errors=True)
        shutil.copytree((source or self.start).base, base)
        return self.kind(base)


def killed(action: Callable[[Hook], object], step: int) -> None:
    """Run ``action`` in a child that kills itself at ``step``."""
    child = os.fork()
    if child == 0:
        try:
            count = 0

            def hook(_: str) -> None:
                nonlocal count
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                count += 1

            action(hook)
        finally:
            os._exit(7)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the child was not killed"
