"""Variables in two places: a worker trains a copy of its own, and servers hold a common one, the center.

The custom getters make both; the optimisers below them say when one is brought to the other.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["GLOBAL_VARIABLE_NAME", "LOCAL_VARIABLE_NAME", "CenterGetter", "at_multiples", "count_steps"]

LOCAL_VARIABLE_NAME = "local_center_variable"
GLOBAL_VARIABLE_NAME = "global_center_variable"


class CenterGetter:
    """A custom getter: a trainable variable is local, on `worker_device`, with a center beside it.

    `centers` are the global centers of the local variables, by their names.
    """

    def __init__(self, worker_device: Any) -> None:
        self._worker_device = worker_device
        self.centers: dict[str, Any] = {}

    def __call__(
        self, getter: Any, name: str, trainable: Any, collections: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if trainable is False:
            return getter(name, *args, trainable=trainable, collections=collections, **kwargs)
        with tf.device(self._worker_device):
            local = getter(name, *args, trainable=True, collections=[tf.GraphKeys.LOCAL_VARIABLES], **kwargs)
        self._add_copies(name, local)
        return local

    def _add_copies(self, name: str, local: Any) -> None:
        self.centers[local.name] = self._copy(
            f"{GLOBAL_VARIABLE_NAME}/{name}", local, tf.GraphKeys.GLOBAL_VARIABLES
        )

    def _copy(self, name: str, local: Any, collection: str) -> Any:
        """A variable that begins as `local` does, and is not trained."""
        return tf.Variable(local.initialized_value(), name=name, trainable=False, collections=[collection])

    def center_of(self, local: Any) -> Any:
        """The center of a variable that this getter made; ValueError for another."""
        if local.name not in self.centers:
            raise ValueError(f"{local.name} was not made with the custom getter of the optimizer")
        return self.centers[local.name]


def count_steps(getter: CenterGetter, after: Any) -> Any:
    """The number of the worker's step, int64: one more in its counter, which follows `after`."""
    with tf.device(getter._worker_device):
        counter = tf.Variable(
            0,
            dtype=tf.int64,
            trainable=False,
            collections=[tf.GraphKeys.LOCAL_VARIABLES],
            name="local_step",
        )
    with tf.control_dependencies([after]):
        return tf.identity(counter.assign_add(1))


def at_multiples(step: Any, period: int, do: Any, global_step: Any) -> Any:
    """The operation that does `do()`, and counts the global step, if the worker's step is a multiple."""

    def meet() -> Any:
        done = do()
        if global_step is None:
            return tf.group(done)
        with tf.control_dependencies([done]):
            return tf.group(tf.assign_add(global_step, tf.ones([], global_step.dtype.base_dtype)))

    return tf.cond(tf.equal(tf.mod(step, period), 0), meet, tf.no_op)
