"""What the log of an upstream repository says of a change, and a repository that may be anybody's."""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchforge.errors import InputError, Refused
from patchforge.releases.history import AtCommit, History, Repository, is_repository
from repository import Upstream


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close every repository a test opens, as the command does."""
    made: list[Repository] = []
    begin = Repository.__init__

    def noted(self: Repository, directory: Path) -> None:
        begin(self, directory)
        made.append(self)

    monkeypatch.setattr(Repository, "__init__", noted)
    yield
    for repository in made:
        repository.close()


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    made = Upstream.create(tmp_path / "up")
    made.commit("Begin", {"demo/a.py": b"one\n", "demo/run.sh": b"#!\n", "docs/x.md": b"x\n"})
    made.tag("v1.0")
    return made


def history(upstream: Upstream, ref: str = "HEAD", base: str | None = "v1.0") -> History:
    repository = Repository(upstream.directory)
    commit = repository.commit(ref)
    assert commit is not None
    return History(repository, commit, repository.commit(base) if base else None, "demo/")


def test_what_carries_a_number(upstream: Upstream) -> None:
    upstream.commit("Mend it (#12)")
    newest = upstream.commit("[Core] Mend it again (#12)")
    upstream.commit("Mend #13, and (#120)")
    found = history(upstream).carries(12)
    assert found is not None and found.id == newest
    assert found.short == f"{newest[:9]} ([Core] Mend it again (#12))"
    assert history(upstream).carries(13) is None
    assert history(upstream).carries(20) is None
    assert history(upstream).reverted(12) is None


def test_a_revert_is_not_carrying(upstream: Upstream) -> None:
    landed = upstream.commit("Mend it (#12)")
    revert = upstream.commit(f'Revert "Mend it (#12)" (#15)\n\nThis reverts commit {landed}.')
    found = history(upstream)
    assert found.reverted(12).id == revert  # type: ignore[union-attr]
    assert found.carries(12).id == landed  # type: ignore[union-attr]
    assert found.carries(15) is None


@pytest.mark.parametrize(
    "subject", ['Revert "Mend it (#12)"', '[Bugfix] Revert "Mend it (#12)" (#15)', "Revert it for now (#15)"]
)
def test_reverts_by_subject_and_by_body(upstream: Upstream, subject: str) -> None:
    landed = upstream.commit("Mend it (#12)")
    body = "" if "(#12)" in subject else f"\n\nThis reverts commit {landed[:12]}."
    revert = upstream.commit(subject + body)
    assert history(upstream).reverted(12).id == revert  # type: ignore[union-attr]


@pytest.mark.parametrize("subject", ["Mend it (#12)", 'Reland "Mend it" (#17), first in #12', "Re-apply #12 (#18)"])
def test_brought_again(upstream: Upstream, subject: str) -> None:
    landed = upstream.commit("Mend it (#12)")
    upstream.commit(f'Revert "Mend it (#12)"\n\nThis reverts commit {landed}.')
    upstream.commit(subject)
    assert history(upstream).reverted(12) is None


def test_the_revert_of_a_revert(upstream: Upstream) -> None:
    landed = upstream.commit("Mend it (#12)")
    revert = upstream.commit(f'Revert "Mend it (#12)"\n\nThis reverts commit {landed}.')
    upstream.commit(f'Reapply "Mend it (#12)"\n\nThis reverts commit {revert}.')
    assert history(upstream).reverted(12) is None


def test_a_revert_of_the_commit_a_cherry_pick_came_from(upstream: Upstream) -> None:
    origin = "0123456789abcdef0123456789abcdef01234567"
    upstream.commit(f"Mend it (#12)\n\n(cherry picked from commit {origin})")
    revert = upstream.commit(f'Revert "Mend"\n\nThis reverts commit {origin}.')
    assert history(upstream).reverted(12).id == revert  # type: ignore[union-attr]


def test_a_merge_by_its_commit(upstream: Upstream) -> None:
    """Not every project writes the number into the subject."""
    merge = upstream.commit("Mend it")
    upstream.git("checkout", "--quiet", "v1.0")
    assert history(upstream).merged(merge) is None
    picked = upstream.commit(f"Mend it\n\n(cherry picked from commit {merge[:12]})")
    found = history(upstream).merged(merge)
    assert found is not None and found.id == picked
    assert history(upstream).merged(picked) == found
    assert history(upstream, "main").merged(merge).id == merge  # type: ignore[union-attr]


def test_a_revert_of_something_else(upstream: Upstream) -> None:
    upstream.commit("Mend it (#12)")
    other = upstream.commit("Another (#13)")
    upstream.commit(f'Revert "Another (#13)"\n\nThis reverts commit {other}.')
    assert history(upstream).reverted(12) is None


def test_reverted_after_the_release_does_not_count(upstream: Upstream) -> None:
    landed = upstream.commit("Mend it (#12)")
    upstream.tag("v1.1")
    upstream.commit(f'Revert "Mend it (#12)"\n\nThis reverts commit {landed}.')
    assert history(upstream, "v1.1").reverted(12) is None
    assert history(upstream).reverted(12) is not None


def test_who_touched_the_lines_since(upstream: Upstream) -> None:
    landed = upstream.commit("Mend it (#12)", {"demo/a.py": b"one\ntwo\nthree\n"})
    upstream.commit("Elsewhere", {"demo/b.py": b"b\n"})
    touched = upstream.commit("Touch it", {"demo/a.py": b"one\nTWO\nthree\n"})
    upstream.commit("Below it", {"demo/a.py": b"one\nTWO\nthree\nfour\n"})
    found = history(upstream)
    carried = found.carries(12)
    assert carried is not None and carried.id == landed
    assert [c.id for c in found.later(carried, "a.py", 2, 3)] == [touched]
    assert found.later(carried, "a.py", 3, 3) == []
    assert found.later(carried, "none.py", 1, 2) == []
    assert found.later(carried, "a.py", 700, 900) == []  # lines nobody has: nothing is said


def test_what_the_pin_has_and_the_release_lacks(upstream: Upstream) -> None:
    upstream.git("checkout", "--quiet", "-b", "releases/1", "v1.0")
    upstream.commit("Picked (#20)")
    upstream.commit("Only here (#21)")
    upstream.commit("Same words, no number")
    upstream.tag("v1.0.1")
    upstream.git("checkout", "--quiet", "main")
    upstream.commit("Picked otherwise (#20)")
    upstream.commit("Same words, no number")
    gone = upstream.commit("Not this (#21) but (#30)")
    upstream.commit(f'Revert "Not this (#21)"\n\nThis reverts commit {gone}.')
    upstream.tag("v1.1")
    assert [c.subject for c in history(upstream, "v1.1", "v1.0.1").lost()] == []
    upstream.git("checkout", "--quiet", "v1.0")
    upstream.commit("Picked otherwise (#20)")
    assert [c.subject for c in history(upstream, "HEAD", "v1.0.1").lost()] == [
        "Same words, no number",
        "Only here (#21)",
    ]
    assert history(upstream, "HEAD", None).lost() == []


def test_the_tree_of_a_commit(upstream: Upstream, tmp_path: Path) -> None:
    (upstream.directory / "demo/link.py").symlink_to("a.py")
    (upstream.directory / "demo/run.sh").chmod(0o755)
    odd = "demo/sp ace \u00e4.py"
    commit = upstream.commit("More", {odd: b"odd\n"})
    repository = Repository(upstream.directory)
    tree = AtCommit(repository, commit, "demo")
    assert tree.paths() == ["a.py", "run.sh", "sp ace \u00e4.py"]
    assert tree.read("a.py") == (b"one\n", False)
    assert tree.read("run.sh") == (b"#!\n", True)
    assert tree.read("sp ace \u00e4.py") == (b"odd\n", False)
    assert tree.read("link.py") is None and tree.read("../docs/x.md") is None
    assert tree.checksum("a.py") == (zlib.crc32(b"one\n"), 4)
    with pytest.raises(InputError, match="has no nowhere/"):
        AtCommit(repository, commit, "nowhere")


@pytest.mark.parametrize("prefix", ["src/", "python/"])
def test_a_package_below_the_top(tmp_path: Path, prefix: str) -> None:
    upstream = Upstream.create(tmp_path / "up")
    commit = upstream.commit("Begin", {f"{prefix}demo/a.py": b"one\n"})
    tree = AtCommit(Repository(upstream.directory), commit, "demo")
    assert (tree.prefix, tree.paths()) == (f"{prefix}demo/", ["a.py"])


def test_bare_and_linked_repositories(upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit("Mend it (#12)")
    bare, linked = tmp_path / "bare.git", tmp_path / "linked"
    upstream.git("clone", "--quiet", "--bare", ".", str(bare))
    upstream.git("worktree", "add", "--quiet", str(linked), "v1.0")
    for place, carries in ((bare, True), (linked, False)):
        assert is_repository(place)
        repository = Repository(place)
        commit = repository.commit("HEAD")
        assert commit is not None
        assert (History(repository, commit).carries(12) is not None) is carries
        assert AtCommit(repository, commit, "demo").read("a.py") == (b"one\n", False)


def test_what_is_no_repository(tmp_path: Path) -> None:
    assert not is_repository(tmp_path)
    assert not is_repository(tmp_path / "nothing")
    with pytest.raises(InputError, match="is not a git repository"):
        Repository(tmp_path)


@pytest.mark.parametrize("ref", ["nothing", "--all", "HEAD^{tree}x", "-c", "@{99}"])
def test_a_reference_to_nothing(upstream: Upstream, ref: str) -> None:
    assert Repository(upstream.directory).commit(ref) is None


def test_a_damaged_repository_is_refused_by_name(upstream: Upstream) -> None:
    repository = Repository(upstream.directory)
    commit = repository.commit("HEAD")
    assert commit is not None
    for path in (upstream.directory / ".git/objects").rglob("*"):
        if path.is_file():
            path.unlink()
    with pytest.raises(Refused, match=r"git log failed in .*up"):
        repository.log(commit)


def test_nothing_of_the_repository_or_the_caller_is_run_or_written(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.commit("Mend it (#12)", {"demo/a.py": b"one\ntwo\n"})
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    program.chmod(0o755)
    config = "\n".join(
        [
            f"[core]\n\tfsmonitor = {program}\n\tpager = {program}\n\tsshCommand = {program}\n\thooksPath = {tmp_path}",
            f'[diff "x"]\n\ttextconv = {program}\n\tcommand = {program}\n[diff]\n\texternal = {program}',
            f'[filter "x"]\n\tsmudge = {program}\n\tclean = {program}\n\tprocess = {program}',
            f"[gpg]\n\tprogram = {program}\n[log]\n\tshowSignature = true\n[credential]\n\thelper = {program}",
            f"[pager]\n\tlog = {program}\n\tblame = {program}\n[alias]\n\tlog = !{program}\n",
        ]
    )
    with (upstream.directory / ".git/config").open("a") as file:
        file.write(config)
    (upstream.directory / ".git/info/attributes").write_text("*.py diff=x filter=x\n")
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "PAGER", "GIT_SSH_COMMAND", "GIT_ASKPASS"):
        monkeypatch.setenv(name, str(program))
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.fsmonitor'='{program}'")
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    before = {p: p.stat().st_mtime_ns for p in upstream.directory.rglob("*") if p.is_file()}
    found = history(upstream)
    carried = found.carries(12)
    assert carried is not None
    found.later(carried, "a.py", 1, 2)
    found.lost()
    repository = Repository(upstream.directory)
    assert AtCommit(repository, carried.id, "demo").read("a.py") == (b"one\ntwo\n", False)
    repository.close()
    assert not ran.exists()
    assert {p: p.stat().st_mtime_ns for p in upstream.directory.rglob("*") if p.is_file()} == before


def test_a_partial_clone_does_not_reach_out(upstream: Upstream, tmp_path: Path) -> None:
    upstream.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    words = ["git", "clone", "--quiet", "--bare", "--filter=blob:none", f"file://{upstream.directory}", str(clone)]
    subprocess.run(words, check=True, env={"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null"})
    repository = Repository(clone)
    commit = repository.commit("HEAD")
    assert commit is not None
    tree = AtCommit(repository, commit, "demo")
    with pytest.raises(Refused, match="lacks the object") as caught:
        tree.read("a.py")
    assert "partial clone" in str(caught.value.hint)
