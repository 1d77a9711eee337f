"""Functions of `tf.contrib.eager` that mean something in a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf

__all__ = ["get_optimizer_variables", "list_devices", "num_gpus", "run"]


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
