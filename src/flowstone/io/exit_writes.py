"""What a program leaves open for writing is written when the interpreter exits.

Programs often close neither their logs nor their files. `write_at_exit(writer)` has a writer's
`write_at_exit` called once at the exit, if the writer is still there; writers are not kept alive. It must
return within `PATIENCE_S` of waiting for other threads. Its errors are shown as those of any function that
`atexit` calls, and do not keep others from being written. Threads of this package still run at this time
(`framework/process/process_exit` stops them afterwards).
"""

from __future__ import annotations

import atexit
import itertools
import weakref
from typing import Protocol

__all__ = ["PATIENCE_S", "Writer", "done_writing", "write_at_exit"]

PATIENCE_S = 5.0


class Writer(Protocol):
    """What may have something to write."""

    def write_at_exit(self) -> None:
        """Hands what was given so far to the store."""


_numbers = itertools.count()
_open: weakref.WeakKeyDictionary[Writer, int] = weakref.WeakKeyDictionary()


def write_at_exit(writer: Writer) -> None:
    """Has `writer` asked at the exit, before those that were given earlier, on which it may write."""
    _open[writer] = next(_numbers)


def done_writing(writer: Writer) -> None:
    """`writer` has nothing left to write."""
    _open.pop(writer, None)


def _write_all() -> None:
    failure: Exception | None = None
    for writer in sorted(_open, key=_open.__getitem__, reverse=True):
        try:
            writer.write_at_exit()
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure


atexit.register(_write_all)
