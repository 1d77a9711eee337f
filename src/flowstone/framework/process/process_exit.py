"""At the interpreter's exit, threads that are in this package's code stop before the interpreter goes.

Python ends a daemon thread where it next takes the interpreter's lock. If that is within a call of torch
(freeing a tensor is enough) the C++ runtime ends the whole process: "terminate called without an active
exception", exit status 134. A program whose queue runners or other daemon threads still run steps when it
ends would often die so, after it did all its work.

`stop_threads_at_exit` has each such thread stop at its next line of Python, whoever began it, and waits for
kernels that still compute, up to `PATIENCE_S`. Threads that wait (for a queue's elements, for a socket) are
left where they are. The functions that a program registers with `atexit` run before. No error is raised in
the threads, and none of their ``finally`` blocks run.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import logging
import os
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

PATIENCE_S = 5.0
_PATIENCE_WITH_OTHERS_S = 0.2  # threads that compute outside of this package; they may be between two steps
_LOOKS = 3  # in a row that find nobody at work
_BETWEEN_LOOKS_S = 0.002
_SWITCH_S = 1e-4  # others get the interpreter's lock within this time

_PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"
# Code whose locks the rest of the exit takes: nobody may stop while holding them.
_NEEDED = (str(Path(logging.__file__).parent), "<frozen importlib")

_never = threading.Lock()
_never.acquire()
_stopped: set[int] = set()  # identities of threads


class _Stop(BaseException):
    """Stops the thread that makes one; raised in another thread, it is made there.

    In code that the exit needs, it is an exception like others, by which the thread frees locks and ends.
    """

    def __init__(self) -> None:
        super().__init__()
        if not _place(sys._getframe())[1]:
            _stopped.add(threading.get_ident())
            _never.acquire()


def stop_threads_at_exit() -> None:
    """Has it happen; to be called early, for functions are called at exit in the reverse order."""
    atexit.register(_stop_threads)


def _stop_threads() -> None:
    if threading.active_count() == 1:
        return
    sys.setswitchinterval(_SWITCH_S)
    tell = threading.excepthook
    threading.excepthook = lambda failure: None if failure.exc_type is _Stop else tell(failure)
    began, quiet, asked, before = time.monotonic(), 0, set[int](), dict[int, str]()
    while quiet < _LOOKS and (waited := time.monotonic() - began) < PATIENCE_S:
        is_quiet, stacks = True, sys._current_frames()
        for thread in threading.enumerate():
            name = thread.ident
            if name is None or name in _stopped or thread is threading.current_thread():
                continue
            state = _state(thread.native_id)
            rests, before[name] = state == before.get(name), state
            if name in asked:
                is_quiet &= rests
                continue
            is_here, is_needed = _place(stacks.get(name))
            if is_here and not is_needed and _ask_to_stop(name):
                asked.add(name)
            if is_here or (waited < _PATIENCE_WITH_OTHERS_S and not rests):
                is_quiet = False
        quiet = quiet + 1 if is_quiet else 0
        del stacks
        time.sleep(_BETWEEN_LOOKS_S)


def _place(frame: FrameType | None) -> tuple[bool, bool]:
    """Whether the stack of a thread is in this package's code, and whether in code that the exit needs."""
    files = []
    while frame is not None:
        files.append(frame.f_code.co_filename)
        frame = frame.f_back
    return (
        any(file.startswith(_PACKAGE) for file in files),
        any(file.startswith(_NEEDED) for file in files),
    )


def _ask_to_stop(name: int) -> bool:
    """Has a thread stop at its next line; False if it has ended."""
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    return bool(raise_in(ctypes.c_ulong(name), ctypes.py_object(_Stop)))


def _state(number: Any) -> str:
    """What the system says that a thread does: equal in two looks if it waited from one to the other.

    A thread that waits for the interpreter's lock looks for it every now and then, and so does not rest. ""
    where the system does not say: such a thread counts as waiting.
    """
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/self/task/{number}/status").read_text().splitlines()
        state = next(line for line in lines if line.startswith("State:"))
        waits = next(line for line in lines if line.startswith("voluntary_ctxt_switches:"))
        return f"{time.monotonic()}" if "R" in state.split()[1] else waits
    return ""
