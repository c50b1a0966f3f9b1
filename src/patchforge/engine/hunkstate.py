"""Which hunks of a patch stand in a tree: for the diagnosis of files that hash to nothing known."""

from __future__ import annotations

from patchforge.engine.search import Search
from patchforge.errors import InputError, TreeError
from patchforge.series.parsed import parse_file
from patchforge.series.project import Series
from patchforge.tree.target import Target


def hunks_present(
    series: Series, target: Target, name: str, only: set[str] | None
) -> tuple[tuple[str, ...], bool, bool]:
    """Say hunk by hunk whether patch ``name`` is in the files of ``only`` (``None``: all its files).

    Returns lines for people, whether any hunk is in, and whether every one is.
    """
    file = next((p for p in series.patches if p.name == name), None)
    if file is None:
        return (), False, False
    try:
        patch = parse_file(file)
    except InputError as error:
        return (f"the patch cannot be read: {error.message}",), False, False
    lines_out: list[str] = []
    present = total = 0
    for change in patch.files:
        if only is not None and change.path not in only and change.old_path not in only:
            continue
        try:
            found = target.read(change.path)
        except TreeError as error:
            return (error.message,), False, False
        if change.action == "delete":
            total += 1
            present += found is None
            lines_out.append(f"{change.path}: {'removed' if found is None else 'still there'}")
            continue
        lines = found.data.split(b"\n") if found is not None else [b""]
        search = Search(lines)
        inside: list[int] = []
        outside: list[int] = []
        untold: list[int] = []
        for number, hunk in enumerate(change.hunks, 1):
            back = hunk.reversed()
            if change.action != "create" and (not back.old or back.zero_context):
                untold.append(number)  # without context, neither its lines nor their absence prove anything
                continue
            there = found is not None and bool(search.candidates(back) or not back.old)
            (inside if there else outside).append(number)
        present += len(inside)
        total += len(change.hunks) - len(untold)
        count = len(change.hunks)
        if not count:
            continue
        if outside:
            word = f"hunk {', '.join(map(str, inside))} of {count} in" if inside else f"none of {count} hunks in"
        else:
            word = f"all {count} hunks in" if count > 1 else "its hunk in"
        if untold:
            word = (
                f"{'' if len(untold) == count else word + ', '}no context tells of hunk {', '.join(map(str, untold))}"
            )
        lines_out.append(f"{change.path}: {word}")
    return tuple(lines_out), present > 0, total > 0 and present == total
