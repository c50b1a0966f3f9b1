"""Unpack the pinned wheel, without its GPU libraries, into a directory: ``python unpack.py PROJECT DIRECTORY``.

The tests of the series import vLLM's Python on a CPU; 600 MB of kernels would only take time.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

from patchforge.cli.session import cache_directory
from patchforge.cli.targets import suitable
from patchforge.releases.cache import fetch
from patchforge.series.project import find_project

LEFT_OUT = (".so", ".cubin", ".h", ".hpp", ".cuh", ".inl", ".cu")


def main(project: Path, directory: Path) -> None:
    pin = find_project(project).pin(None)
    flavor = pin.flavor(None)
    wheel = fetch(pin, flavor, suitable(flavor), cache_directory())
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if not entry.filename.endswith(LEFT_OUT):
                archive.extract(entry, directory)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
