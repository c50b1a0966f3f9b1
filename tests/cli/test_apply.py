from __future__ import annotations

import os
import shutil

import pytest
from demo import CORE, LOG, NAMES, Demo


def test_applies_says_so_and_again_says_already(demo: Demo) -> None:
    assert demo.run("lock").status == 0
    first = demo.run("apply")
    assert first.status == 0, first.err
    assert "applied 2 patches to 3 files" in first.out
    assert "verified: 3 files as locked" in first.out
    assert b"self.starts = 1" in (demo.site / "demo/core.py").read_bytes()
    patched = demo.snapshot()
    again = demo.run("apply")
    assert again.status == 0
    assert "already applied" in again.out
    assert demo.snapshot() == patched


def test_revert_restores_every_byte_and_mode(demo: Demo) -> None:
    before = demo.snapshot()
    demo.run("apply")
    assert demo.snapshot() != before
    done = demo.run("revert")
    assert done.status == 0
    assert "the tree is pristine" in done.out
    assert demo.snapshot() == before
    assert "nothing to revert" in demo.run("revert").out


def test_dry_run_changes_nothing(demo: Demo) -> None:
    before = demo.snapshot()
    done = demo.run("apply", "--dry-run")
    assert done.status == 0
    assert "would apply 2 patches" in done.out
    assert demo.snapshot() == before


def test_upto_applies_a_beginning_and_apply_goes_on(demo: Demo) -> None:
    demo.run("lock")
    part = demo.run("apply", "--upto", "log")
    assert part.status == 0, part.err
    assert not (demo.site / "demo/extra.py").exists()
    state = demo.run("verify", "--format", "json")
    assert state.status == 1
    assert [p["result"] for p in state.json["patches"]] == ["applied", "pristine"]
    assert "up to log" in " ".join(state.json["notes"])
    assert demo.run("apply").status == 0
    assert demo.run("verify").status == 0


def test_unknown_upto_names_the_nearest(demo: Demo) -> None:
    done = demo.run("apply", "--upto", "nmaes")
    assert done.status == 2
    assert "did you mean 'names'?" in done.err


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_failing_patch_changes_nothing_and_is_named(demo: Demo, format: str) -> None:
    path = demo.site / "demo/data/text.txt"
    path.write_bytes(path.read_bytes().replace(b"two", b"deux"))
    record = demo.site / "demo-1.0.dist-info/RECORD"
    before = demo.snapshot()
    done = demo.run("apply", "--format", format)
    assert done.status == 1
    assert demo.snapshot() == before
    assert record.exists()
    if format == "text":
        assert "patches/demo-1.0/names.patch:12" in done.err
        assert "data/text.txt, hunk 1 of 1" in done.err
        assert "- two" in done.out
        assert "+ deux" in done.out
        assert "nothing was changed" in done.out
    else:
        entry = done.json["patches"][1]
        assert (entry["result"], entry["reason"], entry["file"], entry["hunk"]) == (
            "failed",
            "context",
            "data/text.txt",
            1,
        )
        assert entry["line"] == 12
        assert done.json["status"] == 1


def test_github_annotates_the_patch_at_fault(demo: Demo) -> None:
    demo.write_patches(log=LOG.replace(b"running = True", b"running = Treu"), names=NAMES)
    done = demo.run("apply", "--format", "github")
    assert done.status == 1
    assert "::error file=patches/demo-1.0/log.patch,line=15,title=patchforge%3A context::" in done.out


def test_a_foreign_edit_is_named_though_the_hunks_would_fit(demo: Demo) -> None:
    path = demo.site / "demo/core.py"
    path.write_bytes(CORE.replace(b"import os", b"import io"))
    before = demo.snapshot()
    done = demo.run("apply")
    assert done.status == 1
    assert "core.py: its bytes are not those that were installed" in done.err
    assert demo.snapshot() == before


def test_another_version_is_refused_and_can_be_allowed(demo: Demo) -> None:
    os.rename(demo.site / "demo-1.0.dist-info", demo.site / "demo-1.1.dist-info")
    text = (demo.site / "demo-1.1.dist-info/RECORD").read_text().replace("demo-1.0", "demo-1.1")
    (demo.site / "demo-1.1.dist-info/RECORD").write_text(text)
    done = demo.run("apply")
    assert done.status == 1
    assert "demo 1.1 is installed" in done.err
    assert demo.run("apply", "--allow-version").status == 0


def test_a_stale_lock_stops_apply_until_it_is_locked_again(demo: Demo) -> None:
    demo.run("lock")
    demo.write_patches(log=LOG, names=NAMES.replace(b"zwei", b"deux"))
    done = demo.run("apply")
    assert done.status == 1
    assert "patchforge lock" in done.err
    assert demo.run("apply", "--dry-run", "--unlocked").status == 0
    assert demo.run("lock").status == 0
    assert demo.run("apply").status == 0


def test_a_new_series_replaces_the_old_one(demo: Demo) -> None:
    before = demo.snapshot()
    demo.run("apply")
    demo.write_patches(names=NAMES.replace(b"zwei", b"deux"))
    done = demo.run("apply")
    assert done.status == 0, done.err
    assert "replaces the series applied before (2 patches)" in done.err
    assert (demo.site / "demo/core.py").read_bytes() == CORE
    assert b"deux" in (demo.site / "demo/data/text.txt").read_bytes()
    demo.run("revert")
    assert demo.snapshot() == before


def test_a_result_that_does_not_compile_is_refused(demo: Demo) -> None:
    demo.write_patches(log=LOG.replace(b"self.starts = 1", b"self.starts = = 1"))
    before = demo.snapshot()
    done = demo.run("apply")
    assert done.status == 1
    assert "core.py would not compile" in done.err
    assert demo.snapshot() == before


def test_offsets_are_reported_and_exact_forbids_them(demo: Demo) -> None:
    shifted = LOG.replace(b"@@ -4,6 +4,7 @@ import os", b"@@ -9,6 +9,7 @@ import os")
    demo.write_patches(log=shifted)
    done = demo.run("apply", "--dry-run", "--format", "json")
    assert done.status == 0
    assert done.json["patches"][0]["offsets"] == [{"file": "core.py", "hunk": 1, "offset": -5}]
    refused = demo.run("apply", "--exact")
    assert refused.status == 1
    assert "offsets are forbidden" in refused.err


def test_compile_writes_bytecode_that_checks_its_source(demo: Demo) -> None:
    assert demo.run("apply", "--compile").status == 0
    caches = list((demo.site / "demo/__pycache__").glob("core.*.pyc"))
    assert len(caches) == 1
    assert int.from_bytes(caches[0].read_bytes()[4:8], "little") == 3


def test_bare_mode_applies_reverts_and_knows_it(demo: Demo) -> None:
    tree = demo.site / "demo"
    words = ["--quilt", str(demo.patches), "--tree", str(tree)]
    shutil.copy(demo.series / "series", demo.patches / "series")
    before = demo.snapshot()
    from patchforge import cli

    def run(name: str, *more: str) -> tuple[int, str]:
        demo.capture()
        status = cli.run([name, *(words if name != "lint" else words[:2]), *more])
        return status, "".join(demo.capture())

    assert run("apply")[0] == 0
    assert (tree / "extra.py").read_bytes() == b"NEW = True\n"
    status, text = run("apply")
    assert status == 0
    assert "already applied" in text
    assert run("verify")[0] == 0
    assert run("lint")[0] == 0
    assert run("revert")[0] == 0
    assert demo.snapshot() == before
    status, text = run("verify")
    assert status == 1
    assert "pristine" in text
    assert run("revert")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fetch"], "--tree and --fetch name different trees"),
        (["--flavor", "cpu"], "--flavor says which wheel --fetch gets"),
        (["demo-2.0"], "no pin 'demo-2.0' in this project"),
        (["-p", "2"], "-p is for a bare series"),
        (["--format", "yaml"], "'yaml' is not one of"),
        (["--nonsense"], "No such option"),
    ],
)
def test_wrong_usage_is_status_2_with_a_message(demo: Demo, arguments: list[str], message: str) -> None:
    done = demo.run("apply", *arguments)
    assert done.status == 2
    assert message in done.err


def test_wrong_usage_under_json_is_json(demo: Demo) -> None:
    done = demo.run("apply", "--format", "json", "--nonsense")
    assert done.status == 2
    assert done.json["status"] == 2
    assert done.json["problems"][0]["reason"] == "usage"
