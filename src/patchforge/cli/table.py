"""``patchforge table``, and the work it shares with ``check-table``."""

from __future__ import annotations

from pathlib import Path

from patchforge.cli import options as o


def command(
    pin: o.PinArgument = None,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Write the table of patches, and their pages."""
    return handle("table", pin, project, format, quiet)


def handle(command: str, pin: str | None, project: Path | None, format: str, quiet: bool) -> int:
    """Make the table, and the pages PATCHES.md asks for; write them, or compare them with what is there."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.cli import targets
        from patchforge.errors import InputError
        from patchforge.reports.checking import table_report
        from patchforge.table.check import check_table
        from patchforge.table.document import NAME, find_table, make_table
        from patchforge.table.folder import check_pages, write_pages
        from patchforge.table.pages import asked_for, make_pages

        series = targets.load(targets.Where(pin, project, quiet=quiet))
        assert series.project is not None
        table = make_table(series, targets.schema())
        path = series.project / NAME
        try:
            document = path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            raise InputError(
                "there is no PATCHES.md", reason="markers", file=NAME, hint="'patchforge init' makes one"
            ) from None
        except UnicodeDecodeError as error:
            raise InputError("the document is not UTF-8", reason="markers", file=NAME) from error
        place = find_table(document, table.pin)
        check = check_table(series, table, place)
        directory = asked_for(document, table.pin)
        pages = None
        if directory is not None:
            pages = check_pages(series.project, make_pages(series, targets.schema(), directory))
        write = command == "table" and bool(check.diff)
        if write:
            from patchforge.series.files import replace_file

            replace_file(path, (place.before + table.text + place.after).encode())
        if command == "table" and pages is not None:
            write_pages(series.project, pages)
        return table_report(check, command, write, pages)

    return execute(command, format, quiet, work)
