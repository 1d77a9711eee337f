"""`flowstone.app`: the frame of a program, ``app.run(main)``, and its command-line flags."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from flowstone import flags

__all__ = ["flags", "run"]


def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> None:
    """Reads the flags from `argv` (default: the process's), calls `main` with the rest and exits with its
    result.

    `main`: a function of the remaining words, the program's name first; default: ``main`` of the running
    program. Unknown flags stay among the words; ``--help`` tells the flags and ends the program.
    """
    words = list(sys.argv if argv is None else argv)
    if any(
        word.lstrip("-") in ("help", "helpfull", "helpshort") for word in words[1:] if word.startswith("-")
    ):
        _define_help()
    try:
        rest = flags.FLAGS(words, known_only=True)
    except flags.Error as error:
        print(f"FATAL Flags parsing error:\n  {error}\nPass --help to see the flags.", file=sys.stderr)
        sys.exit(1)
    if main is None:
        main = sys.modules["__main__"].main
    sys.exit(main(rest))


def _define_help() -> None:
    from absl import app  # which defines flags of its own

    app.define_help_flags()
