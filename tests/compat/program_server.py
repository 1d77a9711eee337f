"""Runs programs one after the other, each in a process forked from one that has everything loaded.

Reads lines ``run PATH OUTPUT`` or ``check PATH OUTPUT`` (between tabs) and does what `flowstone run` and
`flowstone check` do; what the program prints goes to the file OUTPUT, errors to OUTPUT.err. Answers each with
a line: the status.
"""

import os
import sys
from importlib import import_module

import flowstone
from flowstone.compat import child_processes, older_python, tensorflow_name
from flowstone.tools import command_line

ROOMS = (
    "contrib.layers contrib.rnn contrib.seq2seq contrib.slim contrib.training estimator tools.check tools.run"
)


def prepare() -> None:
    """Loads what most programs use. A graph, a plan or a session would be the programs' to make."""
    tensorflow_name.install()
    older_python.install()
    child_processes.install()
    for room in ROOMS.split():
        import_module(f"flowstone.{room}")
    for name in flowstone.__dir__():
        getattr(flowstone, name, None)


def serve_one(command: str, path: str, output: str) -> int:
    """In a process of its own: the command's exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for descriptor, name in ((1, output), (2, f"{output}.err")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), descriptor)
    os.chdir(os.path.dirname(output))
    sys.argv = ["flowstone", command, path]
    status = 1
    try:
        command_line.main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    """Serves until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    prepare()
    for line in sys.stdin:
        print(serve_one(*line.rstrip("\n").split("\t")), file=answers, flush=True)


if __name__ == "__main__":
    main()
