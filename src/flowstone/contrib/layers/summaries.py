"""Summaries of tensors, of collections of them, and of activations with the share that is cut off."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

import flowstone as tf

__all__ = [
    "summarize_activation",
    "summarize_activations",
    "summarize_biases",
    "summarize_collection",
    "summarize_tensor",
    "summarize_tensors",
    "summarize_variables",
    "summarize_weights",
]


def _scalar(tensor: Any, tag: str | None = None) -> Any:
    if tensor.dtype == tf.bool:
        tensor = tf.cast(tensor, tf.float32)
    return tf.summary.scalar(tag or f"{tensor.op.name}_summary", tensor)


def summarize_tensor(tensor: Any, tag: str | None = None) -> Any:
    """A summary of a tensor: a scalar, or else a histogram; None for strings, bools and other types.

    `tag`: its name; default: the tensor's with ``_summary`` behind it.
    """
    if tensor.dtype.base_dtype == tf.string or tensor.dtype.base_dtype == tf.bool:
        return None
    if tensor.shape.ndims == 0:
        return _scalar(tensor, tag)
    return tf.summary.histogram(tag or f"{tensor.op.name}_summary", tensor)


def summarize_activation(op: Any) -> Any:
    """A histogram of an activation, with the share of zeros for ReLU and of sixes for ReLU6."""
    kind, name = op.op.type, op.op.name
    if kind in ("Relu", "Relu6", "Softplus"):
        _scalar(tf.reduce_mean(tf.cast(tf.less(op, tf.cast(0.0, op.dtype)), tf.float32)), f"{name}/zeros")
    if kind == "Relu6":
        _scalar(tf.reduce_mean(tf.cast(tf.greater(op, tf.cast(6.0, op.dtype)), tf.float32)), f"{name}/sixes")
    return tf.summary.histogram(f"{name}/activation", op)


def summarize_tensors(
    tensors: Iterable[Any], summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """What `summarizer` gives for each of the tensors."""
    return [summarizer(tensor) for tensor in tensors]


def summarize_collection(
    collection: str,
    name_filter: str | None = None,
    summarizer: Callable[[Any], Any] = summarize_tensor,
) -> list[Any]:
    """The summaries of a collection's tensors whose operations' names begin as `name_filter`, a regular
    expression, says; None takes all."""
    tensors = tf.get_collection(collection)
    if name_filter is not None:
        tensors = [tensor for tensor in tensors if re.match(name_filter, tensor.op.name)]
    return summarize_tensors(tensors, summarizer)


summarize_variables = functools.partial(summarize_collection, tf.GraphKeys.GLOBAL_VARIABLES)
summarize_weights = functools.partial(summarize_collection, tf.GraphKeys.WEIGHTS)
summarize_biases = functools.partial(summarize_collection, tf.GraphKeys.BIASES)


def summarize_activations(
    name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_activation
) -> list[Any]:
    """The summaries of the collection ACTIVATIONS; see `summarize_collection`."""
    return summarize_collection(tf.GraphKeys.ACTIVATIONS, name_filter, summarizer)
