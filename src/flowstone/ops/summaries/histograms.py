"""Histograms of values: HistogramSummary, with TensorFlow's buckets.

A bucket's limit is 1.1 times the one before, from 1e-12 to 1e20, on both sides of zero; runs of empty buckets
are one.
"""

from __future__ import annotations

import functools
import math
import struct
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, Environment, Kernel
from flowstone.framework.declarations.operation import op
from flowstone.framework.machine.machine_code import size_histogram
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.summaries.summaries import collect, field, serialized_value, summary_scope, tag_of

__all__ = ["histogram"]

_LEAST, _MOST, _GROWTH = 1e-12, 1e20, 1.1


@functools.cache
def positive_limits() -> tuple[float, ...]:
    """The upper limits of the buckets above zero, rising."""
    positive, limit = [], _LEAST
    while limit < _MOST:
        positive.append(limit)
        limit *= _GROWTH
    return (*positive, sys.float_info.max)


@functools.cache
def bucket_limits() -> np.ndarray[Any, Any]:
    """The upper limits of all buckets, rising."""
    positive = positive_limits()
    return np.array([*[-limit for limit in reversed(positive)], 0.0, *positive])


def _sum(values: np.ndarray[Any, Any]) -> float:
    """The sum, added up in order."""
    return float(np.add.accumulate(values)[-1]) + 0.0 if values.size else 0.0


def _counts(values: np.ndarray[Any, Any], limits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How many values are in each bucket; the fewer are searched among the more."""
    if values.size > limits.size:
        below = np.searchsorted(np.sort(values), limits)
        below[-1] = values.size
        return np.diff(below, prepend=0)
    places = np.searchsorted(limits, values, side="right").clip(max=len(limits) - 1)
    return np.bincount(places, minlength=len(limits))


def _totals(values: np.ndarray[Any, Any]) -> tuple[float, ...]:
    """The least and the largest value, the sum, the sum of squares."""
    largest = sys.float_info.max
    ends = (float(values.min()), float(values.max())) if values.size else (largest, -largest)
    return *ends, _sum(values), _sum(np.square(values))


def _histogram_bytes(count: int, totals: Sequence[float], counts: np.ndarray[Any, Any]) -> bytes:
    """A serialised HistogramProto; `counts`: of each bucket."""
    empty = counts == 0
    ends = np.append(~(empty[:-1] & empty[1:]), True)  # of each bucket that is not empty, and of each run
    numbers = (totals[0], totals[1], count, totals[2], totals[3])
    fields = [
        struct.pack("<Bd", 8 * i + 1, x) for i, x in enumerate(numbers, 1) if x or math.copysign(1, x) < 0
    ]
    for i, values in ((6, bucket_limits()[ends]), (7, counts[ends])):
        fields.append(field(i, values.astype("<f8").tobytes()))
    return b"".join(fields)


histogram_summary_op = op(
    "HistogramSummary",
    "tag: string, values: T -> summary: string",
    "T: type in [float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64] "
    "= float",
)
histogram_summary_op.infer(lambda node: ())
histogram_summary_op.not_differentiable()


@histogram_summary_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    native = size_histogram(node.dtype(1).torch, positive_limits())

    def summarize(tag: np.ndarray[Any, Any], values: torch.Tensor) -> np.ndarray[Any, Any]:
        name = tag_of(tag)
        found = native(values) if native is not None and values.numel() else None
        if found is not None:
            counts, totals = found[0].numpy(), tuple(found[1])
        else:
            numbers = values.reshape(-1).double().numpy()
            if not np.isfinite(numbers).all():
                kind = "Nan" if np.isnan(numbers).any() else "Infinity"
                raise errors.InvalidArgumentError(None, None, f"{kind} in summary histogram for: {name}")
            counts, totals = _counts(numbers, bucket_limits()), _totals(numbers)
        histogram = _histogram_bytes(values.numel(), totals, counts)
        return np.array(serialized_value(name.encode(), field(5, histogram)), object)

    return summarize


def histogram(name: str, values: Any, collections: Any = None, family: str | None = None) -> Tensor:
    """A summary of how often values of each size occur; see `scalar` for the arguments.

    `values`: real numbers of any shape. NaN and infinite ones are InvalidArgumentErrors of the step.
    """
    with summary_scope(name, family, default_name="HistogramSummary") as (tag, scope):
        summary: Tensor = histogram_summary_op(tag, values, name=scope)
        collect(summary, collections)
    return summary
