"""A file that lies elsewhere in the release is named, and nothing else is taken for it."""

from __future__ import annotations

import pytest
from test_truth import FIXED, OLD, diff, judged

NOTHING_OF_IT = "import os\n\n\ndef store():\n    return os.sep\n"


def test_the_new_place_of_a_file_is_named() -> None:
    new = {"common/cli.py": OLD.replace("size = len(data)", "size = len(data) + 1")}
    (found,) = judged({"app/cli.py": OLD}, new, diff(OLD, FIXED, "app/cli.py"))
    assert found.verdict == "conflict"
    assert "lacks a file it changes" in found.reason
    assert "most of cli.py is in common/cli.py now" in found.reason


@pytest.mark.parametrize(
    "new",
    [
        {"common/cli.py": NOTHING_OF_IT},  # the same name, another file
        {"common/other.py": OLD},  # the same file, which nothing but its content says
        {f"part{n}/cli.py": OLD for n in range(9)},  # a name that says nothing
    ],
)
def test_nothing_is_guessed(new: dict[str, str]) -> None:
    (found,) = judged({"app/cli.py": OLD}, new, diff(OLD, FIXED, "app/cli.py"))
    assert "most of" not in found.reason


def test_a_file_that_is_still_there_has_not_moved() -> None:
    new = {"app/cli.py": OLD.replace("def read", "def load"), "common/cli.py": OLD}
    (found,) = judged({"app/cli.py": OLD}, new, diff(OLD, FIXED, "app/cli.py"))
    assert found.verdict == "conflict"
    assert "most of" not in found.reason
