"""Random edits of random trees, and the patches that git and GNU diff cut of them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

WORDS = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "",
    "    return x",
    "}",
    "# comment",
    "caf\xe9",
    "tab\there",
    "e\u0301",
    "x\x0cy",
]
NAMES = ["a.txt", "b c.txt", "d/e.pyi", "d/f/g.c", "h\u00e9.txt", "run.sh", "empty.txt", "z/y.cfg"]
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "x",
    "GIT_AUTHOR_EMAIL": "x@example.org",
    "GIT_COMMITTER_NAME": "x",
    "GIT_COMMITTER_EMAIL": "x@example.org",
}


def run(command: list[str], cwd: Path, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, env={**os.environ, **GIT}, check=False)


def content(chance: random.Random) -> bytes:
    """A file: a few to a few dozen lines, sometimes repetitive, CRLF or without a final newline."""
    size = chance.choice([0, 1, 2, 5, 12, 40, 90])
    words = WORDS if chance.random() < 0.3 else [f"line {n}" for n in range(200)]
    lines = [chance.choice(words) if words is WORDS else words[n] for n in range(size)]
    end = "\r\n" if chance.random() < 0.15 else "\n"
    data = "".join(line + end for line in lines).encode()
    if data and chance.random() < 0.2:
        data = data[: -len(end)]
    return data


def edited(data: bytes, chance: random.Random) -> bytes:
    """``data`` with insertions, deletions, replacements and moves."""
    lines = data.splitlines(keepends=True) if b"\x0c" not in data else [x + b"\n" for x in data.split(b"\n")[:-1]]
    for _ in range(chance.choice([1, 1, 2, 3, 6])):
        at = chance.randint(0, len(lines))
        kind = chance.choice(["insert", "delete", "replace", "move", "end"])
        if kind == "insert" or not lines:
            lines[at:at] = [b"new %d\n" % chance.randint(0, 9)] * chance.randint(1, 3)
        elif kind == "delete":
            del lines[at : at + chance.randint(1, 4)]
        elif kind == "replace":
            lines[at : at + 1] = [b"changed %d\n" % chance.randint(0, 9)]
        elif kind == "move":
            block = lines[at : at + 3]
            del lines[at : at + 3]
            to = chance.randint(0, len(lines))
            lines[to:to] = block
        elif lines[-1].endswith(b"\n"):
            lines[-1] = lines[-1][:-1]
        else:
            lines[-1] += b"\n"
    return b"".join(lines)


def make_tree(root: Path, chance: random.Random) -> None:
    for name in NAMES:
        if chance.random() < 0.8:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"" if name == "empty.txt" else content(chance))
            path.chmod(0o755 if name == "run.sh" else 0o644)


def edit_tree(root: Path, chance: random.Random) -> None:
    """Edit, delete, create, rename and copy files, and change modes."""
    files = sorted(p for p in root.rglob("*") if p.is_file())
    for path in files:
        draw = chance.random()
        if draw < 0.45:
            path.write_bytes(edited(path.read_bytes(), chance))
        elif draw < 0.52:
            path.unlink()
        elif draw < 0.60:
            target = root / f"moved/{path.name}"
            target.parent.mkdir(exist_ok=True)
            mode = path.stat().st_mode
            if not target.exists():
                path.rename(target)
                target.write_bytes(
                    edited(target.read_bytes(), chance) if chance.random() < 0.5 else target.read_bytes()
                )
                target.chmod(mode)
        elif draw < 0.65:
            target = root / f"{path.name}.copy"
            target.write_bytes(path.read_bytes() + b"and more\n")
        elif draw < 0.72:
            path.chmod(0o755 if path.stat().st_mode & 0o100 == 0 else 0o644)
    if chance.random() < 0.4:
        made = root / "fresh/new.txt"
        made.parent.mkdir(exist_ok=True)
        made.write_bytes(content(chance) or b"x\n")
    for folder in sorted((p for p in root.rglob("*") if p.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def files_of(root: Path) -> dict[str, tuple[bytes, bool]]:
    """Content and executable bit of every file."""
    return {
        p.relative_to(root).as_posix(): (p.read_bytes(), bool(p.stat().st_mode & 0o100))
        for p in sorted(root.rglob("*"))
        if p.is_file() and ".git" not in p.relative_to(root).parts
    }


def git_diff(old: Path, new: Path, work: Path, options: list[str]) -> bytes:
    """The diff git makes of two trees, through a repository of their own."""
    shutil.copytree(old, work)
    run(["git", "init", "-q"], work)
    run(["git", "add", "-A", "-f"], work)
    run(["git", "commit", "-q", "-m", "x", "--allow-empty"], work)
    for path in work.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(new, work, dirs_exist_ok=True)
    # git knows a file by size, inode and whole seconds: one made again in the same second could pass for the old one.
    (work / ".git/index").unlink(missing_ok=True)
    run(["git", "add", "-A", "-f"], work)
    return run(["git", "diff", "--cached", "--no-color", *options], work).stdout
