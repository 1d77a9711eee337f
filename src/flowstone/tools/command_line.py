"""The command `flowstone`, also `python -m flowstone`: `flowstone SUBCOMMAND [arguments]`.

A subcommand is a module of this package with

    NAME      the word on the command line
    SUMMARY   one line for `flowstone -h`
    declare(parser)     adds its arguments to an `argparse.ArgumentParser`
    execute(options)    does the work and returns the exit status

and is listed in `SUBCOMMANDS`. It is imported when it is called or when help is asked for, so that a
subcommand does not need the dependencies of the others.

    >>> main(["--version"])  # doctest: +SKIP
    flowstone 0.1.0
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module, metadata
from typing import NoReturn

SUBCOMMANDS = (
    "run",
    "check",
    "convert",
    "explain",
    "inspect",
    "freeze",
    "serve",
    "cluster",
    "server",
    "calibrate",
)


def version() -> str:
    """The installed version, or `unknown` where flowstone runs from a source tree that is not installed."""
    try:
        return metadata.version("flowstone")
    except metadata.PackageNotFoundError:
        return "unknown"


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="flowstone",
        description="Runs TensorFlow 1 programs on flowstone and works with their graphs.",
    )
    parser.add_argument("--version", action="version", version=f"flowstone {version()}")
    subparsers = parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND", required=True)
    for name in SUBCOMMANDS:
        subcommand = import_module(f"flowstone.tools.{name}")
        subparser = subparsers.add_parser(
            subcommand.NAME,
            help=subcommand.SUMMARY,
            description=subcommand.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        subcommand.declare(subparser)
        subparser.set_defaults(execute=subcommand.execute)
    return parser


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line `arguments` (of the process by default) and exits with its status."""
    options = build_parser().parse_args(arguments)
    sys.exit(options.execute(options))
