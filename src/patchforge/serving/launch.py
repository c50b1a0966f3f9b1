"""Finding the program that belongs to the verified tree, and becoming it."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from patchforge.errors import Refused, TreeError
from patchforge.serving.configuration import Configuration


def find_program(word: str, python: str | None, anywhere: bool, environ: Mapping[str, str]) -> str:
    """The absolute path of ``word``.

    ``python`` is the interpreter of the verified tree (default: this one), whose own programs lie beside it; only where the
    tree was named as a directory (``anywhere``) does the search path decide.  Raises :class:`Refused`.
    """
    path = environ.get("PATH", os.defpath)
    if anywhere:
        found = shutil.which(word, path=path)
        if found is None:
            raise Refused(f"there is no program '{word}' on the search path", reason="program")
        return os.path.abspath(found)
    exe = shutil.which(python, path=path) if python else sys.executable
    if not exe:
        raise Refused(f"there is no program '{python}'", reason="program")
    exe = os.path.abspath(exe)  # not resolved: the link is what makes it the environment's interpreter
    if word == "python":
        return exe
    beside = Path(exe).parent / word
    if os.access(beside, os.X_OK) and beside.is_file():
        return str(beside)
    raise Refused(
        f"there is no program '{word}' beside {exe}, the interpreter whose tree was verified",
        reason="program",
        hint="install the distribution into that environment, or name another one with --python",
    )


def check_path(environ: Mapping[str, str], root: str, site: Path) -> None:
    """Refuse an import path that would find ``root`` before the verified one in ``site``.  Raises :class:`TreeError`."""
    package = root.split("/", maxsplit=1)[0]
    for entry in environ.get("PYTHONPATH", "").split(os.pathsep) if environ.get("PYTHONPATH") else ():
        folder = Path(entry or ".").absolute()
        if folder == site.absolute():
            continue
        if (folder / package).exists() or (folder / f"{package}.py").exists():
            raise TreeError(
                f"PYTHONPATH names {folder}, whose {package} would be served instead of the verified one",
                reason="shadowed",
                hint="unset PYTHONPATH",
            )


def become(program: str, configuration: Configuration, environ: Mapping[str, str]) -> NoReturn:
    """Replace this process by the server, so that it gets every signal itself.  Raises :class:`Refused`."""
    environment = configuration.environment(environ)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and what is ignored stays so across exec
    try:
        os.execvpe(program, [program, *configuration.argv[1:]], environment)  # noqa: S606
    except OSError as error:
        raise Refused(f"{program} cannot be started: {error.strerror}", reason="program") from None
