"""RECORD: every way a row can be written, rewriting, and exact undoing."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchforge.errors import TreeError
from patchforge.tree.record import Record, record_hash, to_record, undo_edits

# The SHA-256 of these bytes has both characters in which the URL-safe alphabet differs.
URLSAFE = next(b"%d" % n for n in range(10_000) if {"-", "_"} <= set(record_hash(b"%d" % n)[7:]))
HASH = record_hash(b"data")


def test_the_hash_is_urlsafe_base64_without_padding() -> None:
    import hashlib

    value = record_hash(URLSAFE)
    assert not set(value[7:]) & set("+/=")
    assert len(value) == len("sha256=") + 43
    assert to_record(hashlib.sha256(URLSAFE).hexdigest()) == value
    assert record_hash(b"") == "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"


@pytest.mark.parametrize(
    ("line", "path", "size"),
    [
        (b"demo/a.py,%s,4", "demo/a.py", 4),
        (b'"demo/a.py",%s,4', "demo/a.py", 4),
        (b'"demo/a,b.py",%s,4', "demo/a,b.py", 4),
        (b'"demo/a""b.py",%s,4', 'demo/a"b.py', 4),
        ("demo/ä.py,%s,4".encode(), "demo/ä.py", 4),
        (b"demo/with space.py,%s,4", "demo/with space.py", 4),
        (b"demo/a.py,%s,", "demo/a.py", None),
        ("demo/a.py,%s,²".encode(), "demo/a.py", None),
        ("demo/a.py,%s,٤".encode(), "demo/a.py", None),
        (b"demo/a.py,%s," + b"9" * 5000, "demo/a.py", None),
        (b"../../../bin/demo,%s,4", "../../../bin/demo", 4),
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_a_row(line: bytes, path: str, size: int | None, end: bytes) -> None:
    record = Record(b"first,,\n" + line.replace(b"%s", HASH.encode()) + end)
    for rows in (record.rows(), record.find({path})):
        row = rows[path]
        assert (row.path, row.hash, row.size) == (path, HASH, size)


@pytest.mark.parametrize(
    "line", [b"", b"demo/a.py", b'"demo/a.py', b'"' + b"x" * 200_000 + b'",,', b"\xff\xfe", b'"a"b,c,d,e', b"\0,\0,\0"]
)
def test_a_line_that_is_no_row_is_passed_over_and_kept(line: bytes) -> None:
    data = b"demo/a.py,,\n" + line + b"\n"
    record = Record(data)
    assert record.find({"demo/a.py"})["demo/a.py"].index == 0
    record.rows()
    new, undo = record.rewritten({"demo/a.py": b"data"})
    assert line in new
    assert undo_edits(new, undo) == data


def test_a_path_listed_twice_is_refused() -> None:
    record = Record(b"a,sha256=x,1\nb,,\na,sha256=y,1\n")
    assert record.find({"b"})
    with pytest.raises(TreeError, match=r"lists a twice \(lines 1 and 3\)"):
        record.rewritten({"a": b"x"})


def parsed(data: bytes) -> dict[str, tuple[str, str]]:
    """What an installer reads, through the csv module as the specification says."""
    rows = csv.reader(io.StringIO(data.decode(), newline=""))
    return {row[0]: (row[1], row[2]) for row in rows if row}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False], ids=["ended", "not-ended"])
@pytest.mark.parametrize(
    "changes",
    [
        {"demo/a.py": b"new"},
        {"demo/z.py": b"new"},
        {"demo/a.py": None},
        {"demo/z.py": None},
        {"demo/new.py": b"x"},
        {"demo/new.py": b"x", "demo/newer,er.py": b"y", "demo/a.py": None, "demo/m.py": b""},
        {"demo/a.py": None, "demo/m.py": None, "demo/z.py": None},
        {"demo/a.py": None, "demo/m.py": None, "demo/z.py": None, "other": b"1"},
        {"absent": None},
    ],
    ids=str,
)
def test_rewriting(changes: dict[str, bytes | None], end: str, last: bool) -> None:
    rows = [f"demo/{name}.py,{HASH},4" for name in "amz"]
    data = (end.join(rows) + (end if last else "")).encode()
    expected = {f"demo/{name}.py": (HASH, "4") for name in "amz"}
    for path, content in changes.items():
        expected.pop(path, None)
        if content is not None:
            expected[path] = (record_hash(content), str(len(content)))
    new, undo = Record(data).rewritten(changes)
    assert parsed(new) == expected
    assert undo_edits(new, undo) == data
    # The style of line ends is kept: an installer compares nothing, people do.
    assert all(line.endswith("\r") == (end == "\r\n") for line in new.decode().split("\n")[:-1])


def test_an_empty_record() -> None:
    new, undo = Record(b"").rewritten({"a": b"x"})
    assert parsed(new) == {"a": (record_hash(b"x"), "1")}
    assert undo_edits(new, undo) == b""


NAMES = st.sampled_from(["a.py", "b,c.py", 'd"e.py', "f/g.py", "ä.py", "h i.py"])
LINES = st.one_of(
    st.builds(lambda name: f"{name},{HASH},4".encode(), NAMES.filter(lambda n: "," not in n and '"' not in n)),
    st.builds(lambda name: ('"' + name.replace('"', '""') + f'",{HASH},4').encode(), NAMES),
    st.binary(max_size=12).filter(lambda line: b"\n" not in line),
)


@settings(deadline=None)
@given(
    st.lists(LINES, max_size=8),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
    st.dictionaries(NAMES, st.one_of(st.none(), st.binary(max_size=5)), max_size=6),
)
def test_undoing_gives_the_same_bytes(
    lines: list[bytes], end: bytes, last: bool, changes: dict[str, bytes | None]
) -> None:
    data = end.join(lines) + (end if last else b"")
    record = Record(data)
    try:
        new, undo = record.rewritten(changes)
    except TreeError:
        return  # a row twice
    assert undo_edits(new, undo) == data
    found = Record(new).find(set(changes))
    for path, content in changes.items():
        assert (found[path].hash if path in found else None) == (None if content is None else record_hash(content))
    # Only the rows asked for may have changed.
    kept = [
        line
        for line in record.lines
        if line not in (record.lines[row.index] for row in record.find(set(changes)).values())
    ]
    after = [line.rstrip(b"\r") for line in new.split(b"\n")]
    assert all(line.rstrip(b"\r") in after for line in kept if line)
