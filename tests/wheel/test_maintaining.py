"""The maintainer's guide says what the commands print, word for word, on a release fetched through pip."""

from __future__ import annotations

from pathlib import Path

from story import PAGE, Teller, steps

from patchforge import cli


def test_the_life_of_a_patch(tmp_path: Path) -> None:
    told = steps(PAGE.read_text())
    words = " ".join(step.command for step in told)
    for command in ("checkout", "refresh", "new", "import", "export", "graph", "drop", "mv", "apply", "verify", "lint"):
        assert command in cli.COMMANDS
        assert f"patchforge {command}" in words, f"the guide does not show {command}"
    teller = Teller(tmp_path)
    for step in told:
        assert teller.run(step) == step.printed, step.command
