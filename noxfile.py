"""Test sessions.  ``nox`` runs all of them; each installs what it needs, by hash."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nox

nox.options.sessions = [
    "lint",
    "types",
    "tests",
    "docs",
    "wheel",
    "series",
    "kernels_gdn",
    "kernels",
    "cardless",
    "engine",
    "image",
]
nox.options.error_on_missing_interpreters = True
nox.options.reuse_existing_virtualenvs = True
nox.needs_version = ">=2024.10.9"

WHEELS = Path("build")


def install(session: nox.Session, lock: str, *, project: bool = True) -> None:
    """Install the locked requirements, then patchforge itself, from a wheel as a user gets it."""
    session.install("--quiet", "--require-hashes", "-r", f"requirements/{lock}.txt")
    if project:
        session.install("--quiet", "--no-deps", ".")


@nox.session
def lint(session: nox.Session) -> None:
    """Format and lint."""
    install(session, "dev", project=False)
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Strict types."""
    install(session, "dev")
    session.run("mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """The fast tests: no network, under two minutes on two cores."""
    install(session, "dev")
    folders = [
        f"tests/{name}"
        for name in ("unit", "differential", "fuzz", "crash", "cli", "branch", "evidence", "serving", "image")
    ]
    session.run("pytest", "-q", "-n", "2", "--dist", "worksteal", *(session.posargs or folders))


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation says what the program does."""
    install(session, "dev")
    session.run("pytest", "-q", "tests/docs", *session.posargs)


@nox.session
def wheel(session: nox.Session) -> None:
    """The flagship series on the real wheel, fetched through pip."""
    install(session, "dev")
    session.run("pytest", "-q", "tests/wheel", *session.posargs)


def both_trees(session: nox.Session) -> dict[str, str]:
    """Make the pristine and the patched tree; returns the environment that names them."""
    project, trees = Path.cwd(), Path(session.create_tmp()).resolve()
    for name in ("pristine", "patched"):
        tree = trees / name
        if not tree.is_dir():
            session.run("python", "tests/series/unpack.py", str(project), str(tree))
    session.run("patchforge", "apply", "--tree", str(trees / "patched"))
    return {
        "PATCHFORGE_PRISTINE_TREE": str(trees / "pristine"),
        "PATCHFORGE_PATCHED_TREE": str(trees / "patched"),
        "PATH": os.environ["PATH"],
    }


@nox.session
def series(session: nox.Session) -> None:
    """What each patch of the flagship series does, in vLLM's own code, pristine beside patched."""
    install(session, "engine")
    session.run("pytest", "-q", "tests/series", *session.posargs, env=both_trees(session))


@nox.session
def kernels_gdn(session: nox.Session) -> None:
    """Triton kernels of speculative decoding, pristine beside patched, in the interpreter and through the compiler."""
    install(session, "engine")
    session.run("pytest", "-q", "tests/kernels_gdn", *session.posargs, env=both_trees(session))


@nox.session
def kernels(session: nox.Session) -> None:
    """The repair of Triton's interpreter, and verify attention in it against a float64 reference."""
    install(session, "engine")
    session.run("pytest", "-q", "tests/kernels", *session.posargs, env=both_trees(session))


@nox.session
def cardless(session: nox.Session) -> None:
    """Speculative decoding in the whole engine on CPU tensors, its Triton kernels interpreted, with drafts and without."""
    install(session, "engine")
    session.run("pytest", "-q", "tests/cardless", *session.posargs, env=both_trees(session))


@nox.session
def engine(session: nox.Session) -> None:
    """The flagship series on running servers of vLLM's CPU build, pristine beside patched, end to end."""
    install(session, "engine")
    project, trees = Path.cwd(), Path(session.create_tmp()).resolve()
    pristine, patched = trees / "pristine", trees / "patched"
    if not pristine.is_dir():
        session.run("python", "tests/series/unpack.py", str(project), str(pristine), "cpu")
    # The patched one shares what no patch touches: an engine writes no file of another.
    shutil.rmtree(patched, ignore_errors=True)
    shutil.copytree(pristine, patched, copy_function=os.link)
    session.run("patchforge", "apply", "--tree", str(patched))
    env = {
        "PATCHFORGE_PRISTINE_ENGINE": str(pristine),
        "PATCHFORGE_PATCHED_ENGINE": str(patched),
        "PATH": os.environ["PATH"],
    }
    session.run("pytest", "-q", "tests/engine", *session.posargs, env=env)


@nox.session
def image(session: nox.Session) -> None:
    """Real images: built by buildah on a Debian root, run, asked for tokens, stopped; looked at by skopeo and umoci."""
    install(session, "image")
    session.run("pytest", "-q", "tests/buildimage", *session.posargs)
