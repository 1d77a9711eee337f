"""`tensorflow.python.training.basic_session_run_hooks`: how many steps of training one run makes."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["get_or_create_steps_per_run_variable"]

_COLLECTION = "hooks_steps_per_run"


def get_or_create_steps_per_run_variable() -> Any:
    """The local variable `hooks/steps_per_run` of the default graph, int32, 1 at first.

    Raises RuntimeError if there are several.
    """
    found = tf.get_collection(_COLLECTION)
    if len(found) > 1:
        raise RuntimeError("Multiple steps_per_run_variable in collection.")
    if found:
        return found[0]
    with tf.variable_scope("hooks", reuse=tf.AUTO_REUSE):
        return tf.get_variable(
            "steps_per_run",
            [],
            tf.int32,
            tf.ones_initializer(),
            trainable=False,
            collections=[_COLLECTION, tf.GraphKeys.LOCAL_VARIABLES],
            use_resource=True,
        )
