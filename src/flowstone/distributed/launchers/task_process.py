"""`TaskProcess`: a task's process, in a session and process group of its own, with its output.

What the program writes to standard output and standard error comes through one pipe, in the order written.
When the program has ended, so do the processes that it has left behind in its group.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

from flowstone.distributed.launchers.orphan_guard import OrphanGuard

__all__ = ["TaskProcess"]

_CHUNK = 1 << 16
_LONGEST_LINE = 1 << 14


class TaskProcess:
    """Runs `command` with these variables as its environment, in `folder`, under the guard.

    `grace_s` is how long it may take to end after SIGTERM, before SIGKILL. `was_ended` says whether it was
    told to end, `is_silent` whether there is nobody any more who could write.
    """

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str],
        guard: OrphanGuard,
        grace_s: float,
        folder: str | None = None,
    ) -> None:
        self._guard = guard
        self._grace_s = grace_s
        self._kill_at = float("inf")
        self._rest = b""
        self.status: int | None = None
        self.was_ended = False
        self.is_silent = False
        self._process = subprocess.Popen(
            command,
            env=dict(variables),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=guard.announcement(),
            bufsize=0,
        )
        assert self._process.stdout is not None
        self._output = self._process.stdout.fileno()
        os.set_blocking(self._output, False)

    @property
    def pid(self) -> int:
        """The number of the process, and of its group."""
        return self._process.pid

    def fileno(self) -> int:
        """The pipe of its output, for selectors."""
        return self._output

    def poll(self) -> int | None:
        """The exit status once the process has ended; kills it if its grace period is over."""
        if self.status is None:
            if time.monotonic() > self._kill_at:
                self._signal(signal.SIGKILL)
            self.status = self._process.poll()
            if self.status is not None:
                self._signal(signal.SIGKILL)  # what it has left behind
                self._guard.forget(self.pid)
        return self.status

    def end(self) -> None:
        """Asks it to end; `poll` sees to it."""
        if self.status is None and not self.was_ended:
            self.was_ended = True
            self._kill_at = time.monotonic() + self._grace_s
            self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it at once, and waits for that."""
        if self.status is None:
            self.was_ended = True
            self._signal(signal.SIGKILL)
            self._process.wait()
        self.poll()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def read_lines(self) -> list[str]:
        """The lines that it has written since the last call, at the end also one that is not complete."""
        text = self._rest
        with contextlib.suppress(BlockingIOError):
            while len(text) < 16 * _CHUNK:  # others want to be read as well
                chunk = os.read(self._output, _CHUNK)
                text += chunk
                if not chunk:
                    self.is_silent = True
                    break
        *lines, self._rest = text.split(b"\n")
        if self._rest and (self.is_silent or len(self._rest) > _LONGEST_LINE):
            lines.append(self._rest)
            self._rest = b""
        return [line.decode(errors="replace").removesuffix("\r") for line in lines]

    def read_rest(self) -> list[str]:
        """All that it has written, after its end."""
        lines: list[str] = []
        while found := self.read_lines():
            lines += found
        if self._rest:  # of what it has left behind, which still has the pipe
            lines.append(self._rest.decode(errors="replace"))
            self._rest = b""
        return lines

    def close(self) -> None:
        """Gives the pipe back."""
        assert self._process.stdout is not None
        self._process.stdout.close()
