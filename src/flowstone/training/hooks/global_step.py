"""The global step: the variable that counts a training's steps, one a graph, in the collection
`GraphKeys.GLOBAL_STEP`.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.graphs.graph import Graph, GraphKeys
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.variables.initializers import zeros_initializer
from flowstone.ops.variables.variable_creation import VariableAggregation
from flowstone.ops.variables.variable_scope import get_variable

__all__ = [
    "assert_global_step",
    "create_global_step",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
]


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """The value of the global step (a variable, tensor or name) in a session."""
    return int(sess.run(global_step_tensor))


def get_global_step(graph: Graph | None = None) -> Any:
    """The graph's global step: the one item of its collection or else the tensor ``global_step:0``; None
    without one.

    Raises TypeError if that is no scalar of an integer type.
    """
    graph = graph or scope.get_default_graph()
    steps = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(steps) > 1:
        return None
    if steps:
        step = steps[0]
    else:
        try:
            step = graph.get_tensor_by_name("global_step:0")
        except KeyError:
            return None
    assert_global_step(step)
    return step


def create_global_step(graph: Graph | None = None) -> Any:
    """A new global step, an int64 scalar variable that begins at 0. ValueError if the graph has one."""
    graph = graph or scope.get_default_graph()
    if get_global_step(graph) is not None:
        raise ValueError('"global_step" already exists.')
    with graph.as_default(), graph.name_scope(None):
        return get_variable(
            "global_step", shape=[], dtype=dtypes.int64, initializer=zeros_initializer(), trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
            aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
        )  # fmt: skip


def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """The graph's global step, made if there is none."""
    graph = graph or scope.get_default_graph()
    step = get_global_step(graph)
    return create_global_step(graph) if step is None else step


def assert_global_step(global_step_tensor: Any) -> None:
    """Raises TypeError unless this is a variable or tensor of integers that may be a scalar."""
    if not isinstance(global_step_tensor, Tensor) and not hasattr(global_step_tensor, "initializer"):
        raise TypeError(f'Existing "global_step" must be a Variable or Tensor: {global_step_tensor}.')
    if not global_step_tensor.dtype.base_dtype.is_integer:
        raise TypeError(f'Existing "global_step" does not have integer type: {global_step_tensor.dtype!r}')
    shape = global_step_tensor.get_shape()
    if shape.ndims != 0 and shape.is_fully_defined():
        raise TypeError(f'Existing "global_step" is not scalar: {shape}')
