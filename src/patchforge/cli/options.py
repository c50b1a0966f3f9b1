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
    markdown = "markdown"


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


class FailOn(enum.StrEnum):
    """Verdicts ``--fail-on`` may name."""

    landed = "landed"
    changed = "landed-changed"
    partial = "partial"
    reverted = "reverted"
    conflict = "conflict"
    superseded = "superseded"
    unknown = "unknown"


AgainstOption = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        metavar="RELEASE",
        help="A later release: a version, 'latest', a wheel, a directory, REPOSITORY@REF. May be given several times.",
    ),
]
AllNewerOption = Annotated[bool, typer.Option("--all-newer", help="Every release after the pin.")]
FailOnOption = Annotated[list[FailOn] | None, typer.Option("--fail-on", help="Exit with 1 on this verdict.")]
GitOption = Annotated[
    Path | None,
    typer.Option(
        "--git", metavar="DIR", help="A clone of the upstream project, with its tags: adds what its log says."
    ),
]
WholeOption = Annotated[
    bool,
    typer.Option("--whole-wheel", help="Fetch whole wheels, proved by their hash, instead of the few files needed."),
]


class Pulls(enum.StrEnum):
    """What ``--pulls`` may be."""

    ask = "ask"
    cached = "cached"


PullsOption = Annotated[
    Pulls | None,
    typer.Option(
        "--pulls",
        help="Add the state of the pull requests that the patches name: 'ask' the forge, or only what is 'cached'.",
    ),
]
RepositoryOption = Annotated[
    list[str] | None,
    typer.Option(
        "--repository",
        metavar="[PROJECT=][HOST/]OWNER/NAME",
        help="Where --pulls looks for the numbers of a project; default: what the pin's own metadata says.",
    ),
]
