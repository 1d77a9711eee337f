"""`tensorflow.python.framework.op_def_library`: operations made by the name of their type."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.framework.declarations.op_functions import positional
from flowstone.framework.declarations.operation import registry

__all__ = ["OpDefLibrary", "apply_op"]


def apply_op(op_type_name: str, name: str | None = None, **keywords: Any) -> Any:
    """Adds an operation of this type to the graph.

    Args:
        op_type_name: the op, such as "MatMul".
        name: the operation's name.
        keywords: its inputs and attributes, by the names that the op's declaration has.

    Returns:
        its outputs, or the operation if it has none.

    Raises:
        RuntimeError: there is no such op. TypeError, ValueError: the arguments do not fit it.
    """
    if registry.get(op_type_name) is None:
        raise RuntimeError(f"Unrecognized Op name {op_type_name}")
    return positional(op_type_name)(name=name, **keywords)


class OpDefLibrary:
    """The ops that `apply_op` makes operations of: those that are declared."""

    def add_op(self, op_def: Any) -> None:
        """Checks that an op is declared. RuntimeError if it is not."""
        if registry.get(op_def.name) is None:
            raise RuntimeError(f"The op {op_def.name!r} has no declaration")

    def add_op_list(self, op_list: Any) -> None:
        """Checks that all ops of an OpList are declared."""
        for op_def in op_list.op:
            self.add_op(op_def)

    def apply_op(self, op_type_name: str, name: str | None = None, **keywords: Any) -> Any:
        """Adds an operation of this type to the graph; see the function of the same name."""
        return apply_op(op_type_name, name, **keywords)

    def _apply_op_helper(self, op_type_name: str, name: str | None = None, **keywords: Any) -> Any:
        """The list of outputs, the operation and the op's declaration."""
        result = apply_op(op_type_name, name, **keywords)
        first = result[0] if isinstance(result, (list, tuple)) else result
        operation = first if isinstance(first, tf.Operation) else first.op
        return operation.outputs, operation, operation.op_def
