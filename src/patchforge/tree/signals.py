"""Signals that ask the process to end wait while a change may not be left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from patchforge.errors import Interrupted

_HELD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def held() -> Iterator[None]:
    """Inside, SIGINT, SIGTERM and SIGHUP are only noted; the first that came is raised as :class:`Interrupted` at the end.

    Not instead of an error, and once where one is inside another.  The handlers are changed, not the thread's mask, which
    would leave the signals to another thread.  They belong to the main thread: in any other nothing is done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {}
    try:
        for number in _HELD:
            handler = signal.getsignal(number)
            if handler is not None and handler is not signal.SIG_IGN:
                before[number] = handler
                signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        outer = signal.getsignal(came[0])
        if getattr(outer, "__module__", "") == __name__ and callable(outer):
            outer(came[0], None)  # whoever holds them too is to know
        else:
            raise Interrupted(came[0], "the change it came into was brought to its end")
