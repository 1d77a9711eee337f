"""Operations that make a loaded graph ready: variables and tables are initialised, or variables restored."""

from __future__ import annotations

from typing import Any

from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.ops.control.control_flow import group
from flowstone.ops.lookup.lookup_tables import tables_initializer
from flowstone.ops.variables.variable_collections import (
    global_variables_initializer,
    local_variables_initializer,
)

__all__ = ["main_op", "main_op_with_restore"]


def main_op() -> Operation:
    """An operation that initialises all variables and tables of the default graph."""
    return group(global_variables_initializer(), local_variables_initializer(), tables_initializer())


def main_op_with_restore(restore_op_name: Any) -> Operation:
    """An operation that runs `main_op`'s, then those of `restore_op_name`, an operation or its name."""
    with get_default_graph().control_dependencies([main_op()]):
        return group(restore_op_name)
