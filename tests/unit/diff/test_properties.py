"""Properties of parser and planner on arbitrary input."""

from __future__ import annotations

import difflib

from hypothesis import example, given, settings
from hypothesis import strategies as st

from patchforge.diff import parse_patch
from patchforge.diff.names import BadName, quote, safe_path, unquote
from patchforge.engine.model import Entry, FileState
from patchforge.engine.plan import plan_series
from patchforge.engine.reverse import reversed_patch
from patchforge.errors import MalformedPatch

LINE = st.binary(max_size=6).map(lambda b: b.replace(b"\n", b"."))
LINES = st.lists(st.one_of(st.sampled_from([b"a", b"b", b"", b"    x", b"}"]), LINE), max_size=30)
PIECES = st.lists(
    st.sampled_from(
        [
            *(
                b"--- a/f\n",
                b"+++ b/f\n",
                b"diff --git a/f b/f\n",
                b"@@ -1 +1 @@\n",
                b"@@ -1,2 +1,3 @@ x\n",
                b" a\n",
                b"-a\n",
                b"+b\n",
            ),
            *(
                b"\\ No newline at end of file\n",
                b"-- \n",
                b"new file mode 100644\n",
                b"rename from f\n",
                b"rename to g\n",
                b"index 1111..2222\n",
            ),
            *(
                b"old mode 100644\n",
                b"new mode 100755\n",
                b"--- /dev/null\n",
                b"GIT binary patch\n",
                b"\r\n",
                b'--- "a/\\303\n',
                b"\x00\n",
            ),
        ]
    ),
    max_size=20,
)


def render(old: list[bytes], new: list[bytes], context: int) -> bytes:
    """A unified diff of two line lists, by the standard library."""
    text = lambda lines: [line.decode("latin-1") + "\n" for line in lines]  # noqa: E731
    out = difflib.unified_diff(text(old), text(new), "a/f", "b/f", n=context)
    return "".join(out).encode("latin-1")


def plan(patch: bytes, data: bytes) -> object:
    return plan_series([Entry(parse_patch(patch))], lambda path: FileState.of(data, False) if path == "f" else None)


@settings(max_examples=300, deadline=None)
@given(LINES.filter(bool), LINES.filter(bool), st.integers(1, 4))
def test_a_diff_takes_one_file_to_the_other_and_back(old: list[bytes], new: list[bytes], context: int) -> None:
    before, after = (b"".join(line + b"\n" for line in lines) for lines in (old, new))
    if before == after:
        return
    patch = parse_patch(render(old, new, context))
    there = plan_series([Entry(patch)], lambda _: FileState.of(before, False))
    assert there.failure is None, there.failure
    assert there.after["f"] is not None
    assert there.after["f"].data == after
    back = plan_series([Entry(reversed_patch(patch))], lambda _: FileState.of(after, False))
    assert back.failure is None, back.failure
    assert back.after["f"] is not None
    assert back.after["f"].data == before


@settings(max_examples=500, deadline=None)
@given(st.one_of(st.binary(max_size=200), PIECES.map(b"".join)))
@example(b"diff --git \n")
@example(b"--- \n+++ \n@@ -1 +1 @@\n-a\n+b\n")
def test_the_parser_raises_one_kind_of_error_only(data: bytes) -> None:
    try:
        patch = parse_patch(data)
    except MalformedPatch as error:
        assert error.line is not None or error.reason == "malformed"
        return
    for change in patch.files:
        assert change.hunks or change.action != "modify" or change.new_mode is not None
        for hunk in change.hunks:
            assert hunk.old_len == len(hunk.old)
            assert hunk.new_len == len(hunk.new)
            assert hunk.old != hunk.new or hunk.old_eof != hunk.new_eof
            assert [t for op, t in hunk.body if op != b"+"] == hunk.old
            assert [t for op, t in hunk.body if op != b"-"] == hunk.new


@given(st.binary(min_size=1, max_size=20))
def test_quoting_names_can_be_undone(name: bytes) -> None:
    quoted = quote(name)
    if quoted == name:
        assert not name.startswith(b'"')
        return
    assert unquote(quoted) == (name, b"")


@given(st.text(max_size=30))
def test_a_safe_path_stays_below(text: str) -> None:
    try:
        path = safe_path(text.encode("utf-8", "surrogatepass"))
    except BadName:
        return
    parts = path.split("/")
    assert not {"", ".", ".."} & set(parts)
    assert not path.startswith("/")
    assert ".git" not in [part.casefold() for part in parts]


@settings(max_examples=200, deadline=None)
@given(LINES.filter(bool), st.data())
def test_planning_equals_splicing_lists(lines: list[bytes], data: st.DataObject) -> None:
    """Hunks with three lines of context, made by hand from a list edit, land where the list edit says."""
    at = data.draw(st.integers(0, len(lines) - 1))
    new = [*lines[:at], b"unique new line", *lines[at:]]
    patch = render(lines, new, 3)
    done = plan(patch, b"".join(line + b"\n" for line in lines))
    assert done.failure is None  # type: ignore[attr-defined]
    assert done.after["f"].lines[:-1] == new  # type: ignore[attr-defined]
