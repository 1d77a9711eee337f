"""Summaries of tensors, under names made of the tensors' own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf

__all__ = [
    "add_histogram_summaries",
    "add_histogram_summary",
    "add_image_summaries",
    "add_image_summary",
    "add_scalar_summaries",
    "add_scalar_summary",
    "add_zero_fraction_summaries",
    "add_zero_fraction_summary",
]


def _get_summary_name(
    tensor: Any, name: str | None = None, prefix: str | None = None, postfix: str | None = None
) -> str:
    """``prefix/name/postfix``, with the tensor's own name without one."""
    parts = (prefix, name or tensor.op.name, postfix)
    return "/".join(part for part in parts if part)


def _collected(summary: Any, tensor: Any, name: str, print_summary: bool) -> Any:
    """The summary, in the collection SUMMARIES; one that also prints the tensor if wished."""
    if print_summary:
        summary = tf.Print(summary, [tensor], name)
    tf.add_to_collection(tf.GraphKeys.SUMMARIES, summary)
    return summary


def add_histogram_summary(tensor: Any, name: str | None = None, prefix: str | None = None) -> Any:
    """A histogram of a tensor; `name`: in place of the tensor's, `prefix`: before it."""
    return tf.summary.histogram(_get_summary_name(tensor, name, prefix), tensor)


def add_image_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """Images [batch, height, width, channels] as a summary; `print_summary`: whether they are printed."""
    summary_name = _get_summary_name(tensor, name, prefix)
    summary = tf.summary.image(summary_name, tensor, collections=[])
    return _collected(summary, tensor, summary_name, print_summary)


def add_scalar_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """A scalar as a summary; `print_summary`: whether it is printed, too."""
    summary_name = _get_summary_name(tensor, name, prefix)
    summary = tf.summary.scalar(summary_name, tensor, collections=[])
    return _collected(summary, tensor, summary_name, print_summary)


def add_zero_fraction_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """Which part of a tensor's items is zero, as a summary."""
    summary_name = _get_summary_name(tensor, name, prefix, "Fraction_of_Zero_Values")
    fraction = tf.nn.zero_fraction(tensor)
    summary = tf.summary.scalar(summary_name, fraction, collections=[])
    return _collected(summary, fraction, summary_name, print_summary)


def add_histogram_summaries(tensors: Sequence[Any], prefix: str | None = None) -> list[Any]:
    """`add_histogram_summary` of each tensor."""
    return [add_histogram_summary(tensor, prefix=prefix) for tensor in tensors]


def add_image_summaries(tensors: Sequence[Any], prefix: str | None = None) -> list[Any]:
    """`add_image_summary` of each tensor."""
    return [add_image_summary(tensor, prefix=prefix) for tensor in tensors]


def add_scalar_summaries(
    tensors: Sequence[Any], prefix: str | None = None, print_summary: bool = False
) -> list[Any]:
    """`add_scalar_summary` of each tensor."""
    return [add_scalar_summary(tensor, prefix=prefix, print_summary=print_summary) for tensor in tensors]


def add_zero_fraction_summaries(tensors: Sequence[Any], prefix: str | None = None) -> list[Any]:
    """`add_zero_fraction_summary` of each tensor."""
    return [add_zero_fraction_summary(tensor, prefix=prefix) for tensor in tensors]
