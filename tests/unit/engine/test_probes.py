from __future__ import annotations

import pytest

from patchforge.engine.probes import source_probe
from patchforge.headers.probe import Probe, parse_probe

SOURCE = b"""import os

LIMIT: int = 3
NAMES = {"a"}

class A:
    SIZE = 1

    def run(self):
        def inner():
            return "needle"
        return inner

try:
    def late():
        pass
except ImportError:
    late = None
"""


@pytest.mark.parametrize(
    ("name", "text", "true"),
    [
        ("A", "", True),
        ("A.run", "", True),
        ("A.run", "needle", True),
        ("A.run", "nothing", False),
        ("A.run.inner", "needle", True),
        ("A.SIZE", "", True),
        ("A.SIZE", "2", False),
        ("LIMIT", "3", True),
        ("NAMES", "", True),
        ("late", "", True),
        ("run", "", False),
        ("B", "", False),
        ("A.stop", "", False),
    ],
)
def test_names_and_text(name: str, text: str, true: bool) -> None:
    assert source_probe(Probe("source", "x.py", name, text), SOURCE) is true


@pytest.mark.parametrize("data", [None, b"def (", b"\x00"])
def test_no_file_or_no_python_is_false(data: bytes | None) -> None:
    assert not source_probe(Probe("source", "x.py", "A"), data)


def test_forms() -> None:
    assert parse_probe("source: a/b.py :: A.run contains x = 1") == Probe("source", "a/b.py", "A.run", "x = 1")
    assert parse_probe("import: vllm.envs:NAME") == Probe("import", "vllm.envs", "NAME")
    for wrong in ("exec: rm", "source: a", "import: a.b", "python: 1"):
        with pytest.raises(ValueError, match="is not"):
            parse_probe(wrong)
