"""The series file after a change of its patches: comments stay with the patch they stand above."""

from __future__ import annotations

import re

_HEAD = re.compile(r"\ufeff?(?:(?:[ \t]*#[^\n]*\n)+(?:[ \t]*\n)+)?")


def rewritten(text: str, old: list[str], new: list[str], renamed: dict[str, str]) -> str:
    """``text`` with the lines of ``old`` names replaced by those of ``new``, in order.

    A patch's block is its line with the comments and blank lines above it; comments with a blank line below them that the
    file starts with are about all of it, and stay there.  A patch that is new goes below the one before it; the comments of
    one that is gone stay.  An unchanged order gives the same bytes.
    """
    if old == new:
        return text
    if not old:  # what stands there is about all of them
        return (text if not text or text.endswith("\n") else text + "\n") + "".join(f"{name}\n" for name in new)
    head = _HEAD.match(text)
    assert head is not None
    top = head[0]
    text = text[len(top) :]
    blocks: dict[str, list[str]] = {}
    pending: list[str] = []
    names = iter(old)
    for line in text.removesuffix("\n").split("\n") if text else []:  # as it was read: no other character ends a line
        pending.append(f"{line}\n")
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            blocks[next(names)] = pending
            pending = []
    tail = pending
    kept = [name for name in old if name in new or name in renamed]
    moved = [renamed.get(name, name) for name in kept] != [n for n in new if n in {renamed.get(k, k) for k in kept}]
    back = {value: key for key, value in renamed.items()}
    out: list[str] = []
    if moved:
        for name in new:
            out += _block(blocks, back.get(name, name), name)
        text = "".join(out + tail)
        return top + (text.lstrip("\n") if top.endswith("\n") else text)
    rest = list(old)
    for name in new:
        source = back.get(name, name)
        if source in blocks:
            while rest and rest[0] != source:  # those before it are gone; what people wrote above them is not
                out += blocks[rest.pop(0)][:-1]
            rest.pop(0)
        out += _block(blocks, source, name)
    for name in rest:
        out += blocks[name][:-1]
    return top + "".join(out + tail)


def _block(blocks: dict[str, list[str]], source: str, name: str) -> list[str]:
    if source not in blocks:
        return [f"{name}\n"]
    *above, line = blocks[source]
    return [*above, line.replace(source, name, 1) if source != name else line]
