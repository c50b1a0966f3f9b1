"""``patchforge health``."""

from __future__ import annotations

from typing import Annotated

import typer

from patchforge.cli import options as o


def command(
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="Where the server listens; default: $HOST, as for serve."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", help="Its port; default: $PORT, as for serve.", min=1, max=65535),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="How long to wait.", min=0.1, max=600)
    ] = 5.0,
    format: o.FormatOption = o.Format.text,
    quiet: o.QuietOption = False,
) -> int:
    """Ask the running server whether it is well."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.cli.serving import health

        return health(host, port, timeout)

    return execute("health", format, quiet, work)
