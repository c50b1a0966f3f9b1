"""The command line in a forked child: a process with its own environment, directory and output, as a user starts one.

What it does not do is start an interpreter and import everything again, which costs more than most of what is tested.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from patchforge import cli


def run(words: Sequence[str], env: Mapping[str, str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``patchforge WORDS``; return its status and what it, or the program it became, said."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the child uses none that it inherits
            child = os.fork()
        if child == 0:
            _become(words, env, cwd, out.fileno(), err.fileno())
        _, status = os.waitpid(child, 0)
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode())
    return subprocess.CompletedProcess([*words], os.waitstatus_to_exitcode(status), *said)


def _become(words: Sequence[str], env: Mapping[str, str], cwd: Path | None, out: int, err: int) -> NoReturn:
    status = 70
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "wb", closefd=False), encoding="utf-8")
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "wb", closefd=False), encoding="utf-8")
        os.environ.clear()
        os.environ.update(env)
        if cwd is not None:
            os.chdir(cwd)
        cli.main([*words])
    except SystemExit as done:
        status = done.code if isinstance(done.code, int) else 0 if done.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
