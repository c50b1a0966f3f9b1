"""The canonical diff of a commit: the same bytes wherever and with whatever configuration it is made."""

from __future__ import annotations

from patchforge.branch.git import Commit, Repository
from patchforge.errors import InputError, Refused

_DIFF = (
    *("diff-tree", "-p", "-r", "--full-index", "--unified=3", "--inter-hunk-context=0", "--find-renames=50%"),
    *("--diff-algorithm=myers", "--no-indent-heuristic", "--no-color", "--no-ext-diff", "--no-textconv"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--no-relative", "--submodule=short", "-O/dev/null"),
)
_MODES = ("100644", "100755", "000000")


def canonical_diff(repository: Repository, parent: str, commit: Commit) -> bytes:
    """The diff of ``commit``: git's form, full ids, section headings, no dates.  Raises for what no patch may hold."""
    for entry in repository.changed(parent, commit.id):
        for mode in (entry.old_mode, entry.new_mode):
            if mode not in _MODES:
                what = {"120000": "a symbolic link", "160000": "a submodule"}.get(mode, f"of mode {mode}")
                raise InputError(
                    f"commit {commit.id[:10]}: {entry.path} is {what}, which no patch of a series may hold",
                    reason="path",
                )
    diff = repository.run(*_DIFF, parent, commit.id)
    if not diff:
        raise InputError(
            f"commit {commit.id[:10]} changes nothing",
            reason="empty",
            hint="drop it: git rebase -i, then delete its line",
        )
    for line in diff.split(b"\n"):
        if line.startswith(b"Binary files "):
            raise Refused(f"commit {commit.id[:10]}: {line.decode('utf-8', 'replace')}: text only", reason="binary")
        if line.startswith(b"@@"):
            break
    return diff
