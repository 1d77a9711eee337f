"""`tensorflow.python.ops.custom_gradient`: what stands behind `tf.custom_gradient` in a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf

__all__ = ["_graph_mode_decorator"]


def _graph_mode_decorator(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The results of `f`, which also gives the function of their gradients, called with these arguments."""
    return tf.custom_gradient(f)(*args, **kwargs)
