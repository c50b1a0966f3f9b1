"""Watching, and breaking, the system calls that change what lies below a directory; independent of what the code announces."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

CALLS = ("open", "write", "fsync", "fchmod", "fchown", "chmod", "mkdir", "rename", "replace", "unlink", "rmdir")
CALLS += ("link", "symlink", "truncate", "ftruncate", "utime", "mknod")
Tell = Callable[[str, str], None]


def _path(call: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    if isinstance(args[0], int):
        return os.readlink(f"/proc/self/fd/{args[0]}")
    name, folder = args[0], kwargs.get("dir_fd")
    if call in ("rename", "replace", "link"):
        name, folder = args[1], kwargs.get("dst_dir_fd")
    if folder is None:
        return os.path.abspath(name)
    return os.path.join(os.readlink(f"/proc/self/fd/{folder}"), name)


def _nothing(call: str, path: str) -> None:
    return None


@contextmanager
def watching(root: Path, before: Tell = _nothing, after: Tell = _nothing) -> Iterator[None]:
    """Tell of every call that changes something below ``root``: ``before`` it, which may raise, and ``after`` it worked."""
    top = str(root)

    def wrap(call: str) -> Callable[..., Any]:
        real = getattr(os, call)

        def replacement(*args: Any, **kwargs: Any) -> Any:
            if call == "open" and not (len(args) > 1 and args[1] & os.O_CREAT):
                return real(*args, **kwargs)
            path = _path(call, args, kwargs)
            if path != top and not path.startswith(f"{top}/"):
                return real(*args, **kwargs)
            before(call, path[len(top) + 1 :])
            done = real(*args, **kwargs)
            after(call, path[len(top) + 1 :])
            return done

        return replacement

    # The loop that picks the calls apart may not watch itself.
    wrapped = {call: wrap(call) for call in CALLS}
    with mock.patch.multiple(os, **wrapped):
        yield
