from __future__ import annotations

import pytest
from demo import NAMES, Demo


@pytest.fixture
def applied(demo: Demo) -> Demo:
    demo.run("lock")
    assert demo.run("apply").status == 0
    return demo


def test_pristine_and_applied(demo: Demo) -> None:
    demo.run("lock")
    pristine = demo.run("verify", "--format", "json")
    assert pristine.status == 1
    assert pristine.json["result"] == "pristine"
    assert demo.run("status").status == 0
    demo.run("apply")
    done = demo.run("verify", "--format", "json")
    assert done.status == 0
    assert done.json["result"] == "applied"
    assert done.json["source"] == "lock"
    assert [p["result"] for p in done.json["patches"]] == ["applied", "applied"]


def test_a_changed_byte_is_named(applied: Demo) -> None:
    path = applied.site / "demo/core.py"
    path.write_bytes(path.read_bytes() + b"#")
    done = applied.run("verify", "--format", "json")
    assert done.status == 1
    assert done.json["result"] == "altered"
    assert [p["result"] for p in done.json["patches"]] == ["altered", "applied"]
    assert "core.py" in applied.run("verify").err
    for command in ("apply", "revert"):
        before = applied.snapshot()
        refused = applied.run(command)
        assert refused.status == 1
        assert "core.py" in refused.err
        assert applied.snapshot() == before


def test_a_patch_taken_out_by_hand_is_partly(applied: Demo) -> None:
    (applied.site / "demo/extra.py").unlink()
    done = applied.run("verify", "--format", "json")
    assert done.status == 1
    assert [p["result"] for p in done.json["patches"]] == ["applied", "partly"]
    files = {f["path"]: f["result"] for f in done.json["patches"][1]["files"]}
    assert files == {"data/text.txt": "applied", "extra.py": "pristine"}


def test_hunks_are_told_apart_in_a_file_that_is_neither(demo: Demo) -> None:
    two = NAMES.replace(
        b" five\n", b" five\n six\n seven\n eight\n"
    )  # a longer file, so that the two hunks do not touch
    (demo.site / "demo/data/text.txt").write_bytes(b"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n")
    patch = two[: two.index(b"@@ ")] + (
        b"@@ -1,5 +1,5 @@\n one\n-two\n+zwei\n three\n four\n five\n"
        b"@@ -7,4 +7,4 @@\n seven\n eight\n-nine\n+neun\n ten\n"
    )
    patch = patch.replace(
        b"@@ -1,5 +1,5 @@\n one\n-two\n+zwei\n three\n four\n five\n",
        b"@@ -1,4 +1,4 @@\n one\n-two\n+zwei\n three\n four\n",
    )
    demo.write_patches(names=patch)
    from demo import record_row

    record = demo.site / "demo-1.0.dist-info/RECORD"
    data = (demo.site / "demo/data/text.txt").read_bytes()
    rows = [record_row("demo/data/text.txt", data) if "text.txt" in r else r for r in record.read_text().splitlines()]
    record.write_text("\n".join(rows) + "\n")
    assert demo.run("lock").status == 0
    path = demo.site / "demo/data/text.txt"
    path.write_bytes(data.replace(b"two", b"zwei"))
    done = demo.run("verify", "--format", "json")
    assert done.json["patches"][0]["result"] == "partly"
    assert done.json["patches"][0]["hunks"] == ["data/text.txt: hunk 1 of 2 in"]


def test_a_wrong_mode_is_altered(applied: Demo) -> None:
    (applied.site / "demo/core.py").chmod(0o755)
    done = applied.run("verify")
    assert done.status == 1
    assert "wrong mode" in done.err


def test_record_that_does_not_list_the_patched_bytes(applied: Demo) -> None:
    record = applied.site / "demo-1.0.dist-info/RECORD"
    rows = [row for row in record.read_text().splitlines() if not row.startswith("demo/core.py")]
    record.write_text("\n".join(rows) + "\n")
    done = applied.run("verify")
    assert done.status == 1
    assert "RECORD does not list core.py as it is" in done.err


def test_full_hashes_the_files_no_patch_touches(applied: Demo) -> None:
    (applied.site / "demo/__init__.py").write_bytes(b"import evil\n")
    assert applied.run("verify").status == 0
    done = applied.run("verify", "--full")
    assert done.status == 1
    assert "demo/__init__.py is not as it was installed" in done.err


def test_reinstalled_over_it(demo: Demo) -> None:
    pristine = {path: data for path, (_, data) in demo.snapshot().items()}
    demo.run("lock")
    demo.run("apply")
    for path, data in pristine.items():
        (demo.site / path).write_bytes(data)
    (demo.site / "demo/extra.py").unlink()
    done = demo.run("verify", "--format", "json")
    assert done.status == 1
    assert "reinstalled" in " ".join(done.json["notes"])
    again = demo.run("apply")
    assert again.status == 0, again.err
    assert demo.run("verify").status == 0


def test_verify_says_what_a_stale_lock_means(applied: Demo) -> None:
    (applied.series / "lock.toml").unlink()
    done = applied.run("verify", "--format", "json")
    assert done.status == 0
    assert done.json["source"] == "state"
    assert any("no lock.toml" in note for note in done.json["notes"])


def test_the_series_as_it_was_is_no_alteration_by_somebody_else(applied: Demo) -> None:
    """The patches were changed since: the bytes are ours, and the way out is to apply, not to reinstall."""
    path = applied.patches / "log.patch"
    path.write_bytes(path.read_bytes().replace(b"self.starts = 1", b"self.starts = 2"))
    assert applied.run("lock").status == 0
    done = applied.run("verify")
    assert done.status == 1
    assert "another series is applied\n" in done.out
    assert "error: core.py: as the series applied before left it\n  'patchforge apply' brings" in done.err
    assert "reinstall" not in done.err
    assert applied.run("apply").status == 0
    assert applied.run("verify").status == 0
    (applied.site / "demo/core.py").write_bytes(b"x = 1\n")
    assert "neither pristine nor the outcome of any patch\n  reinstall" in applied.run("verify").err
