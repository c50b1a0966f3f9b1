"""Running a command: from its report, or its error, to output and exit status."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

from patchforge.errors import ManyProblems, PatchforgeError, Problem
from patchforge.reports.model import Report


def cache_directory() -> Path:
    """Where fetched wheels and crash logs are kept: ``$XDG_CACHE_HOME/patchforge``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "patchforge"


def execute(command: str, format: str, quiet: bool, work: Callable[[], Report]) -> int:
    """Compute the report with ``work`` and print it; errors become reports too.  Returns the exit status."""
    try:
        report = work()
    except PatchforgeError as error:
        report = _error(command, error)
    except KeyboardInterrupt as error:
        return interrupted(error)
    except BrokenPipeError:
        raise
    except UnicodeEncodeError as error:
        if error.encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
            return _bug(command)
        report = _error(command, _no_utf8(error))
    except Exception:
        return _bug(command)
    try:
        print_report(report, format, quiet)
    except OSError as error:
        return _unprinted(report, error)
    return report.status


def interrupted(error: BaseException | None) -> int:
    """Say that a signal ended the command, and what became of its change; the exit status."""
    from patchforge.errors import Interrupted

    status, done = (error.status, error.done) if isinstance(error, Interrupted) else (130, "")
    print(f"interrupted{f': {done}' if done else ''}", file=sys.stderr)
    return status


def _no_utf8(error: UnicodeEncodeError) -> PatchforgeError:
    from patchforge.errors import InputError

    return InputError(
        f"this locale has no name for the file {error.object!r}: its encoding is {error.encoding}",
        reason="usage",
        hint="run it with a UTF-8 locale (LC_ALL=C.UTF-8), or with PYTHONUTF8=1",
    )


def _unprinted(report: Report, error: OSError) -> int:
    """The report could not be written; what it says has happened all the same."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter tries once more at its end
    with contextlib.suppress(OSError):
        print(f"error: cannot write the report: {error.strerror}", file=sys.stderr)
        print(
            f"  the command itself ended with status {report.status}; 'patchforge status' shows the tree",
            file=sys.stderr,
        )
    return 2


def print_report(report: Report, format: str, quiet: bool) -> None:
    """Print ``report``; a reader that went away is not an error."""
    try:
        if format == "json":
            from patchforge.reports.machine import render_json

            render_json(report, sys.stdout)
        elif format == "markdown":
            from patchforge.reports.markdown import render_markdown

            render_markdown(report, sys.stdout)
        elif format == "github":
            from patchforge.reports.machine import render_github
            from patchforge.reports.text import render

            render_github(report, sys.stdout)
            if not quiet:
                render(Report(report.command, report.status, blocks=report.blocks), sys.stdout, sys.stderr, quiet)
        else:
            from patchforge.reports.text import render

            render(report, sys.stdout, sys.stderr, quiet)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _error(command: str, error: PatchforgeError) -> Report:
    from patchforge.reports.checking import error_report

    if isinstance(error, ManyProblems):
        return error_report(command, error.problems, error.status)
    problem = Problem(error.message, error.file, error.line, error.hint, error.reason, patch=error.patch)
    return error_report(command, (problem,), error.status, error.shown)


def _bug(command: str) -> int:
    """Say that this is patchforge's fault, and where the log is."""
    import platform
    import traceback

    from patchforge import __version__

    text = (
        f"patchforge {__version__}, Python {platform.python_version()}, {platform.platform()}\ncommand: {command}\n\n"
    )
    text += traceback.format_exc()
    where = cache_directory() / f"crash-{os.getpid()}.log"
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(text)
        message = f"a bug in patchforge; please report it with {where}"
    except OSError:
        message = f"a bug in patchforge; please report it with this:\n{text}"
    print(f"error: {message}", file=sys.stderr)
    return 3
