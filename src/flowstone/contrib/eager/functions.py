"""Functions of `tf.contrib.eager` that mean something in a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf

__all__ = ["defun", "get_optimizer_variables", "list_devices", "num_gpus", "run"]


def defun(func: Callable[..., Any] | None = None, input_signature: Any = None, **later: Any) -> Any:
    """The function as it is, which adds to the graph when called; a decorator without one.

    `input_signature`, and arguments on tracing, say nothing here.
    """
    return func if func is not None else (lambda function: function)


def get_optimizer_variables(optimizer: Any) -> list[Any]:
    """The variables of an optimiser: slots and others."""
    variables: list[Any] = optimizer.variables()
    return variables


def list_devices() -> list[str]:
    """The names of the devices of this machine."""
    with tf.Graph().as_default(), tf.Session() as session:
        return [device.name for device in session.list_devices()]


def num_gpus() -> int:
    """How many GPUs there are."""
    return sum("GPU" in name.rpartition("device:")[2] for name in list_devices())


def run(main: Callable[..., Any] | None = None, argv: list[str] | None = None) -> None:
    """`tf.app.run`."""
    tf.app.run(main, argv)
