"""Coverage-guided fuzzing of the parser and of apply: ``python tests/fuzz/fuzz_apply.py [libFuzzer options] [CORPUS]``.

The input is a patch file.  It is parsed, and planned on a small tree in memory; whatever is planned to change is then applied
to a real directory, in which everything outside the tree is watched.  Only :class:`PatchforgeError` may come out, within a
second.  Needs atheris (``pip install atheris``), which is not among the locked tools: the corpus it found is replayed by
``test_corpus.py`` without it.  For example, 100,000 inputs:

    python tests/fuzz/fuzz_apply.py -runs=100000 -max_len=4096 -dict=tests/fuzz/diff.dict /tmp/corpus tests/fuzz/corpus
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

TREE = {
    "f": b"".join(b"line %d\n" % n for n in range(1, 31)),
    "d/g.py": b"class A:\n    def run(self):\n        return 1\n\n\nclass B:\n    def run(self):\n        return 1\n",
    "empty": b"",
    "crlf": b"a\r\nb\r\nc\r\n",
    "bare": b"a\nb",
    "long": b"x\n" * 2000,
}
LIMIT = 1.0


def once(data: bytes, folder: Path | None = None) -> str:
    """Run one input; return what became of it.  Raises whatever must not happen."""
    from patchforge.diff import parse_patch
    from patchforge.engine.model import Entry, FileState
    from patchforge.engine.plan import plan_series
    from patchforge.errors import PatchforgeError
    from patchforge.headers import parse_header

    begin = time.process_time()

    def read(path: str) -> FileState | None:
        return FileState.of(TREE[path], False) if path in TREE else None

    try:
        try:
            patch = parse_patch(data, strip=1)
        except PatchforgeError as error:
            str(error)
            return f"refused {error.reason}"
        try:
            parse_header(patch.text, "patch")
        except PatchforgeError:
            pass
        plan = plan_series([Entry(patch)], read)
        if plan.failure is not None:
            return f"failed {plan.failure.reason}"
        if folder is not None and plan.changed:
            for_real(data, folder, {path: state.data if state else None for path, state in plan.after.items()})
            return "applied"
        return "planned"
    finally:
        spent = time.process_time() - begin
        if spent > LIMIT:
            raise AssertionError(f"{spent:.2f} s of CPU for {len(data)} bytes")


def for_real(data: bytes, folder: Path, after: dict[str, bytes | None]) -> None:
    """Apply to a directory: the planned bytes and no others, and nothing outside."""
    from patchforge.engine.apply import ApplyOptions, apply_series
    from patchforge.errors import PatchforgeError
    from patchforge.series.project import load_quilt
    from patchforge.tree.target import open_bare

    shutil.rmtree(folder, ignore_errors=True)
    tree, patches = folder / "outer/tree", folder / "patches"
    for path, content in TREE.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(content)
    patches.mkdir()
    (patches / "p").write_bytes(data)
    (patches / "series").write_text("p\n")
    (folder / "outer/sentinel").write_bytes(b"sentinel")
    try:
        with open_bare(tree, True) as target:
            done = apply_series(load_quilt(patches), target, None, ApplyOptions())
    except PatchforgeError:
        done = None
    found = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    inside = {k.removeprefix("outer/tree/"): v for k, v in found.items() if k.startswith("outer/tree/")}
    outside = {k for k in found if not k.startswith("outer/tree/")}
    assert outside == {"patches/p", "patches/series", "outer/sentinel"}, outside
    expected = dict(TREE)
    if done is not None and done.outcome == "applied":
        for path, content in after.items():
            if content is None:
                expected.pop(path, None)
            else:
                expected[path] = content
    assert inside == expected


def main() -> None:
    import atheris

    with atheris.instrument_imports(include=["patchforge"]):
        import patchforge.engine.apply
        import patchforge.headers
        import patchforge.tree.target  # noqa: F401

    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))

    def one_input(data: bytes) -> None:
        once(data, folder)

    atheris.Setup(sys.argv, one_input)
    try:
        atheris.Fuzz()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
