"""``patchforge check-table``."""

from __future__ import annotations

from patchforge.cli import options as o


def command(
    pin: o.PinArgument = None,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Check that table, and print the difference."""
    from patchforge.cli.table import handle

    return handle("check-table", pin, project, format, quiet)
