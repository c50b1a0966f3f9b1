"""The demo project as a fixture; named as a plugin in tests/conftest.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo import CORE, LOG, NAMES, TEXT, Demo, record_row


@pytest.fixture
def demo(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Demo:
    root, site = tmp_path / "project", tmp_path / "site"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (root / "series/demo-1.0").mkdir(parents=True)
    (root / "patches/demo-1.0").mkdir(parents=True)
    (root / "series/demo-1.0/pin.toml").write_text(
        'schema = 1\ndistribution = "demo"\nversion = "1.0"\nroot = "demo"\nstrip = 1\n'
        f'[flavor.default]\nwheel = [{{file = "demo-1.0-py3-none-any.whl", sha256 = "{"0" * 64}"}}]\n'
    )
    files = {
        "demo/__init__.py": b"",
        "demo/core.py": CORE,
        "demo/data/text.txt": TEXT,
        "demo-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
    }
    for path, data in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(data)
    rows = [record_row(path, data) for path, data in files.items()] + ["demo-1.0.dist-info/RECORD,,"]
    (site / "demo-1.0.dist-info/RECORD").write_text("\n".join(rows) + "\n")
    (root / "PATCHES.md").write_text(
        "# Patches\n\n<!-- patchforge:table demo-1.0 -->\n<!-- /patchforge:table -->\n\nThe end.\n"
    )

    def capture() -> tuple[str, str]:
        found = capsys.readouterr()
        return found.out, found.err

    made = Demo(root, site, capture)
    made.write_patches(log=LOG, names=NAMES)
    return made
