"""Cross entropies of probabilities or logits.

Probabilities that the graph computes with Sigmoid or Softmax are traced back to their logits, which are
exact where the probabilities are 0 or 1. Others are kept `epsilon()` away from both.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.keras.settings import epsilon

__all__ = ["binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy"]


def _logits(output: Any, op_type: str) -> Any:
    """The tensor of which `output` is the Sigmoid or Softmax; None if it is something else."""
    operation = getattr(output, "op", None)
    return operation.inputs[0] if operation is not None and operation.type == op_type else None


def _clipped(probabilities: Any) -> Any:
    small = tf.constant(epsilon(), probabilities.dtype.base_dtype)
    return tf.clip_by_value(probabilities, small, 1.0 - small)


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Any:
    """The cross entropy of each element: of a probability `output` (or a logit) with a `target` in [0, 1]."""
    output = tf.convert_to_tensor(output)
    logits = output if from_logits else _logits(output, "Sigmoid")
    if logits is not None:
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=target, logits=logits)
    output = _clipped(output)
    entropy = target * tf.log(output + epsilon())
    entropy += (1 - target) * tf.log(1 - output + epsilon())
    return -entropy


def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> Any:
    """The cross entropy of probabilities `output` (or logits) along `axis` with those of `target`.

    The result lacks that axis. Probabilities are divided by their sum. Raises ValueError for an axis that
    `output` does not have.
    """
    output = tf.convert_to_tensor(output)
    rank = len(output.shape)
    _check_axis(axis, rank)
    logits = output if from_logits else _logits(output, "Softmax")
    if logits is not None:
        return tf.nn.softmax_cross_entropy_with_logits_v2(labels=target, logits=logits, axis=axis)
    output = _clipped(output / tf.reduce_sum(output, axis, keepdims=True))
    return -tf.reduce_sum(target * tf.log(output), axis)


def sparse_categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Any:
    """The cross entropy of probabilities `output` (or logits) along `axis` with classes by their numbers.

    `target`: integers, or floats that are whole, of the shape of the result: `output`'s without the axis.
    Raises ValueError for an axis that `output` does not have.
    """
    output = tf.convert_to_tensor(output)
    target = tf.convert_to_tensor(target)
    logits = output if from_logits else _logits(output, "Softmax")
    if logits is None:
        logits = tf.log(_clipped(output))
    rank = logits.shape.ndims
    if rank is not None:
        _check_axis(axis, rank)
        if axis % rank != rank - 1:
            axis = axis % rank
            order = [*range(axis), *range(axis + 1, rank), axis]
            logits = tf.transpose(logits, order)
    return _sparse_entropy(tf.cast(target, tf.int64), logits, rank)


def _check_axis(axis: int, rank: int) -> None:
    if not -rank <= axis < rank:
        raise ValueError(f"Unexpected channels axis {axis}. Expected to be in [{-rank}, {rank}).")


def _sparse_entropy(target: Any, logits: Any, rank: int | None) -> Any:
    """The entropies, in the target's shape where the logits have more than two axes."""
    shape = tf.shape(logits)
    if rank is not None and (rank > 2 or rank == 1 or target.shape.ndims != rank - 1):
        static = logits.shape[:-1]
        labels = tf.reshape(target, [-1])
        flat_logits = tf.reshape(logits, [-1, shape[-1]])
        entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=flat_logits)
        if rank > 2 or rank == 1:
            entropy = tf.reshape(entropy, shape[:-1])
            entropy.set_shape(static)
        return entropy
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits)
