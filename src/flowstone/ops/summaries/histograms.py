"""Histograms of values: HistogramSummary, with TensorFlow's buckets.

A bucket's limit is 1.1 times the one before, from 1e-12 to 1e20, on both sides of zero; runs of empty buckets
are one.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.kernel import CPU, Environment, Kernel
from flowstone.framework.node import Node
from flowstone.framework.operation import op
from flowstone.framework.tensor import Tensor
from flowstone.framework.tensor_proto import messages
from flowstone.ops.summaries.summaries import collect, new_summary, serialized, summary_scope, tag_of

__all__ = ["histogram"]

_LEAST, _MOST, _GROWTH = 1e-12, 1e20, 1.1


@functools.cache
def bucket_limits() -> np.ndarray[Any, Any]:
    """The upper limits of all buckets, rising."""
    positive, limit = [], _LEAST
    while limit < _MOST:
        positive.append(limit)
        limit *= _GROWTH
    positive.append(sys.float_info.max)
    return np.array([*[-limit for limit in reversed(positive)], 0.0, *positive])


def _sum(values: np.ndarray[Any, Any]) -> float:
    """The sum, added up in order."""
    return float(np.add.accumulate(values)[-1]) if values.size else 0.0


def _counts(values: np.ndarray[Any, Any], limits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How many values are in each bucket; the fewer are searched among the more."""
    if values.size > limits.size:
        below = np.searchsorted(np.sort(values), limits)
        below[-1] = values.size
        return np.diff(below, prepend=0)
    places = np.searchsorted(limits, values, side="right").clip(max=len(limits) - 1)
    return np.bincount(places, minlength=len(limits))


def histogram_proto(values: np.ndarray[Any, Any]) -> Any:
    """The HistogramProto of float64 values, none of them NaN or infinite."""
    proto = messages("summary_pb2").HistogramProto()
    limits = bucket_limits()
    counts = _counts(values, limits)
    largest = sys.float_info.max
    proto.min, proto.max = (values.min(), values.max()) if values.size else (largest, -largest)
    proto.num, proto.sum, proto.sum_squares = values.size, _sum(values), _sum(np.square(values))
    empty = counts == 0
    ends = np.append(~(empty[:-1] & empty[1:]), True)  # of each bucket that is not empty, and of each run
    proto.bucket_limit.extend(limits[ends].tolist())
    proto.bucket.extend(counts[ends].tolist())
    return proto


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
    def summarize(tag: np.ndarray[Any, Any], values: torch.Tensor) -> np.ndarray[Any, Any]:
        name = tag_of(tag)
        numbers = values.reshape(-1).double().numpy()
        if not np.isfinite(numbers).all():
            kind = "Nan" if np.isnan(numbers).any() else "Infinity"
            raise errors.InvalidArgumentError(None, None, f"{kind} in summary histogram for: {name}")
        summary = new_summary()
        summary.value.add(tag=name, histo=histogram_proto(numbers))
        return serialized(summary)

    return summarize


def histogram(name: str, values: Any, collections: Any = None, family: str | None = None) -> Tensor:
    """A summary of how often values of each size occur; see `scalar` for the arguments.

    `values`: real numbers of any shape. NaN and infinite ones are InvalidArgumentErrors of the step.
    """
    with summary_scope(name, family, default_name="HistogramSummary") as (tag, scope):
        summary: Tensor = histogram_summary_op(tag, values, name=scope)
        collect(summary, collections)
    return summary
