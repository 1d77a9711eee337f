"""Runs a TensorFlow 1 program as it is: `import tensorflow as tf` means flowstone in it.

    flowstone run program.py [arguments]
    flowstone run -m package.module [arguments]
    flowstone run - [arguments] < program.py

The program sees what Python itself would show it: `sys.argv` is its own, `sys.path[0]` its folder (the
current one for -m and -), `__name__` is "__main__". Its exit status is the command's, and a traceback begins
at its own first line. It finds the names that Python and NumPy have dropped since its time. Of a file of
Python 2 one message names the line.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Callable
from types import ModuleType, TracebackType

from flowstone.compat import child_processes, older_python, tensorflow_name
from flowstone.compat.older_python import python_2

NAME = "run"
SUMMARY = "run a TensorFlow 1 program, unchanged"

# Files whose frames lie between the command line and the program; tracebacks leave them out.
_RUNNER_FILES = frozenset({__file__, runpy.__file__, "<frozen runpy>"})


def declare(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `flowstone run`."""
    parser.usage = "flowstone run (program.py | -m package.module | -) [arguments]"
    declare_program(parser)


def declare_program(parser: argparse.ArgumentParser) -> None:
    """Adds what names a program and its arguments: `as_module`, `program`, `arguments`."""
    parser.add_argument("-m", dest="as_module", action="store_true", help="the program is a module's name")
    parser.add_argument("program", help="a Python file or a folder with __main__.py; - reads standard input")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's own arguments")


def execute(options: argparse.Namespace) -> int:
    """Runs the program in this process; its SystemExit passes through. Returns 0, or 1 after a traceback."""
    tensorflow_name.install()
    older_python.install()
    child_processes.install()
    if options.as_module:
        return run_module(options.program, options.arguments)
    if options.program == "-":
        return run_source(sys.stdin.read(), options.arguments)
    return run_path(options.program, options.arguments)


def run_path(path: str, arguments: list[str]) -> int:
    """Runs the file, or the folder with a `__main__.py`, at `path`. Returns 2 if there is none."""
    if not os.path.exists(path):
        print(f"flowstone run: no such file: {path}", file=sys.stderr)
        return 2
    sys.argv = [path, *arguments]
    if not os.path.isdir(path):
        # runpy puts the path of a folder in front, but not the folder of a file.
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    return _run(lambda: runpy.run_path(path, run_name="__main__"))


def run_module(name: str, arguments: list[str]) -> int:
    """Runs the module `name`, found from the current folder first."""
    sys.argv = [name, *arguments]
    sys.path.insert(0, os.getcwd())
    return _run(lambda: runpy.run_module(name, run_name="__main__", alter_sys=True))


def run_source(source: str, arguments: list[str]) -> int:
    """Runs the text of a program."""
    sys.argv = ["-", *arguments]
    sys.path.insert(0, "")
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main

    def execute_source() -> None:
        exec(compile(source, "<stdin>", "exec"), main.__dict__)

    return _run(execute_source)


def _run(program: Callable[[], object]) -> int:
    try:
        program()
    except (Exception, KeyboardInterrupt) as error:
        # The hook, not the traceback module: the program may have set its own.
        old = python_2.describe(error) if isinstance(error, SyntaxError) else None
        if old is not None:
            print(old, file=sys.stderr)
            return 1
        error.__traceback__ = without_runner_frames(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def without_runner_frames(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that begins at the program's first frame (empty if it never got there)."""
    while trace is not None and trace.tb_frame.f_code.co_filename in _RUNNER_FILES:
        trace = trace.tb_next
    return trace
