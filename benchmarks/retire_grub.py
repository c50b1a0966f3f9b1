"""Scores ``retire-scan`` on Debian's patches of GRUB 2.06 against the release 2.12: ``python benchmarks/retire_grub.py DIR``.

``DIR`` holds what Debian 12's source package and the next upstream archive unpack to: ``patches/`` (its ``debian/patches``),
``grub-2.06/`` and ``grub-2.12/``, pristine both.  The labels come from where the patches come from, not from looking at the
result: fixes that upstream committed before 2.12 (CVE-2022-2601, the font, network, NTFS and XFS fixes) have landed; the
fixes of February 2025 came after 2.12 and have not.  Debian's own patches have no label.

One patch of the series names two different files in its header, which ``apply`` refuses; mend its ``---`` line first.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

FLAGGED = ("landed", "landed-changed", "partial", "superseded")


def label(name: str) -> str | None:
    """``landed``, ``kept``, or ``None`` for a patch whose fate is not known."""
    if name.startswith(("cve_2022_2601/", "2.12-xfs/", "ntfs-cve-fixes/")) or re.match(r"00[6-9]\d-", name):
        return "landed"
    return "kept" if name.startswith("cve-2025-jan/") else None


def main(base: Path) -> None:
    command = [sys.executable, "-m", "patchforge", "retire-scan", "--quilt", str(base / "patches"), "--format", "json"]
    command += ["--old", str(base / "grub-2.06"), "--new", str(base / "grub-2.12")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    patches = json.loads(done.stdout)["patches"]
    landed = [p for p in patches if label(p["name"]) == "landed"]
    kept = [p for p in patches if label(p["name"]) == "kept"]
    high = [p for p in landed if p["verdict"] == "landed" and p["confidence"] == "high"]
    print(f"{len(patches)} patches, {len(landed)} known to have landed, {len(kept)} known not to have")
    recall = sum(p["verdict"] == "landed" for p in landed) / len(landed)
    print(f"landed: recall {recall:.2f}, at high confidence {len(high) / len(landed):.2f}")
    print(f"flagged: recall {sum(p['verdict'] in FLAGGED for p in landed) / len(landed):.2f}")
    wrong = [p["name"] for p in kept if p["verdict"] == "landed"]
    print(f"kept patches called landed: {len(wrong)} {wrong}")
    print(f"kept patches flagged: {sum(p['verdict'] in FLAGGED for p in kept)} of {len(kept)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
