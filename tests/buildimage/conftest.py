"""Real bases and real builders: a Debian root by debootstrap, a container store of the tests' own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import ROOT, Containers, lacking, needs
from stubs import Layout, installed_tar


@pytest.fixture(scope="session")
def stub_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base that holds the pinned CUDA wheel and an interpreter that is none."""
    from patchforge.cli.session import cache_directory
    from patchforge.releases.cache import fetch
    from patchforge.series.project import find_project

    pin = find_project(ROOT).pin(None)
    flavor = pin.flavor("cuda")
    wheel = fetch(pin, flavor, flavor.wheels[0], cache_directory())
    layout = tmp_path_factory.mktemp("stub") / "stub"
    Layout(layout).image([installed_tar(wheel, "opt/engine/lib/python3.12/site-packages", "python3.12")])
    return layout


@pytest.fixture(scope="session")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minimal Debian with Python as an OCI layout."""
    needs("debootstrap", "buildah", "skopeo", "tar")
    if os.geteuid() != 0:
        lacking("debootstrap needs root")
    top = tmp_path_factory.mktemp("debian")
    root = top / "root"
    # The headers too, as python's own images have them: torch compiles against them at the first sampled token.
    include = "--include=python3,python3-dev,python3-venv,ca-certificates"
    command = ["debootstrap", "--variant=minbase", include, "bookworm", str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lacking(f"debootstrap could not make a base: {done.stdout[-300:]}")
    shutil.rmtree(root / "var/cache/apt/archives")
    tar = ["tar", "--sort=name", "--numeric-owner", "--exclude=./dev/*", "-C", str(root), "-cf", "-", "."]
    Layout(top / "debian").image([subprocess.run(tar, check=True, capture_output=True).stdout])
    shutil.rmtree(root)
    return top / "debian"


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory, debian: Path) -> Iterator[Path]:
    """A container store apart from the machine's, with the base in it."""
    top = tmp_path_factory.mktemp("store")
    conf = top / "storage.conf"
    driver = os.environ.get("STORAGE_DRIVER", "overlay")
    conf.write_text(f'[storage]\ndriver = "{driver}"\ngraphroot = "{top}/graph"\nrunroot = "{top}/run"\n')
    os.environ |= {"CONTAINERS_STORAGE_CONF": str(conf), "BUILDAH_ISOLATION": "chroot"}
    copy = ["skopeo", "copy", "--quiet", f"oci:{debian}", "containers-storage:localhost/debian:latest"]
    subprocess.run(copy, check=True, capture_output=True)
    yield top
    subprocess.run(["buildah", "rm", "--all"], check=False, capture_output=True)
    subprocess.run(["buildah", "rmi", "--all", "--force"], check=False, capture_output=True)
    del os.environ["CONTAINERS_STORAGE_CONF"], os.environ["BUILDAH_ISOLATION"]


@pytest.fixture
def container(store: Path) -> Iterator[Containers]:
    made = Containers([])
    yield made
    for name in made.names:
        subprocess.run(["buildah", "rm", name], check=False, capture_output=True)
