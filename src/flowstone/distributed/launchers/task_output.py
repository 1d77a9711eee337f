"""`TaskOutput`: the lines of all tasks on one screen, each under its task's name, and in a file a task.

    ps/0     | grpc://127.0.0.1:20711
    worker/1 | step 100: loss 2.31
    cluster  | worker/1 failed with exit 1 after 4.2 s; started again, 1 of 3

Names are coloured on a terminal, unless ``NO_COLOR`` is set. The files are ``ps-0.log``, ``worker-1.log`` …,
without names and colours.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

from flowstone.distributed.launchers.cluster_description import Task
from flowstone.framework.flags import environment

__all__ = ["TaskOutput"]

_COLORS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
_OWN_NAME = "cluster"


class TaskOutput:
    """Shows the lines of these tasks on `screen` and keeps them in `folder`, which is made if need be.

    Files of an earlier cluster in the folder are replaced.
    """

    def __init__(
        self, tasks: Sequence[Task], folder: Path, screen: IO[str] | None = None, own: IO[str] | None = None
    ) -> None:
        self.folder = folder
        self._screen = sys.stdout if screen is None else screen
        self._own = sys.stderr if own is None else own
        self._width = max([len(_OWN_NAME), *(len(str(task)) for task in tasks)])
        self._colors = {str(task): _COLORS[place % len(_COLORS)] for place, task in enumerate(tasks)}
        self._is_plain = "NO_COLOR" in environment()
        folder.mkdir(parents=True, exist_ok=True)
        self._files = {
            task: (folder / f"{task.job}-{task.index}.log").open("w", encoding="utf-8") for task in tasks
        }

    def show(self, task: Task, lines: Iterable[str]) -> None:
        """Shows lines that a task has written."""
        file = self._files[task]
        for line in lines:
            file.write(line + "\n")
            self._print(self._screen, str(task), line)
        file.flush()
        self._screen.flush()

    def say(self, line: str) -> None:
        """Shows a line of the launcher's own, on standard error."""
        self._print(self._own, _OWN_NAME, line)
        self._own.flush()

    def _print(self, stream: IO[str], name: str, line: str) -> None:
        text = name.ljust(self._width)
        if stream.isatty() and not self._is_plain:
            text = f"\033[{self._colors.get(name, 1)}m{text}\033[0m"
        stream.write(f"{text} | {line}\n")

    def close(self) -> None:
        """Closes the files."""
        for file in self._files.values():
            file.close()
