"""Building the typer application, and what happens when the command line itself is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, cast

import typer

from patchforge import __version__
from patchforge.errors import Problem

UsageError = cast(type[Exception], typer.BadParameter.__mro__[1])  # typer carries click's inside and does not name it


def _version(value: bool) -> None:
    if value:
        typer.echo(f"patchforge {__version__}")
        raise typer.Exit


def application(commands: dict[str, Callable[..., Any]]) -> typer.Typer:
    """The application with ``commands``."""
    app = typer.Typer(
        name="patchforge",
        help="Keep a series of patches against an installed Python distribution: apply it strictly, or not at all.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )

    @app.callback()
    def root(
        version: Annotated[
            bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
        ] = False,
    ) -> None:
        pass

    for name, function in commands.items():
        app.command(name)(function)
    return app


def invoke(commands: dict[str, Callable[..., Any]], argv: list[str]) -> int:
    """Run ``argv``; return the exit status."""
    from patchforge.cli.session import interrupted, print_report

    if not argv:
        application(commands)(args=["--help"], prog_name="patchforge", standalone_mode=False)
        return 2
    try:
        result = application(commands)(args=argv, prog_name="patchforge", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except UsageError as error:
        text = error.format_message()  # type: ignore[attr-defined]
        command = argv[0] if argv and argv[0] in commands else ""
        context = getattr(error, "ctx", None)
        hint = f"'{context.command_path} --help' shows what it takes" if context is not None else None
        from patchforge.reports.checking import error_report

        report = error_report(command, (Problem(text, hint=hint, reason="usage"),), 2)
        print_report(report, _format(argv), False)
        return 2
    except typer.Abort as abort:
        return interrupted(abort.__cause__)
    except typer.Exit as done:
        return done.exit_code
    except KeyboardInterrupt as interrupt:
        return interrupted(interrupt)


def _format(argv: list[str]) -> str:
    """The format asked for, as far as a command line that is wrong can say."""
    for word, following in zip(argv, [*argv[1:], ""], strict=True):
        value = word.partition("=")[2] if word.startswith("--format=") else following if word == "--format" else ""
        if value in ("json", "github", "markdown"):
            return value
    return "text"
