"""`tensorflow.python.framework.op_def_registry`: the declarations of ops as messages."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.op_functions import public_types
from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.graph_def import op_def

__all__ = ["get", "get_registered_ops", "register_op_list"]


def get_registered_ops() -> dict[str, Any]:
    """The OpDef of each op that programs may use, by its name."""
    return {name: op_def(registry[name]) for name in public_types()}


def get(name: str) -> Any:
    """The OpDef of an op, or None."""
    declaration = registry.get(name)
    return None if declaration is None else op_def(declaration)


def register_op_list(op_list: Any) -> None:
    """Checks that every op of an OpList is declared: an op is registered by declaring it with its kernels.

    Raises ValueError for an op that is not declared.
    """
    for each in op_list.op:
        if registry.get(each.name) is None:
            raise ValueError(f"The op {each.name!r} has no declaration: declare it with tf.load_op_library")
