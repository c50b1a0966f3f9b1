"""A failure explained: who changed the lines, what is different from the pin, and a proposal beside the tree."""

from __future__ import annotations

import shutil

from demo import CORE, LOG, NAMES, Demo

EARLIER = (
    LOG.replace(b"+        self.starts = 1\n", b"-        self.running = True\n+        self.running = 1\n")
    .replace(b"         self.running = True\n-", b"-")
    .replace(b"@@ -4,6 +4,7 @@", b"@@ -4,6 +4,6 @@")
)


def other_release(demo: Demo, core: bytes) -> None:
    """The pin unpacked under build/, and a tree of a later release with another core.py."""
    shutil.copytree(demo.site, demo.root / "build/demo-1.0")
    (demo.site / "demo/core.py").write_bytes(core)
    (demo.site / "demo-1.0.dist-info").rename(demo.site / "demo-1.1.dist-info")
    record = demo.site / "demo-1.1.dist-info/RECORD"
    from demo import record_row

    rows = [
        record_row("demo/core.py", core) if r.startswith("demo/core.py") else r for r in record.read_text().splitlines()
    ]
    record.write_text("\n".join(rows).replace("demo-1.0", "demo-1.1") + "\n")


def test_the_earlier_patch_that_changed_the_lines_is_named(demo: Demo) -> None:
    demo.write_patches(earlier=EARLIER, log=LOG, names=NAMES)
    done = demo.run("apply")
    assert done.status == 1
    assert "changed there before it: earlier" in done.out


def test_a_change_beside_the_hunk_merges_cleanly(demo: Demo) -> None:
    other_release(demo, CORE.replace(b"class Engine:\n", b"class Engine(Base):\n"))
    before = demo.snapshot()
    done = demo.run("apply", "--allow-version")
    assert done.status == 1
    assert "between demo 1.0 and this tree:" in done.out
    assert "- class Engine:" in done.out
    assert "+ class Engine(Base):" in done.out
    proposal = demo.root / "build/proposals/log/core.py"
    assert f"proposal: {proposal} (it merges cleanly)" in done.out
    text = proposal.read_bytes()
    assert b"class Engine(Base):\n    def start(self):\n        self.running = True\n        self.starts = 1\n" in text
    assert demo.snapshot() == before


def test_a_change_of_the_same_lines_is_a_marked_conflict(demo: Demo) -> None:
    other_release(
        demo, CORE.replace(b"        self.running = True\n        return self\n", b"        return self.run()\n", 1)
    )
    done = demo.run("apply", "--allow-version")
    assert "(1 conflict to resolve)" in done.out
    text = (demo.root / "build/proposals/log/core.py").read_bytes()
    assert b"<<<<<<< the tree\n        return self.run()\n" in text
    assert b"||||||| the pin" in text
    assert b">>>>>>> with log" in text


def test_without_the_pin_at_hand_there_is_no_proposal(demo: Demo) -> None:
    other_release(demo, CORE.replace(b"class Engine:\n", b"class Engine(Base):\n"))
    shutil.rmtree(demo.root / "build")
    done = demo.run("apply", "--allow-version")
    assert done.status == 1
    assert "proposal" not in done.out
    assert "nearest region" in done.out
