"""Ops from other packages, which declare them as flowstone does its own (docs/adding_an_op.md).

A package names the module that declares its ops as an entry point:

    [project.entry-points."flowstone.ops"]
    anything = "my_package.ops"

Importing the module declares them. A program does that itself to call their functions; a GraphDef that has
one of them needs no import. Libraries of compiled TensorFlow kernels cannot be loaded.
"""

from __future__ import annotations

import os
from importlib.metadata import entry_points
from typing import Any

from flowstone.framework import errors
from flowstone.framework.process.logging import warning

ENTRY_POINTS = "flowstone.ops"


def import_packages() -> None:
    """Imports what the entry points name; a package that cannot be imported is a warning."""
    for entry_point in entry_points(group=ENTRY_POINTS):
        try:
            entry_point.load()
        except Exception as error:  # a broken package must not disable other ops
            warning("the ops of entry point %s cannot be used: %r", entry_point.value, error)


def load_op_library(library_filename: Any) -> Any:
    """Raises NotFoundError: compiled kernels of TensorFlow do not run here, and the error says what does."""
    name = os.fspath(library_filename)
    reason = "cannot open shared object file: No such file or directory"
    if os.path.exists(name):
        reason = (
            "flowstone cannot load compiled TensorFlow kernels. Declare the ops in Python, in a package with "
            f"an entry point of the group '{ENTRY_POINTS}'; docs/adding_an_op.md tells how."
        )
    raise errors.NotFoundError(None, None, f"{name}: {reason}")


load_file_system_library = load_library = load_op_library
