"""The real wheel, fetched through pip once and kept in the user's cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchforge.cli.session import cache_directory
from patchforge.cli.targets import suitable
from patchforge.releases.cache import fetch, unpack
from patchforge.series.project import Project, Series, find_project, load_series

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def project() -> Project:
    return find_project(ROOT)


@pytest.fixture(scope="session")
def series(project: Project) -> Series:
    return load_series(project, None)


@pytest.fixture(scope="session")
def wheel(project: Project) -> Path:
    pin = project.pin(None)
    flavor = pin.flavor(None)
    return fetch(pin, flavor, suitable(flavor), cache_directory())


@pytest.fixture(scope="session")
def pristine(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as it was unpacked; never changed by a test."""
    directory = tmp_path_factory.mktemp("wheel") / "pristine"
    unpack(wheel, directory)
    return directory
