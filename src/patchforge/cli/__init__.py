"""The command line: one thin module per command, imported only when it is the one asked for."""

from __future__ import annotations

import gc
import io
import os
import sys
from importlib import import_module

COMMANDS = {
    "apply": "apply",
    "verify": "verify",
    "status": "status",
    "revert": "revert",
    "lock": "lock",
    "lint": "lint",
    "table": "table",
    "check-table": "check_table",
    "init": "init",
    "checkout": "checkout",
    "refresh": "refresh",
    "new": "new",
    "import": "importing",
    "export": "exporting",
    "drop": "drop",
    "mv": "mv",
    "graph": "graph",
    "retire-scan": "retire_scan",
    "radar": "radar",
    "serve": "serve",
    "health": "health",
    "sbom": "sbom",
    "build-image": "build_image",
}
"""Command names in the order ``--help`` lists them, and the module of each."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    import signal

    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGHUP, _end)
    for stream in (sys.stdout, sys.stderr):  # a name that the terminal cannot show is no reason to fail
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # A command lives for a fraction of a second and makes next to no cycles: looking for them early costs a tenth of it.
    gc.set_threshold(100_000, 50, 50)
    try:
        status = run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt as interrupt:
        from patchforge.cli.session import interrupted

        status = interrupted(interrupt)
    sys.exit(status)


def _end(number: int, _: object) -> None:
    """Asked to end: as ^C does, so that what was begun is taken back."""
    from patchforge.errors import Interrupted

    raise Interrupted(number)


def run(argv: list[str]) -> int:
    """Run the command line; return the exit status."""
    from patchforge.cli.dispatch import invoke

    first = next((word for word in argv if not word.startswith("-")), None)
    alone = first in COMMANDS and "_PATCHFORGE_COMPLETE" not in os.environ
    names = [first] if alone and first is not None else list(COMMANDS)
    commands = {name: import_module(f"patchforge.cli.{COMMANDS[name]}").command for name in names}
    return invoke(commands, argv)
