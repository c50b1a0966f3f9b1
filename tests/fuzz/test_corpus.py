"""The corpus of the fuzzer, replayed: each input ends in an answer or in an error of ours, and nothing is written outside."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from fuzz_apply import for_real, once

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())


def test_every_input(tmp_path: Path) -> None:
    outcomes = Counter(once(path.read_bytes(), tmp_path / "work") for path in CORPUS)
    assert len(CORPUS) > 150
    assert outcomes["applied"] > 15
    assert len(outcomes) > 10, outcomes


def test_the_harness_notices_a_wrong_byte(tmp_path: Path) -> None:
    patch = b"--- a/bare\n+++ b/bare\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n"
    for_real(patch, tmp_path / "work", {"bare": b"a\nc\n"})
    with pytest.raises(AssertionError):
        for_real(patch, tmp_path / "work", {"bare": b"a\nd\n"})
