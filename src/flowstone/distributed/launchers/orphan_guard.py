"""`OrphanGuard`: a small process that ends the tasks when the launcher has gone without doing so itself.

It reads a pipe that the launcher alone holds open. A task writes its process group there before it becomes
its program, so there is no moment at which the guard does not know it. When the pipe ends, because the
launcher ended or was killed, the guard kills the groups that have not been taken off its list, and with
them what the tasks have started.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable

__all__ = ["OrphanGuard"]

_PROGRAM = """\
import os, signal, sys
groups = set()
for line in sys.stdin:
    if line[0] == "+":
        groups.add(int(line[1:]))
    else:
        groups.discard(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


class OrphanGuard:
    """Watches over the process groups that are announced to it, until `close`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            bufsize=0,
        )
        assert self._process.stdin is not None
        self._pipe = self._process.stdin.fileno()

    def announcement(self) -> Callable[[], None]:
        """What a new process calls before it becomes its program (`preexec_fn`), as leader of its group."""
        pipe = self._pipe

        def announce() -> None:
            os.write(pipe, b"+%d\n" % os.getpid())

        return announce

    def forget(self, group: int) -> None:
        """The group has ended: its number may soon be another's."""
        with contextlib.suppress(OSError):  # without a guard there is nothing to tell
            os.write(self._pipe, b"-%d\n" % group)

    def close(self) -> None:
        """Ends the guard, and with it all groups that it was not told to forget."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
