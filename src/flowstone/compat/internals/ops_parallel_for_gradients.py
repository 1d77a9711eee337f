"""`tensorflow.python.ops.parallel_for.gradients`: derivatives of each element of a tensor."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.framework.tensors import nest
from flowstone.gradients import jacobians

__all__ = ["batch_jacobian", "jacobian"]


def jacobian(output: Any, inputs: Any, use_pfor: bool = True, parallel_iterations: int | None = None) -> Any:
    """The derivatives of all elements of `output` by each input: of the output's shape and then the input's.

    In the structure of `inputs`; None for an input that the output does not depend on.
    """
    flat = nest.flatten(inputs)
    found = jacobians.jacobian(output, flat, lambda y: tf.gradients(y, flat), parallel_iterations)
    return nest.pack_sequence_as(inputs, found)


def batch_jacobian(
    output: Any, inp: Any, use_pfor: bool = True, parallel_iterations: int | None = None
) -> Any:
    """The derivatives of all elements of `output[i]` by `inp[i]`, on which alone they depend, for each i.

    None if `output` does not depend on `inp`. ValueError if their first sizes differ.
    """
    if not output.shape[0].is_compatible_with(inp.shape[0]):
        raise ValueError(
            f"Need first dimension of output shape ({output.shape}) and inp shape ({inp.shape}) to match."
        )
    with tf.control_dependencies([tf.assert_equal(tf.shape(output)[0], tf.shape(inp)[0])]):
        output = tf.identity(output)
    return jacobians.batch_jacobian(output, inp, lambda y: tf.gradients(y, inp), parallel_iterations)
