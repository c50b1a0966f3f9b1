"""Unpack a pinned wheel into a directory: ``python unpack.py PROJECT DIRECTORY [FLAVOR]``.

Without a flavour it is the first of the pin, less its GPU libraries: the tests of the series import vLLM's Python on a CPU, and
600 MB of kernels would only take time.  A flavour that is named is unpacked as a whole.
"""

from __future__ import annotations

import compileall
import sys
import zipfile
from pathlib import Path

from patchforge.cli.session import cache_directory
from patchforge.cli.targets import suitable
from patchforge.releases.cache import fetch
from patchforge.series.project import find_project

LEFT_OUT = (".so", ".cubin", ".h", ".hpp", ".cuh", ".inl", ".cu")


def main(project: Path, directory: Path, name: str | None = None) -> None:
    pin = find_project(project).pin(None)
    flavor = pin.flavor(name)
    wheel = fetch(pin, flavor, suitable(flavor), cache_directory())
    whole = name is not None
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if whole or not entry.filename.endswith(LEFT_OUT):
                archive.extract(entry, directory)
    if whole:
        # Once for all the processes that will import it at the same time.
        compileall.compile_dir(directory, quiet=2, workers=2)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:4])
