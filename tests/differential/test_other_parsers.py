"""What other parsers make of the same patches: unidiff for counts, dulwich for application, git for trailers."""

from __future__ import annotations

import io
import os
import random
import subprocess
from pathlib import Path

import pytest
from edits import GIT, edited, git_diff, make_tree
from hypothesis import given, settings
from hypothesis import strategies as st

from patchforge.diff import parse_patch
from patchforge.headers import parse_header

SCALE = int(os.environ.get("PATCHFORGE_FUZZ_SCALE", "1"))


@pytest.mark.parametrize("seed", range(40 * SCALE))
def test_unidiff_counts_the_same(tmp_path: Path, seed: int) -> None:
    """unidiff where its model fits: text in UTF-8, LF, plain names."""
    from unidiff import PatchSet

    chance = random.Random(seed)
    old, new = tmp_path / "old", tmp_path / "new"
    for root in (old, new):
        root.mkdir()
    for n in range(4):
        data = b"".join(b"line %d\n" % k for k in range(chance.choice([3, 20, 60])))
        (old / f"f{n}.txt").write_bytes(data)
        (new / f"f{n}.txt").write_bytes(edited(data, chance))
    patch = git_diff(old, new, tmp_path / "work", ["-U3", "--no-renames"])
    if not patch:
        return
    theirs = {f.path: (f.added, f.removed, len(f)) for f in PatchSet(io.StringIO(patch.decode()))}
    ours = {
        f.path: (sum(h.added for h in f.hunks), sum(h.removed for h in f.hunks), len(f.hunks))
        for f in parse_patch(patch).files
    }
    assert ours == theirs


@pytest.mark.parametrize("seed", range(20 * SCALE))
def test_dulwich_writes_what_we_read(tmp_path: Path, seed: int) -> None:
    """A diff that dulwich made is applied to the bytes it was made for."""
    from dulwich.objects import Blob
    from dulwich.patch import write_object_diff

    from patchforge.engine.model import Entry, FileState
    from patchforge.engine.plan import plan_series

    chance = random.Random(seed)
    make_tree(tmp_path / "old", chance)
    for path in sorted((tmp_path / "old").rglob("*.txt")):
        old = path.read_bytes()
        new = edited(old, chance)
        if old == new or b"\r" in old or b"\0" in old or not old or not new:
            continue
        out = io.BytesIO()

        class Store(dict):  # type: ignore[type-arg]
            pass

        store = Store()
        ids = []
        for data in (old, new):
            blob = Blob.from_string(data)
            store[blob.id] = blob
            ids.append(blob.id)
        write_object_diff(out, store, (b"f.txt", 0o100644, ids[0]), (b"f.txt", 0o100644, ids[1]))
        if not out.getvalue():
            continue
        patch = parse_patch(out.getvalue())
        plan = plan_series([Entry(patch)], lambda _, old=old: FileState.of(old, False))
        assert plan.failure is None, plan.failure
        assert plan.after["f.txt"] is not None
        assert plan.after["f.txt"].data == new


KEYS = st.sampled_from(["Kind", "What", "Upstream", "Cut-against", "Retires-when", "Tests", "Env"])
VALUES = st.from_regex(r"[A-Za-z0-9#(),.:/ -]{1,40}", fullmatch=True).map(str.strip).filter(bool)


@settings(max_examples=30 * SCALE, deadline=None)
@given(st.dictionaries(KEYS, VALUES, min_size=2, max_size=6), st.booleans())
def test_git_reads_the_same_trailers(fields: dict[str, str], fold: bool) -> None:
    lines = []
    for key, value in fields.items():
        words = value.split(" ")
        if fold and len(words) > 1:
            lines += [f"{key}: {words[0]}", *(f"  {word}" for word in words[1:] if word)]
        else:
            lines.append(f"{key}: {value}")
    text = "A subject\n\nSome prose.\n\n" + "\n".join(lines) + "\n"
    done = subprocess.run(
        ["git", "interpret-trailers", "--parse"],
        input=text.encode(),
        capture_output=True,
        env={**os.environ, **GIT},
        check=True,
    )
    theirs = dict(line.split(": ", 1) for line in done.stdout.decode().splitlines())
    header = parse_header(text.encode(), "x")
    ours = {field.key: field.value for field in header.fields}
    squeeze = lambda d: {k: " ".join(v.split()) for k, v in d.items()}  # noqa: E731
    assert squeeze(ours) == squeeze(theirs)
    assert header.preamble == "A subject\n\nSome prose."
