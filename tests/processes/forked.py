"""Programs in processes of their own, which are forked from one that has flowstone loaded.

A start takes a hundredth of the time of `python -m flowstone`, most of which is the import of torch. It is
for tests of what programs do; those of how Python starts them, and of variables that flowstone reads when it
is imported, use `subprocess`. `Process` and `run` are like `subprocess.Popen` and `subprocess.run`.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

SOURCE = str(Path(__file__).parents[2] / "src")
_SERVER = str(Path(__file__).with_name("forking_server.py"))


@functools.cache
def _server(loaded: tuple[str, ...]) -> socket.socket:
    """The way to the server that has these modules loaded; it ends when this process does."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    path = os.pathsep.join(filter(None, (SOURCE, os.environ.get("PYTHONPATH"))))
    with its:
        subprocess.Popen(
            [sys.executable, _SERVER, str(its.fileno()), *loaded],
            env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[its.fileno()],
            start_new_session=True,  # what interrupts the tests does not interrupt it
        ).returncode = 0  # nobody waits for it
    return ours


class Process:
    """The command `flowstone WORDS`, or a Python program of a file or a text with WORDS as its arguments.

    `input`, `output` and `errors` are numbers of open files. Without an output it is the pipe `stdout`,
    which lines are read from, and `joins` says that errors go there, too. `loaded`: modules that the process
    it is forked from has, besides flowstone.
    """

    def __init__(
        self,
        words: Sequence[str] = (),
        script: str = "",
        code: str = "",
        *,
        folder: str | Path = ".",
        environment: Mapping[str, str] | None = None,
        input: int | None = None,
        output: int | None = None,
        errors: int = 2,
        joins: bool = False,
        loaded: tuple[str, ...] = (),
    ) -> None:
        self.returncode: int | None = None
        request = {
            "words": list(words),
            "script": str(script),
            "code": code,
            "folder": os.path.abspath(folder),
            "environment": dict(os.environ if environment is None else environment),
        }
        with contextlib.ExitStack() as stack:
            if input is None:
                input = stack.enter_context(open(os.devnull)).fileno()
            if output is None:
                self.stdout, output = _pipe(stack)
            self._status, told = _pipe(stack)
            descriptors = [input, output, output if joins else errors, told]
            socket.send_fds(_server(loaded), [json.dumps(request).encode()], descriptors)
        self.pid = int(self._status.readline())

    def wait(self, timeout: float | None = None) -> int:
        """Its status, once it has ended; negative: minus the signal that has ended it."""
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._status, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            with self._status:
                self.returncode = int(self._status.readline())
        return self.returncode

    def poll(self) -> int | None:
        """Its status, None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """Sends it a signal, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _pipe(stack: contextlib.ExitStack) -> tuple[IO[str], int]:
    """A pipe's end to read from, and the other, which the stack closes."""
    start, end = os.pipe()
    stack.callback(os.close, end)
    return os.fdopen(start), end


def run(
    words: Sequence[str] = (),
    script: str = "",
    code: str = "",
    *,
    given: str = "",
    timeout: float = 120,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """What a program makes of its input, the text that it is `given`; `options` are those of `Process`."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3)]
        files[0].write(given)
        files[0].seek(0)
        numbers = dict(zip(("input", "output", "errors"), [file.fileno() for file in files]))
        process = Process(words, script, code, **numbers, **options)
        try:
            status = process.wait(timeout)
        finally:
            process.kill()
            process.wait()
        for file in files:
            file.seek(0)
        return subprocess.CompletedProcess(list(words), status, *[file.read() for file in files[1:]])
