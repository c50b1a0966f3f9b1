"""Dropping and renaming a patch of the project, with everything that speaks of it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

from patchforge.branch.back import patch_path
from patchforge.branch.derived import Files, Unfit, keep, lock_and_table
from patchforge.branch.order import rewritten
from patchforge.engine.model import Reader
from patchforge.errors import InputError
from patchforge.headers import parse_retires
from patchforge.series.names import check_name, free_name
from patchforge.series.parsed import Schema, header_of
from patchforge.series.project import PatchFile, Series


def dropped(series: Series, name: str, read: Reader, schema: Schema) -> Files:
    """The files of the project without patch ``name``.  Raises :class:`InputError` when another one needs it."""
    try:
        return without(series, [find(series, name)], read, schema)
    except Unfit as error:
        error.message = f"without '{name.removesuffix('.patch')}', {error.message}"
        error.hint = (
            f"check the series out, take the commit out with 'git rebase -i pristine', resolve what conflicts, and refresh; "
            f"'patchforge graph --impact {name.removesuffix('.patch')}' says what else stands on it"
        )
        raise


def without(series: Series, gone: list[PatchFile], read: Reader, schema: Schema) -> Files:
    """The files of the project without the patches ``gone``.  Raises :class:`InputError` when one that stays needs them."""
    left = tuple(p for p in series.patches if p not in gone)
    for file in left:
        header = header_of(file)
        for needed in gone:
            if needed.name in header.names("Requires"):
                raise InputError(
                    f"'{file.name}' requires '{needed.name}'",
                    reason="required",
                    file=file.label,
                    line=header.line_of("Requires"),
                    hint=f"drop '{file.name}' first",
                )
            if needed.name in header.names("Supersedes"):
                raise InputError(
                    f"'{file.name}' says that it supersedes '{needed.name}'",
                    reason="required",
                    file=file.label,
                    line=header.line_of("Supersedes"),
                    hint=f"take '{needed.name}' out of its header Supersedes, then drop it again",
                )
    return _files(series, left, {}, read, schema)


def renamed(series: Series, old: str, new: str, read: Reader, schema: Schema) -> Files:
    """The files of the project with patch ``old`` called ``new``, in the headers of others too."""
    was = find(series, old)
    new = check_name(new.removesuffix(".patch"))
    if any(p.name == new for p in series.patches) or patch_path(series, new).exists():
        raise InputError(f"the project has a patch '{new}'", reason="exists")
    free_name(new, (p.name for p in series.patches if p is not was))
    made = []
    for file in series.patches:
        data = _mentioning(file, was.name, new)
        name = new if file is was else file.name
        path = patch_path(series, name)
        assert series.project is not None
        label = path.relative_to(series.project).as_posix()
        made.append(PatchFile(name, label, path, file.strip, data, hashlib.sha256(data).hexdigest()))
    return _files(series, tuple(made), {was.name: new}, read, schema)


def find(series: Series, name: str) -> PatchFile:
    """The patch called ``name``.  Raises :class:`InputError`."""
    wanted = name.removesuffix(".patch")
    for file in series.patches:
        if file.name == wanted:
            return file
    raise InputError(f"no patch '{name}' in the series", reason="usage")


_SPEAKS = re.compile(rb"^(Requires|Supersedes|Retires-when):.*(?:\n[ \t].*)*", re.MULTILINE)
_PROSE = re.compile(rb"\s--\s")


def _mentioning(file: PatchFile, old: str, new: str) -> bytes:
    """The bytes of a patch with ``old`` replaced by ``new`` in the headers that name patches."""
    end = file.data.find(b"\ndiff --git ")
    head, rest = (file.data, b"") if end < 0 else (file.data[:end], file.data[end:])
    name = re.escape(old.encode()) + rb"(?![A-Za-z0-9._+-])"
    word = re.compile(rb"(?<![A-Za-z0-9._+-])" + name)
    condition = re.compile(rb"\b((?:with|probe)\s+)" + name)

    def said(match: re.Match[bytes]) -> bytes:
        text = match.group()
        if match[1] != b"Retires-when":
            return word.sub(new.encode(), text)
        prose = _PROSE.search(text)  # what follows is for people, and so is a value that is no condition
        end = prose.start() if prose else len(text)
        value = " ".join(text[:end].partition(b":")[2].decode("utf-8", "replace").split())
        if parse_retires(value).kind == "prose":
            return text
        return condition.sub(rb"\g<1>" + new.encode(), text[:end]) + text[end:]

    return _SPEAKS.sub(said, head) + rest


def _files(
    series: Series, patches: tuple[PatchFile, ...], names: dict[str, str], read: Reader, schema: Schema
) -> Files:
    assert series.project is not None and series.pin is not None
    root = series.project
    files: Files = {}
    for patch in patches:
        keep(files, root, patch.label, patch.data)
    kept = {p.label for p in patches}
    for patch in series.patches:
        if patch.label not in kept:
            files[patch.label] = None
    order = root / "series" / series.pin.id / "series"
    old, new = ([f"{p.name}.patch" for p in group] for group in (series.patches, patches))
    renames = {f"{a}.patch": f"{b}.patch" for a, b in names.items()}
    text = rewritten(order.read_bytes().decode("utf-8"), old, new, renames)
    keep(files, root, order.relative_to(root).as_posix(), text.encode())
    _, problems = lock_and_table(files, replace(series, patches=patches, lock=None), read, schema)
    if problems:
        raise InputError(problems[0].message, reason=problems[0].reason, file=problems[0].file)
    return files
