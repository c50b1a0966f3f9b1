"""What a release holds, wherever it is: in a wheel, in a directory, in a git repository, or behind a URL."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from patchforge.tree.root import Root


@dataclass(frozen=True, slots=True)
class Cost:
    """What reading a release took: bytes brought over the network, and the size of the whole wheel."""

    fetched: int
    whole: int


class Contents(Protocol):
    """The files of one release below the package directory, by path."""

    def read(self, path: str) -> tuple[bytes, bool] | None:
        """Content and executable bit; ``None`` where there is no such file."""

    def paths(self) -> list[str]:
        """All paths, sorted."""

    def checksum(self, path: str) -> tuple[int, int] | None:
        """CRC-32 and size where they are known without reading the file."""

    def cost(self) -> Cost | None:
        """What it cost so far; ``None`` for what lies on this machine."""

    def close(self) -> None:
        """Let go of files and processes."""


class Opened:
    """A context manager that closes the contents."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def checksum(self, path: str) -> tuple[int, int] | None:
        """Not known."""
        return None

    def cost(self) -> Cost | None:
        """Nothing."""
        return None

    def close(self) -> None:
        """Nothing to let go of."""


class Packed(Opened):
    """A wheel file; ``root`` is the package directory in it."""

    def __init__(self, wheel: Path, root: str) -> None:
        self._archive = zipfile.ZipFile(wheel)
        self._prefix = f"{root}/"
        self._entries = {
            info.filename.removeprefix(self._prefix): info
            for info in self._archive.infolist()
            if info.filename.startswith(self._prefix) and not info.is_dir()
        }

    def read(self, path: str) -> tuple[bytes, bool] | None:
        """Content and executable bit; the archive's CRC-32 is checked."""
        info = self._entries.get(path)
        return None if info is None else (self._archive.read(info), bool((info.external_attr >> 16) & 0o100))

    def paths(self) -> list[str]:
        """All paths, sorted."""
        return sorted(self._entries)

    def checksum(self, path: str) -> tuple[int, int] | None:
        """As the archive's directory says."""
        info = self._entries.get(path)
        return None if info is None else (info.CRC, info.file_size)

    def close(self) -> None:
        """Close the file."""
        self._archive.close()


class Directory(Opened):
    """A directory."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._paths: list[str] | None = None
        self._root = Root(base)
        self._root.__enter__()

    def read(self, path: str) -> tuple[bytes, bool] | None:
        """Content and executable bit; links are not followed."""
        found = self._root.read(path)
        return None if found is None else (found.data, found.executable)

    def paths(self) -> list[str]:
        """All paths, sorted."""
        if self._paths is None:
            top = len(str(self._base)) + 1
            walked = ((folder[top:], names) for folder, _, names in os.walk(self._base))
            found = (f"{below}/{name}" if below else name for below, names in walked for name in names)
            self._paths = sorted(path for path in found if (self._base / path).is_file())
        return self._paths

    def close(self) -> None:
        """Close the directory."""
        self._root.__exit__(None, None, None)
