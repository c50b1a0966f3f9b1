"""The project that builds images, as a fixture."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from demo import LOG, NAMES, Demo
from shop import DROP, NEEDS, Shop, lock_text, make_wheel
from stubs import Layout

from patchforge.image import tool, toollayer

WHEEL = "demo-1.0-py3-none-any.whl"


@pytest.fixture(scope="session")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first shop is kept for the others to be copied from: nothing in it names its place."""
    return tmp_path_factory.mktemp("shops") / "made"


@pytest.fixture
def shop(shops: Path, demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    tiny = tmp_path / "tiny-1.0-py3-none-any.whl"
    monkeypatch.setattr(tool, "requirements", lambda: NEEDS)
    monkeypatch.setattr("patchforge.image.checks.tool_inputs", lambda: NEEDS)
    monkeypatch.setattr("patchforge.cli.locking.tool_inputs", lambda: NEEDS)
    monkeypatch.setattr(toollayer, "download_all", lambda *_: [tiny])
    if not shops.exists():
        make_shop(demo, tmp_path, tiny)
        shutil.copytree(tmp_path, shops)
    else:
        shutil.rmtree(demo.root)
        shutil.copytree(shops, tmp_path, dirs_exist_ok=True)
    return shop_in(demo, tmp_path)


def shop_in(demo: Demo, place: Path) -> Shop:
    cache = place / "cache/patchforge"
    return Shop(demo, cache, place / "base", next(cache.glob(f"wheels/*/{WHEEL}")))


def make_shop(demo: Demo, place: Path, tiny: Path) -> None:
    sha = make_wheel(place / WHEEL)
    make_wheel(place / "cache/patchforge/wheels" / sha / WHEEL)
    demo.write_patches(log=LOG, names=NAMES, drop=DROP)
    made = shop_in(demo, place)
    digest = Layout(made.base).image(made.tars())
    made.pin.write_text(
        f'# what we build on\nschema = 1\ndistribution = "demo"\nversion = "1.0"\nroot = "demo"\nstrip = 1\n'
        f'[flavor.default]\nwheel = [{{file = "{WHEEL}", sha256 = "{sha}"}}]\n'
        f'[image.default]\nbase = "localhost/stub@{digest}"  # by digest\npython = "3.12"\nepoch = 1760000000\n'
    )
    tiny_sha = make_wheel(tiny, "tiny", files={"tiny/__init__.py": b"x = 1\n"})
    (made.demo.series / "image").mkdir()
    engine = {"demo": ("1.0", [sha]), "dep": ("2.0", ["a" * 64, "b" * 64])}
    (made.demo.series / "image/default.txt").write_text(lock_text(made.pin, "pin.toml", engine, ("demo==1.0",)))
    (made.demo.series / "image/default-tool.txt").write_text(
        lock_text(made.pin, "pin.toml", {"tiny": ("1.0", [tiny_sha])}, NEEDS)
    )
    assert made.run("lock", "--tree", str(unpacked(made.wheel, place / "pristine"))).status == 0
    assert made.run("table").status == 0
    made.git("init", "--quiet")
    (made.root / ".gitignore").write_text("/build/\n")
    made.commit()


def unpacked(wheel: Path, target: Path) -> Path:
    from patchforge.releases.cache import unpack

    unpack(wheel, target)
    return target
