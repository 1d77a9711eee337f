"""`tf.autograph`: Python is never converted to graphs here.

What TensorFlow converts on its own, the functions of data sets and of Keras' layers, is Python that builds
a graph.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.refusals import refused_function

__all__ = ["set_verbosity", "to_code", "to_graph", "trace"]

_INSTEAD = "tf.cond and tf.while_loop"
to_code = refused_function("tf.autograph.to_code", _INSTEAD)
to_graph = refused_function("tf.autograph.to_graph", _INSTEAD)


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Takes how much conversions would report; there are none."""


def trace(*args: Any) -> None:
    """Prints its arguments while the graph is built."""
    print(*args)
