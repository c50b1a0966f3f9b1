"""The directory of the pages: what differs in it from what the patches give, and writing that."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from patchforge.errors import InputError, Problem, Refused
from patchforge.series.files import read_file, replace_file
from patchforge.table.pages import Pages, mark


@dataclass(frozen=True, slots=True)
class PagesCheck:
    """The pages that differ or are missing, and those left of patches that are gone: file names, sorted."""

    pages: Pages
    stale: tuple[str, ...]
    left: tuple[str, ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """A problem per page, on the page."""
        fix = "run 'patchforge table' and commit the page"
        found = [("the page is not what the patch gives", name) for name in self.stale]
        found += [("the page of a patch that is not in the series", name) for name in self.left]
        return tuple(
            Problem(text, f"{self.pages.directory}/{name}", 1, fix, "pages", patch=_patch(self.pages, name))
            for text, name in found
        )


def _patch(pages: Pages, name: str) -> str | None:
    stem = name.removesuffix(".md")
    return stem if name in pages.texts and name != "README.md" else None


def check_pages(project: Path, pages: Pages) -> PagesCheck:
    """Compare byte for byte.

    Raises :class:`InputError` when the directory leads out of the project, or when a file that was not written by ``table``
    stands where a page belongs.
    """
    folder = project / pages.directory
    if not folder.resolve().is_relative_to(project.resolve()):
        raise InputError("the directory of the pages leads out of the project", reason="pages", file=pages.directory)
    stale, left, first = [], [], mark(pages.pin).encode() + b"\n"
    for name, text in pages.texts.items():
        label = f"{pages.directory}/{name}"
        have = read_file(folder / name, label, "pages")
        if have is not None and not have.startswith(first):
            raise InputError(
                "a file that 'patchforge table' did not write stands where a page belongs",
                reason="pages",
                file=label,
                line=1,
                hint="move it away, or ask for the pages in another directory",
            )
        if have != text.encode():
            stale.append(name)
    for path in folder.glob("*.md"):
        if path.name not in pages.texts and (read_file(path, path.name, "pages") or b"").startswith(first):
            left.append(path.name)
    return PagesCheck(pages, tuple(sorted(stale)), tuple(sorted(left)))


def write_pages(project: Path, check: PagesCheck) -> None:
    """Write what is stale and remove what is left.  Raises :class:`Refused`."""
    folder = project / check.pages.directory
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in check.stale:
            replace_file(folder / name, check.pages.texts[name].encode())
        for name in check.left:
            os.unlink(folder / name)
    except OSError as error:
        raise Refused(f"cannot write: {error.strerror}", reason="write", file=check.pages.directory) from error
