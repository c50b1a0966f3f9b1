"""Fixtures every test may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from trees import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path)
    made.tree.mkdir()
    return made


pytest_plugins = ["demo_fixture"]
