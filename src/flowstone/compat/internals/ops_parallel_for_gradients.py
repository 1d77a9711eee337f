"""`tensorflow.python.ops.parallel_for.gradients`: derivatives of each element of a tensor."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.compat.internals.ops_parallel_for_control_flow_ops import pfor
from flowstone.framework import nest

__all__ = ["batch_jacobian", "jacobian"]


def jacobian(output: Any, inputs: Any, use_pfor: bool = True, parallel_iterations: int | None = None) -> Any:
    """The derivatives of all elements of `output` by each input: of the output's shape and then the input's.

    In the structure of `inputs`; None for an input that the output does not depend on.
    """
    elements = tf.reshape(output, [-1])
    flat = nest.flatten(inputs)
    rows = pfor(lambda i: tf.gradients(tf.gather(elements, i), flat), tf.size(elements), parallel_iterations)
    found = []
    for x, each in zip(flat, rows):
        if each is not None:
            each = tf.reshape(each, tf.concat([tf.shape(output), tf.shape(each)[1:]], 0))
            each.set_shape(output.shape.concatenate(x.shape))
        found.append(each)
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
    batch = tf.shape(output)[0]
    with tf.control_dependencies([tf.assert_equal(batch, tf.shape(inp)[0])]):
        rows = tf.reshape(output, [batch, tf.size(output) // batch])
    found = pfor(
        lambda i: tf.gradients(tf.gather(rows, i, axis=1), inp)[0], tf.shape(rows)[1], parallel_iterations
    )
    if found is None:
        return None
    by_example = tf.transpose(tf.reshape(found, [tf.shape(rows)[1], batch, -1]), [1, 0, 2])
    result = tf.reshape(by_example, tf.concat([tf.shape(output), tf.shape(inp)[1:]], 0))
    result.set_shape(output.shape.concatenate(inp.shape[1:]))
    return result
