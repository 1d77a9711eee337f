"""`tensorflow.python.eager.context`: graphs are built, but in functions of `tf.py_function`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import flowstone as tf
from flowstone.client.devices import list_local_devices
from flowstone.compat.behaviour import executing_eagerly
from flowstone.framework.names.refusals import refused_function

__all__ = [
    "EAGER_MODE",
    "GRAPH_MODE",
    "Context",
    "context",
    "device",
    "eager_mode",
    "graph_mode",
    "in_eager_mode",
    "in_graph_mode",
    "internal_operation_seed",
    "num_gpus",
]

GRAPH_MODE, EAGER_MODE = 0, 1


def in_graph_mode() -> bool:
    """True: operations build a graph."""
    return True


def in_eager_mode() -> bool:
    """False: operations build a graph."""
    return False


class Context:
    """What `context()` returns, as far as graphs go."""

    @property
    def scope_name(self) -> str:
        """The current name scope, with a slash at its end."""
        scope = tf.get_default_graph().get_name_scope()
        return f"{scope}/" if scope else ""

    def executing_eagerly(self) -> bool:
        """Whether operations are computed at once: in functions of `tf.py_function` alone."""
        return executing_eagerly()

    def in_graph_mode(self) -> bool:
        """True: operations build a graph."""
        return True

    def in_eager_mode(self) -> bool:
        """False: operations build a graph."""
        return False

    def num_gpus(self) -> int:
        """The number of GPUs that operations can be placed on."""
        return num_gpus()

    def devices(self) -> list[str]:
        """The names of this process's devices."""
        return [each.name for each in list_local_devices()]


def context() -> Context:
    """The state of eager execution: it is off."""
    return Context()


@contextlib.contextmanager
def graph_mode() -> Iterator[None]:
    """A context in which operations build a graph, as everywhere."""
    yield


eager_mode = refused_function(
    "tensorflow.python.eager.context.eager_mode", "graph_mode, and session.run, which gives values"
)


def device(name: str | None) -> Any:
    """`tf.device(name)`."""
    return tf.device(name)


def num_gpus() -> int:
    """The number of GPUs that operations can be placed on."""
    return sum(each.device_type == "GPU" for each in list_local_devices())


def internal_operation_seed() -> int:
    """A seed for an operation: a draw of Python's generator, as a positive int32."""
    return int(tf.get_default_graph()._last_id)
