"""The verdicts on later releases: what a person read in their code beside what ``retire-scan`` says of them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from patchforge import cli
from patchforge.evidence.model import VERDICTS
from patchforge.series.project import Project, Series

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/measurements/verdicts-vllm.md"
SHOWN = ROOT / "docs/retiring.md"
RELEASES = ("0.32.0", "0.33.0")


def table(release: str) -> dict[str, tuple[str, str, str]]:
    """By patch, in the order of the page: the verdict by reading, the tool's, and whether the page says that they agree."""
    part = PAGE.read_text().split(f"## vLLM {release}\n")[1].split("\n## ")[0]
    rows = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in part.splitlines() if line[:1] == "|"
    ]
    return {patch: (read, tool, agrees) for patch, read, _, tool, agrees in rows[2:]}


@pytest.mark.parametrize("release", RELEASES)
def test_the_page_has_every_patch_and_counts_right(release: str, series: Series) -> None:
    rows = table(release)
    assert list(rows) == [entry.name for entry in series.patches]
    for patch, (read, tool, agrees) in rows.items():
        assert {read, tool} <= set(VERDICTS), patch
        assert agrees == ("yes" if read == tool else "no"), patch


def test_the_page_adds_up() -> None:
    every = [row for release in RELEASES for row in table(release).values()]
    assert f"Of {len(every)} verdicts {sum(row[2] == 'yes' for row in every)} agree" in PAGE.read_text()


@pytest.mark.parametrize("release", RELEASES)
def test_the_tool_says_what_the_page_says(
    release: str, pristine: Path, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["retire-scan", "--project", str(project.root), "--tree", str(pristine), "--against", release]
    cli.run([*words, "--format", "json"])
    said = {patch["name"]: patch["verdict"] for patch in json.loads(capsys.readouterr().out)["patches"]}
    assert said == {patch: tool for patch, (_, tool, _) in table(release).items()}


def shown() -> list[tuple[str, str]]:
    """The console blocks of the page on retiring that scan releases of vLLM: the command, and what the page says it prints.

    The block that asks a forge is about a project and a forge of the tests, which hold the page to it.
    """
    blocks = re.findall(r"^```console\n\$ patchforge ([^\n]*)\n(.*?)^```$", SHOWN.read_text(), re.MULTILINE | re.DOTALL)
    scans = [(command, printed) for command, printed in blocks if command.startswith(("retire-scan", "radar"))]
    return [(command, printed) for command, printed in scans if "--pulls" not in command]


@pytest.mark.parametrize(("command", "printed"), shown(), ids=[command for command, _ in shown()])
def test_the_page_on_retiring_shows_what_is_printed(
    command: str, printed: str, pristine: Path, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.run([*shlex.split(command), "--project", str(project.root), "--tree", str(pristine)])
    assert capsys.readouterr().out == printed


def test_the_page_on_retiring_shows_both_commands() -> None:
    assert [command.split()[0] for command, _ in shown()] == ["retire-scan", "radar"]
