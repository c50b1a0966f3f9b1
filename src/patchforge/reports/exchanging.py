"""The reports of ``import``, ``export`` and ``new``."""

from __future__ import annotations

from patchforge.errors import Problem
from patchforge.exchange.adopt import Adopted
from patchforge.exchange.take import Taken
from patchforge.reports.failures import detail_of, problem_of
from patchforge.reports.model import Block, Line, Report, plural


def import_report(
    taken: list[Taken], adopted: Adopted, more: tuple[Line, ...], without: tuple[tuple[str, str], ...] = ()
) -> Report:
    """What was taken in, what was left out, what is still to do; ``more`` explains why one does not apply, ``without`` are the
    patches of an adopted series that were left out, each with the reason."""
    blocks: list[Block] = []
    for item in taken:
        for subject in item.passed_over:
            blocks.append(Line(f"passed over, nothing for the package: {subject}", "dim"))
        blocks.append(Line(f"took in {item.name}", "good"))
        if item.left_out:
            blocks.append(Line(f"  left out, outside the package: {', '.join(item.left_out)}", "dim"))
        if item.missing:
            blocks.append(Line(f"  still to be written: {', '.join(item.missing)}", "warn"))
    blocks += [Line(f"left out {patch}: {reason}", "warn") for patch, reason in without]
    problems: tuple[Problem, ...] = ()
    if adopted.failure is not None:
        blocks += [*detail_of(adopted.failure), *more]
        problems = (problem_of(adopted.failure),)
    if adopted.listed and (adopted.failure or any(item.missing for item in taken)):
        blocks.append(Line("the series lists them; 'patchforge lint' says what is still to be done", "warn"))
    elif adopted.listed:
        blocks.append(Line("it is in the series, the lock and the table", "good"))
    else:
        why = "it does not apply" if adopted.failure else "its headers are not complete"
        blocks.append(Line(f"the series does not list it yet: {why}", "warn"))
        text = "mend the file and put its name into the series, or remove the file and import it again"
        blocks.append(Line(f"  {text}", "dim"))
    patches = tuple(
        {
            "name": item.name,
            "result": "listed" if adopted.listed else "unlisted",
            "left_out": list(item.left_out),
            **({"passed_over": list(item.passed_over)} if item.passed_over else {}),
            "missing": list(item.missing),
        }
        for item in taken
    )
    fields: dict[str, object] = {"files": [path for path, _ in adopted.files]}
    if without:
        fields["left_out"] = [{"patch": patch, "reason": reason} for patch, reason in without]
    return Report("import", 1 if adopted.failure else 0, patches, fields, tuple(blocks), problems)


def export_report(names: list[str], path: str, nobody: list[str]) -> Report:
    """What was handed out; ``nobody``: the patches that name no author."""
    note = f"no author is named in {', '.join(nobody)}: add 'Author:' or 'Signed-off-by:' before you send it upstream"
    patches = tuple({"name": name, "result": "exported"} for name in names)
    return Report(
        "export",
        0,
        patches,
        {"mbox": path},
        (Line(f"wrote {plural(len(names), 'patch', 'patches')} to {path}", "good"),),
        notes=(note,) if nobody else (),
    )


def new_report(name: str, directory: str) -> Report:
    """What to do next."""
    lines = (
        Line(f"wrote the message of patch {name}", "good"),
        Line(f"change the files in {directory}, then: git commit -a -e -F .git/patchforge-message", "dim"),
    )
    return Report("new", 0, ({"name": name, "result": "started"},), {}, lines)
