"""Fetching the wheels of a whole requirements lock, through pip, by hash."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from patchforge.errors import Refused
from patchforge.releases.pip import run_pip

Row = tuple[str, str, tuple[str, ...]]
"""Name, version, and the SHA-256 of every file that may serve it."""
_MACHINES = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}


def download_all(
    rows: tuple[Row, ...], python: str, platform: str, glibc: str, cache: Path, say: Callable[[str], None] | None = None
) -> list[Path]:
    """One wheel for each row, in the rows' order, for Python ``3.N`` on a platform; kept in ``cache`` by set and by hash.

    Raises :class:`Refused` when one is missing or hashes to nothing that its row names.
    """
    key = hashlib.sha256(repr((rows, python, platform, glibc)).encode()).hexdigest()
    folder = cache / "sets" / key
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder.parent) as temporary:
            if say is not None:
                say(f"fetching {len(rows)} wheels through pip")
            got = Path(temporary) / "wheels"
            _fetch(rows, python, (platform, glibc), got)
            try:
                os.rename(got, folder)
            except OSError:  # another run was first
                pass
    return [_choose(row, folder) for row in rows]


def _fetch(rows: tuple[Row, ...], python: str, place: tuple[str, str], target: Path) -> None:
    platform, glibc = place
    machine = _MACHINES.get(platform)
    if machine is None:
        raise Refused(f"no wheels are known for {platform}", reason="platform-mismatch")
    target.mkdir()
    words = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--dest", str(target)]
    words += ["--implementation", "cp", "--python-version", python]
    for abi in (f"cp{python.replace('.', '')}", "abi3", "none"):
        words += ["--abi", abi]
    for minor in range(int(glibc.partition(".")[2]), 4, -1):
        words += ["--platform", f"manylinux_2_{minor}_{machine}"]
    words += ["--platform", f"manylinux2014_{machine}"]
    with tempfile.TemporaryDirectory(prefix="patchforge-") as folder:
        file = Path(folder) / "requirements.txt"
        lines = (f"{n}=={v} {' '.join(f'--hash=sha256:{h}' for h in hashes)}\n" for n, v, hashes in rows)
        file.write_text("".join(lines))
        run_pip([*words, "--requirement", str(file)], f"download {len(rows)} locked wheels")


def _choose(row: Row, folder: Path) -> Path:
    name, version, hashes = row
    start = f"{name.replace('-', '_')}-".lower()
    for path in sorted(folder.iterdir()):
        if path.name.lower().replace(".", "_").startswith(start.replace(".", "_")) and path.suffix == ".whl":
            have = hashlib.sha256(path.read_bytes()).hexdigest()
            if have in hashes:
                return path
    raise Refused(
        f"no wheel of {name} {version} in the cache hashes to what the lock says",
        reason="hash",
        file=str(folder),
        hint="delete that directory and run it again",
    )
