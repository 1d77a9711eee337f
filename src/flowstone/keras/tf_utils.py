"""Which tensors of a graph depend on others: `tensorflow.python.keras.utils.tf_utils`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import flowstone as tf
from flowstone.framework.tensors import nest
from flowstone.layers.arguments import smart_cond as smart_cond
from flowstone.layers.arguments import smart_constant_value as constant_value

__all__ = [
    "are_all_symbolic_tensors",
    "constant_value",
    "get_reachable_from_inputs",
    "is_symbolic_tensor",
    "is_tensor_or_tensor_list",
    "is_tensor_or_variable",
    "register_symbolic_tensor_type",
    "smart_cond",
]


_symbolic_types: list[type] = []


def register_symbolic_tensor_type(cls_type: type) -> None:
    """Has objects of a class that converts to tensors count as symbolic tensors."""
    if cls_type not in _symbolic_types:
        _symbolic_types.append(cls_type)


def is_tensor_or_variable(x: Any) -> bool:
    """Whether it is a tensor, a variable or one of the composite tensors."""
    return isinstance(x, (tf.Tensor, tf.Variable, tf.SparseTensor, tf.IndexedSlices))


def is_symbolic_tensor(x: Any) -> bool:
    """Whether it is of a graph: every tensor and variable is, and what is of a registered class."""
    return is_tensor_or_variable(x) or isinstance(x, tuple(_symbolic_types))


def is_tensor_or_tensor_list(v: Any) -> bool:
    """Whether it is a tensor, or a nested form all of whose items are tensors."""
    items = nest.flatten(v)
    return bool(items) and all(isinstance(item, (tf.Tensor, tf.SparseTensor)) for item in items)


def are_all_symbolic_tensors(tensors: Iterable[Any]) -> bool:
    """Whether all of them are of a graph."""
    return all(is_symbolic_tensor(tensor) for tensor in tensors)


def get_reachable_from_inputs(inputs: Any, targets: Any = None) -> set[Any]:
    """The tensors and operations that depend on `inputs`, and these themselves.

    Args:
        inputs: tensors, operations or variables, or one of them.
        targets: once all of these are found, the search ends.

    Raises TypeError for inputs of another kind.
    """
    wanted = set(nest.flatten(targets)) if targets is not None else None
    reachable: set[Any] = set(nest.flatten(inputs))
    queue = list(reachable)
    while queue:
        found = [item for item in _dependents(queue.pop()) if item not in reachable]
        reachable.update(found)
        queue += found
        if wanted is not None and wanted <= reachable:
            break
    return reachable


def _dependents(item: Any) -> list[Any]:
    """The operations that take a tensor, the tensors that an operation gives."""
    if isinstance(item, tf.Operation):
        return list(item.outputs)
    if isinstance(item, tf.Variable):
        handle = getattr(item, "handle", None)
        return _dependents(item.op.outputs[0] if handle is None else handle)
    if isinstance(item, tf.Tensor):
        return list(item.consumers())
    if isinstance(item, (tf.SparseTensor, tf.IndexedSlices)):
        return list(item.values.consumers())
    raise TypeError(f"Expected Operation, Variable, or Tensor, got {item}")
