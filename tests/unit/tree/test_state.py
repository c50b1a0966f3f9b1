"""The state file: what is written is read again, and what nobody of ours wrote is refused with one message."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchforge.errors import TreeError
from patchforge.tree.state import AppliedPatch, State, TouchedFile, Undo, dump_state, load_state

SHA = st.one_of(st.none(), st.text("0123456789abcdef", min_size=64, max_size=64))
PATH = st.sampled_from(["core.py", "a/b.txt", "ä/ö.py", "with space", 'quote"d', "comma,d"])
PIECES = st.lists(st.binary(max_size=6).filter(lambda piece: b"\n" not in piece), max_size=4)
EDITS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5), PIECES), max_size=3).map(tuple)
UNDO = st.one_of(st.builds(Undo, EDITS), st.builds(lambda content: Undo(content=content), st.binary(max_size=40)))
MODE = st.one_of(st.none(), st.integers(0, 0o7777))
FILES = st.lists(st.builds(TouchedFile, PATH, SHA, SHA, MODE, UNDO), max_size=4).map(tuple)
PATCHES = st.lists(
    st.builds(
        AppliedPatch, st.sampled_from(["one", "two"]), st.just("0" * 64), st.lists(st.tuples(PATH, SHA)).map(tuple)
    ),
    max_size=3,
).map(tuple)
STATES = st.builds(
    State,
    st.just("patchforge 1"),
    st.just("demo"),
    st.just("1.0"),
    st.just("f" * 64),
    st.one_of(st.none(), st.just("two")),
    PATCHES,
    FILES,
    EDITS,
    st.just("e" * 64),
)


@settings(deadline=None)
@given(STATES)
def test_what_is_written_is_read_again(state: State) -> None:
    data = dump_state(state)
    assert load_state(data) == state
    assert dump_state(load_state(data)) == data


def good() -> dict[str, Any]:
    files = (
        TouchedFile("core.py", "0" * 64, "1" * 64, 0o644, Undo(((0, 1, [b"x"]),))),
        TouchedFile("old.py", "0" * 64, None, 0o644, Undo(content=b"OLD = 1\n")),
    )
    patches = (AppliedPatch("one", "2" * 64, (("core.py", "1" * 64), ("old.py", None))),)
    state = State("patchforge 1", "demo", "1.0", "3" * 64, None, patches, files, ((0, 1, [b"y"]),), "4" * 64)
    return json.loads(dump_state(state))


def put(*keys: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        at: Any = document
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = value

    return change


TAMPERED = {
    "path up": put("files", 0, "path", value="../../outside"),
    "path up inside": put("files", 0, "path", value="a/../../../outside"),
    "path absolute": put("files", 0, "path", value="/etc/passwd"),
    "path metadata": put("files", 0, "path", value="demo-1.0.dist-info/RECORD"),
    "path git": put("files", 0, "path", value=".git/hooks/pre-commit"),
    "path empty": put("files", 0, "path", value=""),
    "path number": put("files", 0, "path", value=7),
    "path surrogate": put("files", 0, "path", value="\ud800"),
    "path of a patch": put("patches", 0, "files", 0, 0, value="../outside"),
    "name with an escape": put("patches", 0, "name", value="\x1b]0;title\x07"),
    "tool with an escape": put("tool", value="\x1b[2J"),
    "hash list": put("files", 0, "before", value=["x"]),
    "file list": put("files", 0, value=["x"]),
    "files number": put("files", value=7),
    "files text": put("files", value="core.py"),
    "edit infinite": put("files", 0, "edits", value=[[1e999, 0, []]]),
    "edit short": put("files", 0, "edits", value=[[1]]),
    "edit not latin": put("files", 0, "edits", value=[[0, 1, ["\u2028"]]]),
    "content not base85": put("files", 1, "content", value="\x00"),
    "content not packed": put("files", 1, "content", value="0000000000"),
    "content cut": put("files", 1, "content", value=base64.b85encode(zlib.compress(b"x" * 500)[:9]).decode()),
    "mode not octal": put("files", 0, "mode", value="9"),
    "mode huge": put("files", 0, "mode", value="777777777"),
    "mode negative": put("files", 0, "mode", value="-1"),
    "record number": put("record", value=7),
    "series number": put("series", value=7),
    "upto list": put("upto", value=[]),
    "schema": put("schema", value=2),
}


@pytest.mark.parametrize("change", TAMPERED.values(), ids=TAMPERED)
def test_a_state_that_was_tampered_with_is_refused(change: Callable[[dict[str, Any]], None]) -> None:
    document = good()
    load_state(json.dumps(document).encode())
    change(document)
    with pytest.raises(TreeError) as told:
        load_state(json.dumps(document).encode())
    assert told.value.reason == "state"
    assert "reinstall" in (told.value.hint or "")
    assert str(told.value).replace("\n", "").isprintable()


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"7", b"null", b"{}", b"[" * 100_000, b'{"schema": 1}'])
def test_what_is_no_state_is_refused(data: bytes) -> None:
    with pytest.raises(TreeError, match="damaged"):
        load_state(data)


def test_a_content_that_unpacks_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patchforge.tree.state.MAX_FILE", 1000)
    document = good()
    document["files"][1]["content"] = base64.b85encode(zlib.compress(bytes(1 << 20))).decode()
    with pytest.raises(TreeError, match="cut off or too large"):
        load_state(json.dumps(document).encode())


@pytest.mark.parametrize(
    "key", ["tool", "distribution", "series", "upto", "patches", "files", "record", "record_before"]
)
def test_a_missing_key_is_refused(key: str) -> None:
    document = good()
    del document[key]
    with pytest.raises(TreeError, match=key):
        load_state(json.dumps(document).encode())
