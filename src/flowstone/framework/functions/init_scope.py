"""`tf.init_scope`, which leaves conditionals, loops and functions, and what is a tensor of a graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from flowstone.framework.functions.function_graph import FunctionGraph
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor

__all__ = ["init_scope", "is_symbolic_tensor", "outermost_graph"]


@contextlib.contextmanager
def init_scope() -> Iterator[None]:
    """Within the context operations are outside of conditionals, loops and functions, and depend on nothing.

    They are named in the scope that is the current one.
    """
    name = get_default_graph().get_name_scope()
    graph = outermost_graph()
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope(f"{name}/" if name else None):
        yield


def is_symbolic_tensor(tensor: Any) -> bool:
    """Whether it is a Tensor of a graph: what a step computes."""
    return isinstance(tensor, Tensor)


def outermost_graph() -> Graph:
    """The graph where variables are: the default graph, outside of the functions that are being built."""
    graph = get_default_graph()
    while isinstance(graph, FunctionGraph):
        graph = graph.outer
    return graph
