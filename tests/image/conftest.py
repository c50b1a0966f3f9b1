"""The project that builds images, as a fixture."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo import LOG, NAMES, Demo
from shop import DROP, NEEDS, Shop, lock_text, make_wheel
from stubs import Layout

from patchforge.image import tool, toollayer

WHEEL = "demo-1.0-py3-none-any.whl"


@pytest.fixture
def shop(demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    cache = tmp_path / "cache/patchforge"
    sha = make_wheel(tmp_path / WHEEL)
    kept = cache / "wheels" / sha / WHEEL
    make_wheel(kept)
    demo.write_patches(log=LOG, names=NAMES, drop=DROP)
    made = Shop(demo, cache, tmp_path / "base", kept)
    digest = Layout(made.base).image(made.tars())
    made.pin.write_text(
        f'# what we build on\nschema = 1\ndistribution = "demo"\nversion = "1.0"\nroot = "demo"\nstrip = 1\n'
        f'[flavor.default]\nwheel = [{{file = "{WHEEL}", sha256 = "{sha}"}}]\n'
        f'[image.default]\nbase = "localhost/stub@{digest}"  # by digest\npython = "3.12"\nepoch = 1760000000\n'
    )
    tiny = tmp_path / "tiny-1.0-py3-none-any.whl"
    tiny_sha = make_wheel(tiny, "tiny", files={"tiny/__init__.py": b"x = 1\n"})
    (made.demo.series / "image").mkdir()
    engine = {"demo": ("1.0", [sha]), "dep": ("2.0", ["a" * 64, "b" * 64])}
    label = str(made.pin)
    (made.demo.series / "image/default.txt").write_text(lock_text(made.pin, label, engine, ("demo==1.0",)))
    (made.demo.series / "image/default-tool.txt").write_text(
        lock_text(made.pin, label, {"tiny": ("1.0", [tiny_sha])}, NEEDS)
    )
    monkeypatch.setattr(tool, "requirements", lambda: NEEDS)
    monkeypatch.setattr("patchforge.image.checks.tool_inputs", lambda: NEEDS)
    monkeypatch.setattr("patchforge.cli.locking.tool_inputs", lambda: NEEDS)
    monkeypatch.setattr(toollayer, "download_all", lambda *_: [tiny])
    assert made.run("lock", "--tree", str(unpacked(kept, tmp_path / "pristine"))).status == 0
    assert made.run("table").status == 0
    made.git("init", "--quiet")
    (made.root / ".gitignore").write_text("/build/\n")
    made.commit()
    return made


def unpacked(wheel: Path, target: Path) -> Path:
    from patchforge.releases.cache import unpack

    unpack(wheel, target)
    return target
