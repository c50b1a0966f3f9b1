"""Scores ``retire-scan`` on Debian's patches against later upstream releases: ``python benchmarks/retire_debian.py SET DIR``.

``DIR`` holds what ``apt-get source --download-only`` fetches of the source packages named under ``SETS`` (of the newer one the
upstream archive is enough for GRUB); it is unpacked there.  Every label comes from where a patch comes from, or from what Debian
did with it later, never from looking at the result.

``grub``: Debian 12's patches for 2.06 against 2.12.  What upstream committed before 2.12 (CVE-2022-2601, the font, network, NTFS
and XFS fixes) has landed; the fixes of February 2025 came after 2.12 and have not.

``calibre``: Debian 12's patches for 6.13.0 against 8.5.0.  Those with an upstream commit of before 8.5.0 as their origin have
landed, and the two of which Debian's changelog says that upstream applied them; the fixes of 2026, and what Debian 13 still
applies to 8.5.0, have not.

Debian's other patches have no label.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FLAGGED = ("landed", "landed-changed", "partial", "superseded")


@dataclass(frozen=True)
class Set:
    """Archives (of the patches, of both upstream trees, of Debian's newer packaging where the labels need it), and labels.

    ``label`` takes a patch's name and the names of the newer series, numbers and directories aside.
    """

    patches: str
    old: str
    new: str
    newer: str
    label: Callable[[str, set[str]], str | None]


def bare(name: str) -> str:
    """A patch's name without its directory and number."""
    return re.sub(r"\A\d+-", "", name.rpartition("/")[2])


def label_grub(name: str, newer: set[str]) -> str | None:
    """``landed``, ``kept``, or ``None`` for a patch whose fate is not known."""
    if name.startswith(("cve_2022_2601/", "2.12-xfs/", "ntfs-cve-fixes/")) or re.match(r"00[6-9]\d-", name):
        return "landed"
    return "kept" if name.startswith("cve-2025-jan/") else None


def label_calibre(name: str, newer: set[str]) -> str | None:
    """``landed``, ``kept``, or ``None`` for a patch whose fate is not known."""
    if re.match(r"003[0-5]-|0010-|0020-", name):
        return "landed"
    return "kept" if bare(name) in newer or "CVE-2026-" in name else None


SETS = {
    "grub": Set(
        "grub2_2.06-13+deb12u2.debian.tar.xz", "grub2_2.06.orig.tar.xz", "grub2_2.12.orig.tar.xz", "", label_grub
    ),
    "calibre": Set(
        "calibre_6.13.0+repack-2+deb12u10.debian.tar.xz",
        "calibre_6.13.0+repack.orig.tar.xz",
        "calibre_8.5.0+ds.orig.tar.xz",
        "calibre_8.5.0+ds-1+deb13u3.debian.tar.xz",
        label_calibre,
    ),
}


def unpacked(base: Path, archive: str) -> Path:
    """The one directory an archive of ``base`` holds, unpacked once."""
    folder = base / archive.partition(".tar")[0]
    if not folder.is_dir():
        with tarfile.open(base / archive) as tar:
            tar.extractall(folder, filter="data")
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 else folder


def mended(folder: Path) -> Path:
    """Debian's series.  One of GRUB's patches names two files in one header, which is refused: its ``---`` line is mended."""
    for patch in folder.glob("gcc12_build_dangling_pointer.patch"):
        patch.write_text(patch.read_text().replace("--- a/util/mkimage\t", "--- a/util/mkimage.c\t"))
    return folder


def main(name: str, base: Path) -> int:
    """Scan one set and print its scores; 1 when nothing could be scanned, or a kept patch was called landed."""
    chosen = SETS[name]
    newer = unpacked(base, chosen.newer) / "patches/series" if chosen.newer else None
    names = {bare(line.strip()) for line in newer.read_text().splitlines()} if newer is not None else set()
    command = [sys.executable, "-m", "patchforge", "retire-scan", "--format", "json"]
    command += ["--quilt", str(mended(unpacked(base, chosen.patches) / "patches"))]
    command += ["--old", str(unpacked(base, chosen.old)), "--new", str(unpacked(base, chosen.new))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    patches = report["patches"]
    landed = [p for p in patches if chosen.label(p["name"], names) == "landed"]
    kept = [p for p in patches if chosen.label(p["name"], names) == "kept"]
    if not landed or not kept:
        print(report.get("problems") or "no patch has a label", file=sys.stderr)
        return 1
    print(f"{len(patches)} patches, {len(landed)} known to have landed, {len(kept)} known not to have")
    high = sum(p["verdict"] == "landed" and p["confidence"] == "high" for p in landed)
    found = sum(p["verdict"] == "landed" for p in landed)
    print(f"landed: {found} of {len(landed)} ({found / len(landed):.2f}), at high confidence {high / len(landed):.2f}")
    flagged = sum(p["verdict"] in FLAGGED for p in landed)
    print(f"flagged: {flagged} of {len(landed)} ({flagged / len(landed):.2f})")
    wrong = [p["name"] for p in kept if p["verdict"] == "landed"]
    print(f"kept patches called landed: {len(wrong)} {wrong}")
    print(f"kept patches flagged: {sum(p['verdict'] in FLAGGED for p in kept)} of {len(kept)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
