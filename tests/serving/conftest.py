"""Fixtures of the serving tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from place import Place, shipped

from patchforge.serving.table import Table


@pytest.fixture(scope="session")
def table() -> Table:
    return shipped()


@pytest.fixture
def place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Place:
    made = Place(tmp_path)
    made.create()
    made.prepare()
    capsys.readouterr()
    return made
