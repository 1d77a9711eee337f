"""The global step as hooks read it: which variable it is, what to fetch for its value, and its copy."""

from __future__ import annotations

from typing import Any

from flowstone.framework.graphs.graph import Graph
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.training.hooks.global_step import get_global_step

__all__ = ["get_or_create_global_step_read", "required_global_step", "step_after"]

_READS = "global_step_read_op_cache"  # the collection; its name is TensorFlow's


def required_global_step(user: str) -> Any:
    """The default graph's global step. RuntimeError, which names the hook that needs it, without one."""
    step = get_global_step(get_default_graph())
    if step is None:
        raise RuntimeError(f"Global step should be created to use {user}.")
    return step


def step_after(fetched: Any, next_step: Any) -> Any:
    """The global step after a step of a session that fetched it, before or after it was incremented.

    `next_step`: what it is expected to become; None at first, when the value is taken to be the later one.
    """
    return fetched + 1 if next_step is not None and fetched < next_step else fetched


def get_or_create_global_step_read(graph: Graph | None = None) -> Any:
    """A tensor with the global step's value, an integer scalar, which the graph has once.

    While the variable is not initialised, it is the variable's initial value; None without a global step.
    """
    graph = graph or get_default_graph()
    found = graph.get_collection(_READS)
    step = get_global_step(graph)
    if found or step is None:
        return found[0] if found else None
    with graph.as_default(), graph.name_scope(step.op.name + "/"):
        value = (step if isinstance(step, Tensor) else step.initialized_value()) + 0
    graph.add_to_collection(_READS, value)
    return value


_get_or_create_global_step_read = get_or_create_global_step_read
