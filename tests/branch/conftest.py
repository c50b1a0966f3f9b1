"""A checked-out demo series."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo import Demo
from workspace import Work


@pytest.fixture
def work(demo: Demo, tmp_path: Path) -> Work:
    demo.run("lock")
    demo.run("table", tree=False)
    directory = tmp_path / "work"
    done = demo.run("checkout", str(directory))
    assert done.status == 0, done.err
    return Work(demo, directory)
