"""Helpers every test may use: bare series on small trees, applied through the same code as the command line."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from patchforge.engine.apply import Applied, ApplyOptions, apply_series
from patchforge.errors import InputError
from patchforge.series.project import load_quilt
from patchforge.tree.target import open_bare

Snapshot = dict[str, tuple[str, int, bytes]]


def snapshot(root: Path) -> Snapshot:
    """Every entry below ``root``: kind, permission bits, content or link target."""
    found: Snapshot = {}
    for folder, directories, files in os.walk(root):
        for name in [*directories, *files]:
            path = Path(folder) / name
            info = path.lstat()
            key = path.relative_to(root).as_posix()
            if stat.S_ISLNK(info.st_mode):
                found[key] = ("link", 0, os.readlink(path).encode())
            elif stat.S_ISREG(info.st_mode):
                found[key] = ("file", stat.S_IMODE(info.st_mode), path.read_bytes())
            else:
                found[key] = ("other" if not path.is_dir() else "directory", stat.S_IMODE(info.st_mode), b"")
    return found


@dataclass
class Bench:
    """A tree and a quilt directory beside it."""

    root: Path

    @property
    def tree(self) -> Path:
        return self.root / "tree"

    @property
    def patches(self) -> Path:
        return self.root / "patches"

    def write(self, **files: bytes) -> None:
        for name, data in files.items():
            self.put(name.replace("__", "/").replace("_py", ".py"), data)

    def put(self, path: str, data: bytes, mode: int = 0o644) -> None:
        target = self.tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(mode)

    def series(self, *patches: bytes) -> None:
        self.patches.mkdir(exist_ok=True)
        for number, data in enumerate(patches, 1):
            (self.patches / f"{number}.patch").write_bytes(data)
        (self.patches / "series").write_text("".join(f"{n}.patch\n" for n in range(1, len(patches) + 1)))

    def apply(
        self, *patches: bytes, exact: bool = False, dry_run: bool = False, strip: int = 1
    ) -> Applied | InputError:
        """Apply ``patches``; an input error is returned, not raised."""
        if patches:
            self.series(*patches)
        try:
            series = load_quilt(self.patches, strip)
            with open_bare(self.tree, write=not dry_run) as target:
                return apply_series(series, target, None, ApplyOptions(dry_run=dry_run, exact=exact))
        except InputError as error:
            return error


def failure_text(outcome: Applied | InputError) -> tuple[str, str]:
    """Reason and whole message of what failed."""
    if isinstance(outcome, InputError):
        return outcome.reason, str(outcome)
    for result in outcome.results:
        f = result.failure
        if f is not None:
            place = f"{f.patch_file}:{f.line} {f.file or ''} hunk {f.hunk or ''}"
            return f.reason, "\n".join([place, f.message, f.hint or "", *f.detail])
    for problem in outcome.problems:
        return problem.reason, f"{problem.where} {problem.message} {problem.hint}"
    return "", ""
