"""Starts programs in processes that are forked from this one, which has flowstone loaded, as `forked` asks.

The arguments are the number of the socket that it serves, and modules that are loaded as well. A message is
JSON with the descriptors of a program's input, output, errors, and of a pipe that gets two lines: its process
and, in the end, its status. `words` is the command line of `flowstone`, of a file (`script`) or of the text
of a program (`code`), which runs in `folder` with the variables of `environment`.
"""

import contextlib
import gc
import json
import os
import runpy
import signal
import socket
import sys
import types
from importlib import import_module
from typing import Any

import flowstone  # a graph, a plan or a session would be the programs' to make
from flowstone.framework.declarations.operation import registry


def prepare(modules: list[str]) -> None:
    """Loads these modules, and with them all names and ops."""
    for name in modules:
        import_module(name)
    if modules:
        for name in flowstone.__dir__():
            getattr(flowstone, name, None)
        list(registry)
    gc.freeze()  # the collector would write to every page that programs share


def asked(door: socket.socket) -> dict[str, Any]:
    """In a process of its own: what it is to run. Ends this one when nobody can ask any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait for programs
    while True:
        text, descriptors, *_ = socket.recv_fds(door, 1 << 20, 4)
        if not text:
            sys.exit()
        if not os.fork():
            break
        for each in descriptors:
            os.close(each)
    door.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child:
        with contextlib.suppress(BrokenPipeError):
            wait_for(child, descriptors)
        os._exit(0)
    for number, each in enumerate(descriptors[:3]):
        os.dup2(each, number)
    for each in descriptors:
        os.close(each)
    found: dict[str, Any] = json.loads(text)
    return found


def wait_for(child: int, descriptors: list[int]) -> None:
    """Says which process it is, and how it ends."""
    for each in descriptors[:3]:
        os.close(each)
    os.write(descriptors[3], b"%d\n" % child)
    os.write(descriptors[3], b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def run(words: list[str], script: str, code: str, folder: str, environment: dict[str, str]) -> None:
    """Is the program. What it leaves behind Python clears up, at the end of the process."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if script:
        sys.argv, sys.path[0] = [script, *words], os.path.dirname(script)
        runpy.run_path(script, run_name="__main__")
    elif code:
        sys.argv, sys.path[0] = ["-c", *words], ""
        program = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(code, "<string>", "exec"), program.__dict__)
    else:
        from flowstone.tools import command_line

        sys.argv, sys.path[0] = ["flowstone", *words], folder
        command_line.main()


if __name__ == "__main__":
    prepare(sys.argv[2:])
    run(**asked(socket.socket(fileno=int(sys.argv[1]))))
