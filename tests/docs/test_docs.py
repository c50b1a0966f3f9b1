"""The documentation says what the program does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from patchforge import cli, resources
from patchforge.series.project import find_project, load_series

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "requirements").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


def test_every_command_and_option_of_the_readme_exists() -> None:
    text = (ROOT / "README.md").read_text()
    for name in cli.COMMANDS:
        assert f"`{name}" in text, f"the README does not mention {name}"
    for command, options in re.findall(r"patchforge ([a-z-]+)((?: --[a-z-]+(?: [a-zA-Z./=-]+)?)*)", text):
        if command not in cli.COMMANDS:
            continue
        shown = subprocess.run(
            [sys.executable, "-m", "patchforge", command, "--help"], capture_output=True, text=True, check=True
        )
        for option in re.findall(r"--[a-z-]+", options):
            assert option in shown.stdout, f"{command} {option}"


def test_the_readme_shows_the_series_as_it_is() -> None:
    text = (ROOT / "README.md").read_text()
    series = load_series(find_project(ROOT), None)
    block = text[text.index("apply --fetch\n #") :].split("```")[0]
    shown = re.findall(r"^ *(\d+)  (\S+) +applied +(\d+) +\+(\d+) -(\d+)", block, re.MULTILINE)
    from patchforge.diff import parse_patch

    want = []
    for number, file in enumerate(series.patches, 1):
        patch = parse_patch(file.data)
        hunks = [h for f in patch.files for h in f.hunks]
        added, removed = sum(h.added for h in hunks), sum(h.removed for h in hunks)
        want.append((str(number), file.name, str(len({f.path for f in patch.files})), str(added), str(removed)))
    assert shown == want
    assert series.lock is not None
    assert f"applied {len(want)} patches to {len(series.lock.files)} files" in block


def test_every_reason_is_documented() -> None:
    documented = set(re.findall(r"`([a-z-]+)`", (ROOT / "docs/json.md").read_text()))
    used: set[str] = set()
    for path in (ROOT / "src/patchforge").rglob("*.py"):
        used |= set(re.findall(r'reason="([a-z-]+)"', path.read_text()))
    assert used - documented == {"error"} - documented


def test_every_header_is_documented() -> None:
    text = (ROOT / "docs/headers.md").read_text()
    for key in resources.schema()["properties"]:
        assert f"| `{key}` |" in text
    for kind in resources.schema()["properties"]["Kind"]["enum"]:
        assert f"`{kind}`" in text


def test_every_dependency_has_its_reason() -> None:
    import tomllib

    text = (ROOT / "docs/dependencies.md").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    names = project["project"]["dependencies"] + [n for group in project["dependency-groups"].values() for n in group]
    for requirement in names:
        name = re.match(r"[A-Za-z0-9-]+", requirement)
        assert name is not None
        assert re.search(rf"\b{name[0]}\b", text), name[0]


def test_the_locks_name_no_index() -> None:
    for path in (ROOT / "requirements").iterdir():
        assert not re.search(r"https?://|--index|--find-links|--trusted", path.read_text()), path.name


def test_the_serving_page_has_the_table_as_it_is() -> None:
    from patchforge.serving.document import read_document
    from patchforge.serving.markdown import table_lines
    from patchforge.serving.table import build_table

    text = (ROOT / "docs/serving.md").read_text()
    shown = text.partition("<!-- patchforge:knobs -->\n")[2].partition("<!-- /patchforge:knobs -->")[0]
    table = build_table(read_document(resources.template_bytes("modes.yaml"), "templates/modes.yaml"))
    want = "\n".join(table_lines(table))
    assert shown.strip() == want, "put what 'patchforge serve --knobs' prints between the markers"


def test_the_serving_page_shows_what_serve_prints() -> None:
    """What goes to standard output, or where nothing does, the errors; a warning depends on the machine that says it."""
    text = (ROOT / "docs/serving.md").read_text()
    blocks = re.findall(r"^\$ patchforge (serve [^\n]*--print[^\n]*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    for words, shown in blocks:
        env = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "HOME")}
        command = [sys.executable, "-m", "patchforge", *words.split()]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=env)
        assert (done.stdout or done.stderr) == shown, words


def test_every_patch_has_its_page_as_it_is() -> None:
    from patchforge.series.parsed import Schema
    from patchforge.table.folder import check_pages
    from patchforge.table.pages import asked_for, make_pages

    series = load_series(find_project(ROOT), None)
    assert series.pin is not None
    directory = asked_for((ROOT / "PATCHES.md").read_text(), series.pin.id)
    assert directory == "docs/patches"
    pages = make_pages(series, Schema(resources.schema_hash(), resources.schema), directory)
    assert len(pages.texts) == len(series.patches) + 1
    check = check_pages(ROOT, pages)
    assert (check.stale, check.left) == ((), ()), "run 'patchforge table'"
    for page in (ROOT / directory).iterdir():
        assert page.name in pages.texts, f"{page.name} is the page of no patch"


def test_the_page_of_the_engine_tests_is_about_those_there_are() -> None:
    text = (ROOT / "docs/engine.md").read_text()
    assert set(re.findall(r"`(test_engine_\w+\.py)`", text)) == {p.name for p in ROOT.glob("tests/engine/test_*.py")}
    series = load_series(find_project(ROOT), None)
    assert series.lock is not None
    assert f"applied {len(series.patches)} patches to {len(series.lock.files)} files" in text
    assert f"verified: {len(series.lock.files)} files as locked" in text
    knobs = set(re.findall(r"export (?:\S+ )*?(VLLM_ENGINE_\w+)|\b(VLLM_ENGINE_\w+)=", text))
    for name in {one or other for one, other in knobs}:
        assert any(name.encode() in patch.data for patch in series.patches), name
