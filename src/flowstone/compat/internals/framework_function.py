"""`tensorflow.python.framework.function`: what a function's body has taken from around it."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.framework.functions.function_graph import FunctionGraph

__all__ = ["get_extra_args", "get_extra_inputs"]


def _body() -> Any:
    graph = tf.get_default_graph()
    return graph if isinstance(graph, FunctionGraph) else None


def get_extra_inputs() -> list[Any]:
    """The tensors from outside that the function's body now being built has used; empty elsewhere."""
    body = _body()
    return [] if body is None else list(body.captures)


def get_extra_args() -> list[Any]:
    """The arguments that stand for those tensors in the body; empty elsewhere."""
    body = _body()
    return [] if body is None else list(body.captures.values())
