"""`tensorflow.python.ops.parallel_for.control_flow_ops`: results of all iterations, stacked.

TensorFlow computes the iterations of `pfor` together, by rewriting their operations for a batch; here both
are loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.framework.tensors import nest

__all__ = ["for_loop", "pfor"]


def for_loop(
    loop_fn: Callable[[Any], Any], loop_fn_dtypes: Any, iters: Any, parallel_iterations: int | None = None
) -> Any:
    """What `loop_fn` returns for the numbers below `iters`, stacked; None where it returns None.

    Args:
        loop_fn_dtypes: the types of what it returns, in the same structure.
    """
    if parallel_iterations is not None and parallel_iterations < 1:
        raise ValueError("parallel_iterations must be None or a positive integer")
    structure: list[Any] = []

    def of_tensors(i: Any) -> list[Any]:
        result = loop_fn(i)
        structure[:] = [result]
        return [tf.convert_to_tensor(x) for x in nest.flatten(result) if x is not None]

    types = nest.flatten(loop_fn_dtypes)
    with tf.name_scope("for_loop"):
        places = [i for i, x in enumerate(nest.flatten(loop_fn(tf.constant(0)))) if x is not None]
        dtypes = [types[i] for i in places]
        stacked = tf.map_fn(
            of_tensors, tf.range(iters), dtypes, parallel_iterations=parallel_iterations or 32
        )
    flat: list[Any] = [None] * len(nest.flatten(structure[0]))
    for place, x in zip(places, stacked):
        flat[place] = x
    return nest.pack_sequence_as(structure[0], flat)


def pfor(loop_fn: Callable[[Any], Any], iters: Any, parallel_iterations: int | None = None) -> Any:
    """What `loop_fn` returns for the numbers below `iters`, stacked. It must not depend on their order."""
    first = nest.flatten(loop_fn(tf.constant(0)))
    dtypes = [None if x is None else tf.convert_to_tensor(x).dtype.base_dtype for x in first]
    return for_loop(loop_fn, dtypes, iters, parallel_iterations)
