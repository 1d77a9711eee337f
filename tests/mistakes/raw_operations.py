"""Mistakes that only calls of the operations themselves make."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import f, i

_VALID = {"padding": "VALID"}
_IMAGES = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], **_VALID}
_VOLUMES = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], **_VALID}
_FILTERS = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], **_VALID}


def _long(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def _pool_v2(tf: Any, x: Any, size: Any, strides: Any) -> Any:
    return tf.raw_ops.MaxPoolV2(input=x, ksize=size, strides=strides, **_VALID)


def _edit_distance(tf: Any, one: Any, other: Any) -> Any:
    at, values = np.zeros([1, 3], np.int64), _long(1)
    return tf.raw_ops.EditDistance(
        hypothesis_indices=at, hypothesis_values=values, hypothesis_shape=one,
        truth_indices=at, truth_values=values, truth_shape=other,
    )  # fmt: skip


RAW: dict[str, Any] = {
    "MaxPoolGradGrad, grad": (
        lambda tf, x, y, z: tf.raw_ops.MaxPoolGradGrad(orig_input=x, orig_output=y, grad=z, **_IMAGES),
        (f(1, 4, 4, 1), f(1, 2, 2, 1), f(1, 3, 3, 1)),
        "",
    ),
    "MaxPoolGradGrad, output": (
        lambda tf, x, y, z: tf.raw_ops.MaxPoolGradGrad(orig_input=x, orig_output=y, grad=z, **_IMAGES),
        (f(1, 4, 4, 1), f(1, 3, 3, 1), f(1, 4, 4, 1)),
        "",
    ),
    "MaxPool3DGradGrad": (
        lambda tf, x, y, z: tf.raw_ops.MaxPool3DGradGrad(orig_input=x, orig_output=y, grad=z, **_VOLUMES),
        (f(1, 4, 4, 4, 1), f(1, 2, 2, 2, 1), f(1, 3, 4, 4, 1)),
        "",
    ),
    "MaxPoolGradWithArgmax": (
        lambda tf, x, y, z: tf.raw_ops.MaxPoolGradWithArgmax(input=x, grad=y, argmax=z, **_IMAGES),
        (f(1, 4, 4, 1), f(1, 3, 3, 1), np.zeros([1, 2, 2, 1], np.int64)),
        "",
    ),
    "AvgPool3DGrad, batch": (
        lambda tf, x, y: tf.raw_ops.AvgPool3DGrad(orig_input_shape=x, grad=y, **_VOLUMES),
        (i(2, 4, 4, 4, 1), f(1, 2, 2, 2, 1)),
        "",
    ),
    "MaxPoolV2, sizes": (_pool_v2, (f(2, 4, 4, 2), i(2, 2), i(1, 2, 2, 1)), "ksize must specify 4"),
    "MaxPoolV2, strides": (_pool_v2, (f(2, 4, 4, 2), i(1, 2, 2, 1), i(2, 2)), "stride must specify 4"),
    "MaxPoolV2, no stride": (_pool_v2, (f(2, 4, 4, 2), i(1, 2, 2, 1), i(1, 0, 2, 1)), "Stride 0"),
    "MaxPoolV2, stride of the batch": (_pool_v2, (f(2, 4, 4, 2), i(1, 2, 2, 1), i(2, 2, 2, 1)), "batch"),
    "UnravelIndex, overflow": (
        lambda tf, x, y: tf.raw_ops.UnravelIndex(indices=x, dims=y),
        (i(3), i(2**20, 2**20)),
        "dims product",
    ),
    "SparseSlice, overflow": (
        lambda tf, x: tf.raw_ops.SparseSlice(
            indices=np.zeros([1, 2], np.int64), values=f(1), shape=x, start=_long(0, 0), size=x
        ),
        (_long(2**40, 2**40),),
        "",
    ),
    "EditDistance, negative hypotheses": (_edit_distance, (_long(-1, 1, 2), _long(1, 1, 2)), "-1 must be"),
    "EditDistance, negative truths": (_edit_distance, (_long(1, 1, 2), _long(1, 1, -2)), "-2 must be"),
    "Dilation2DBackpropInput": (
        lambda tf, x, y, z: tf.raw_ops.Dilation2DBackpropInput(input=x, filter=y, out_backprop=z, **_FILTERS),
        (f(1, 4, 4, 1), f(2, 2, 1), f(1, 2, 3, 1)),
        "out_backprop incompatible size",
    ),
    "Dilation2DBackpropFilter": (
        lambda tf, x, y, z: tf.raw_ops.Dilation2DBackpropFilter(
            input=x, filter=y, out_backprop=z, **_FILTERS
        ),
        (f(1, 4, 4, 1), f(2, 2, 1), f(2, 3, 3, 1)),
        "out_backprop incompatible size",
    ),
}

RAW_UNCHECKED: dict[str, Any] = {
    "AvgPoolGrad, batch": (
        lambda tf, x, y: tf.raw_ops.AvgPoolGrad(orig_input_shape=x, grad=y, **_IMAGES),
        (i(2, 4, 4, 1), f(1, 2, 2, 1)),
        "",
    ),
}
"""What TensorFlow computes from memory that is not the tensors'."""
