"""The options several commands share."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer


class Format(enum.StrEnum):
    """How a report is printed."""

    text = "text"
    json = "json"
    github = "github"


FormatOption = Annotated[Format, typer.Option("--format", help="How to print the report.")]
ProjectOption = Annotated[
    Path | None, typer.Option("--project", metavar="DIR", help="The project; default: this directory or one above it.")
]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="Print only what is wrong.")]
PinArgument = Annotated[
    str | None,
    typer.Argument(metavar="[PIN]", help="Which pin, NAME-VERSION; default: the newest.", show_default=False),
]
TreeOption = Annotated[
    Path | None,
    typer.Option("--tree", metavar="DIR", help="A directory: site-packages, the package in it, or any tree."),
]
PythonOption = Annotated[
    str | None, typer.Option("--python", metavar="EXE", help="The environment of another Python interpreter.")
]
FetchOption = Annotated[
    bool, typer.Option("--fetch", help="Fetch the pinned wheel through pip and unpack it under build/.")
]
FlavorOption = Annotated[
    str | None,
    typer.Option("--flavor", metavar="NAME", help="Which of the pin's wheels --fetch gets; default: the first."),
]
AllowVersionOption = Annotated[
    bool, typer.Option("--allow-version", help="Take another version than the pin, for experiments.")
]
QuiltOption = Annotated[
    Path | None,
    typer.Option("--quilt", metavar="DIR", help="Bare mode: a directory with a 'series' file beside its patches."),
]
StripOption = Annotated[
    int | None,
    typer.Option("-p", "--strip", metavar="N", help="Strip level of a bare series; default: 1.", min=0, max=20),
]
