"""Processes that a program starts with `multiprocessing` run over flowstone as the program does.

A forked process has all that its parent had. A spawned one begins with a new Python, which `install` has
begin with `import flowstone.compat.tensorflow`.
"""

from __future__ import annotations

from multiprocessing import spawn
from typing import Any

__all__ = ["install"]

_BEGINNING = "import flowstone.compat.tensorflow; "


def install() -> None:
    """Has spawned processes find flowstone under TensorFlow's name; a second call changes nothing."""
    module: Any = spawn
    command_line = module.get_command_line
    if getattr(command_line, "over_flowstone", False):
        return

    def get_command_line(**keywords: Any) -> list[str]:
        command: list[str] = command_line(**keywords)
        if "-c" in command:
            place = command.index("-c") + 1
            command[place] = _BEGINNING + command[place]
        return command

    get_command_line.__dict__["over_flowstone"] = True
    module.get_command_line = get_command_line
