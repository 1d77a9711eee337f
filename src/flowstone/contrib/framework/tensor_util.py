"""Checks of tensors' types and shapes, and sums of several tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import flowstone as tf
from flowstone import assert_same_float_dtype as assert_same_float_dtype
from flowstone import assert_scalar as assert_scalar
from flowstone import convert_to_tensor_or_sparse_tensor as convert_to_tensor_or_sparse_tensor


def assert_scalar_int(tensor: Any, name: str | None = None) -> Any:
    """The tensor, which must be a scalar of an integer type, known now. ValueError if it is not."""
    with tf.name_scope(name, "assert_scalar_int", [tensor]):
        tensor = tf.convert_to_tensor(tensor)
        if not tensor.dtype.base_dtype.is_integer:
            raise ValueError(f"Expected integer type for {tensor.name}, received type: {tensor.dtype}.")
        if tensor.shape.ndims != 0:
            raise ValueError(f"Expected scalar shape for {tensor.name}, saw shape: {tensor.shape}.")
        return tensor


def reduce_sum_n(tensors: Sequence[Any], name: str | None = None) -> Any:
    """The sum of all elements of several tensors, a scalar. ValueError if there is no tensor."""
    if not tensors:
        raise ValueError("No tensors provided.")
    with tf.name_scope(name, "reduce_sum_n", tensors) as name_scope:
        sums = []
        for tensor in map(tf.convert_to_tensor, tensors):
            scalar = tensor.shape.ndims == 0
            sums.append(tensor if scalar else tf.reduce_sum(tensor, name=f"{tensor.op.name}/sum"))
        return sums[0] if len(sums) == 1 else tf.add_n(sums, name=name_scope)


def remove_squeezable_dimensions(predictions: Any, labels: Any, name: str | None = None) -> tuple[Any, Any]:
    """The two tensors, of which the one with one dimension more loses its last, of size 1.

    As `tf.confusion_matrix`'s helper with the arguments and results in the other order.
    """
    with tf.name_scope(name, "remove_squeezable_dimensions", [labels, predictions]):
        predictions, labels = tf.convert_to_tensor(predictions), tf.convert_to_tensor(labels)
        ranks = predictions.shape.ndims, labels.shape.ndims
        if ranks[0] is not None and ranks[1] is not None:
            if ranks[0] - ranks[1] == 1:
                predictions = tf.squeeze(predictions, [-1])
            elif ranks[1] - ranks[0] == 1:
                labels = tf.squeeze(labels, [-1])
            return predictions, labels
        difference = tf.rank(predictions) - tf.rank(labels)
        if ranks[0] is None or predictions.shape[-1:].is_compatible_with([1]):
            predictions = _squeezed_if(tf.equal(difference, 1), predictions)
        if ranks[1] is None or labels.shape[-1:].is_compatible_with([1]):
            labels = _squeezed_if(tf.equal(difference, -1), labels)
        return predictions, labels


def _squeezed_if(condition: Any, tensor: Any) -> Any:
    return tf.cond(condition, lambda: tf.squeeze(tensor, [-1]), lambda: tensor)


def with_same_shape(expected_tensor: Any, tensor: Any) -> Any:
    """`tensor`, checked, now or in the step, to have the shape of `expected_tensor`; see `with_shape`."""
    with tf.name_scope(f"{tensor.op.name}/"):
        shape = expected_tensor.shape
        if shape.is_fully_defined():
            return with_shape(shape.as_list(), tensor)
        return with_shape(tf.shape(expected_tensor, name="expected_shape"), tensor)


def with_shape(expected_shape: Any, tensor: Any) -> Any:
    """`tensor`, checked to have this shape: now where its own is known, or else when the step runs.

    Args:
        expected_shape: a shape, a list or an array of integers, or an int32 or int64 vector.
        tensor: a tensor, or a sparse one, whose dense shape is checked.

    Raises:
        ValueError: the shapes are known and differ, or `expected_shape` is not of integers.
    """
    if isinstance(tensor, tf.SparseTensor):
        checked = with_shape(expected_shape, tf.zeros(tensor.dense_shape))
        with tf.control_dependencies([checked.op]):
            return tf.SparseTensor(tensor.indices, tensor.values, tf.identity(tensor.dense_shape))
    _check_type(expected_shape, tensor)
    if isinstance(expected_shape, tf.Tensor):
        known = tf.get_static_value(expected_shape)
    else:
        known = np.asarray(expected_shape, dtype=np.int64)
    own = tensor.shape
    if own.is_fully_defined() and known is not None:
        if list(known) != own.as_list():
            sizes = [int(size) for size in known]
            raise ValueError(f"Invalid shape for tensor {tensor.name}, expected {sizes}, got {own}.")
        return tensor
    with tf.name_scope(f"{tensor.op.name}/"):
        wanted = expected_shape if isinstance(expected_shape, tf.Tensor) else [int(n) for n in known]
        with tf.control_dependencies([_assert_shape(wanted, tensor)]):
            result = tf.identity(tensor)
    if known is not None:
        result.set_shape(own.merge_with([None if n < 0 else n for n in known]))
    return result


def _check_type(expected_shape: Any, tensor: Any) -> None:
    if isinstance(expected_shape, tf.Tensor):
        found: Any = expected_shape.dtype.base_dtype
        fits = found in (tf.int32, tf.int64)
    else:
        if isinstance(expected_shape, tf.TensorShape):
            expected_shape = expected_shape.as_list()
        found = np.asarray(expected_shape).dtype if len(expected_shape) else np.dtype(np.int32)
        fits = found.kind in "iu"
    if not fits:
        raise ValueError(
            f"Invalid dtype {found} for shape {expected_shape} expected of tensor {tensor.name}."
        )


def _assert_shape(expected_shape: Any, tensor: Any) -> Any:
    """An operation that fails for another shape; -1 stands for any size."""
    out_type = expected_shape.dtype.base_dtype if isinstance(expected_shape, tf.Tensor) else tf.int32
    with tf.name_scope("assert_shape") as scope:
        actual = tf.shape(tensor, name="actual", out_type=out_type)
        with tf.name_scope("is_shape") as inner:
            size = tf.size(expected_shape)
            with tf.name_scope("is_rank") as ranks:
                has_rank = tf.equal(size, tf.rank(tensor, name="actual"), name=ranks)
            with tf.name_scope("shape_tensor_equal") as sizes:
                is_any = tf.equal(expected_shape, -1)
                is_size = tf.equal(expected_shape, actual, "equal")
                fits = tf.logical_or(is_any, is_size, name="exclude_partial_shape")
                has_sizes = tf.reduce_all(fits, name=sizes)
            same = tf.logical_and(has_rank, has_sizes, name=inner)
        message = f"Wrong shape for {tensor.name} [expected] [actual]."
        return tf.Assert(same, [message, expected_shape, actual], name=scope)
