"""Statistics of samples."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.distributions.distribution_util import rotate_transpose

__all__ = ["auto_correlation", "percentile"]


def auto_correlation(
    x: Any,
    axis: int = -1,
    max_lags: Any = None,
    center: bool = True,
    normalize: bool = True,
    name: str = "auto_correlation",
) -> Any:
    """The correlation of a series with itself, later by 0, 1, … steps, by Fourier transforms.

    Args:
        x: floating or complex, [..., n, ...].
        axis: that of the series.
        max_lags: the largest number of steps; n - 1 by default.
        center: whether the mean is taken away first.
        normalize: whether results are divided by the one of 0 steps.
        name: the scope of its operations.

    Returns [..., max_lags + 1, ...] of x's type; lag m is the mean of n - m products.
    """
    with tf.name_scope(name):
        x = tf.convert_to_tensor(x, name="x")
        dtype = x.dtype
        rank = x.shape.ndims
        shift = -1 - axis if axis < 0 else rank - 1 - axis
        series = rotate_transpose(x, shift) if shift else x
        if center:
            series = series - tf.reduce_mean(series, axis=-1, keepdims=True)
        count = tf.shape(series)[-1]
        products = _products(series, count, dtype)
        last = count - 1 if max_lags is None else tf.minimum(count - 1, tf.convert_to_tensor(max_lags))
        products = tf.cast(products[..., : last + 1], dtype)
        result = products / tf.cast(count - tf.range(0, last + 1), dtype)
        if normalize:
            result = result / result[..., :1]
        return rotate_transpose(result, -shift) if shift else result


def _products(series: Any, count: Any, dtype: Any) -> Any:
    """The sums of the products of a series with itself, later by 0, 1, … steps."""
    # Twice as long, so that the ends do not meet.
    padded = tf.pad(series, [[0, 0]] * (series.shape.ndims - 1) + [[0, count]])
    complex_type = tf.complex128 if dtype in (tf.float64, tf.complex128) else tf.complex64
    spectrum = tf.fft(tf.cast(padded, complex_type))
    products = tf.ifft(spectrum * tf.conj(spectrum))
    return products if dtype.is_complex else tf.real(products)


def percentile(
    x: Any,
    q: Any,
    axis: Any = None,
    interpolation: str | None = None,
    keep_dims: bool = False,
    validate_args: bool = False,
    name: str | None = None,
) -> Any:
    """The element that q per cent of the elements are below, along axes.

    Args:
        x: a tensor of numbers.
        q: a number in [0, 100].
        axis: the axes; all by default.
        interpolation: ``nearest``, ``lower`` or ``higher``; nearest by default.
        keep_dims: whether the axes stay, of size 1.
        validate_args: whether steps check q.
        name: the scope of its operations.

    ValueError for another interpolation, or q that is no number.
    """
    interpolation = interpolation or "nearest"
    if interpolation not in ("nearest", "lower", "higher"):
        raise ValueError(
            f"Argument 'interpolation' must be in nearest, lower, higher. Found {interpolation}."
        )
    with tf.name_scope(name or "percentile"):
        x = tf.convert_to_tensor(x, name="x")
        q = _percentage(q, validate_args)
        if x.shape.ndims is None:
            raise ValueError("The rank of `x` must be known.")
        given = range(x.shape.ndims) if axis is None else axis if isinstance(axis, (list, tuple)) else [axis]
        axes = [each % x.shape.ndims for each in given]
        kept = [each for each in range(x.shape.ndims) if each not in axes]
        flat = _flattened(x, kept, axes)
        count = tf.shape(flat)[-1]
        place = _place(q, count, interpolation)
        ordered = tf.nn.top_k(flat, k=place + 1, sorted=True).values
        result = ordered[..., -1]
        result.set_shape([x.shape[each] for each in kept])
        if keep_dims:
            for each in sorted(axes):
                result = tf.expand_dims(result, each)
        return result


def _percentage(q: Any, validate_args: bool) -> Any:
    """q as a float64 scalar, checked to be in [0, 100] if arguments are validated."""
    q = tf.cast(tf.convert_to_tensor(q, name="q"), tf.float64)
    if q.shape.ndims not in (None, 0):
        raise ValueError("Argument 'q' must be a scalar.")
    if not validate_args:
        return q
    checks = [tf.assert_non_negative(q), tf.assert_less_equal(q, tf.constant(100.0, tf.float64))]
    with tf.control_dependencies(checks):
        return tf.identity(q)


def _place(q: Any, count: Any, interpolation: str) -> Any:
    """How far from the first of descending elements the percentile is."""
    place = (100.0 - q) / 100.0 * tf.cast(count - 1, tf.float64)
    rounding = {"nearest": tf.round, "lower": tf.ceil, "higher": tf.floor}[interpolation]
    return tf.clip_by_value(tf.cast(rounding(place), tf.int32), 0, count - 1)


def _flattened(x: Any, kept: list[int], axes: list[int]) -> Any:
    """x with some axes first, and the others as one at the end."""
    sizes = tf.gather(tf.shape(x), np.array(kept, np.int32))
    return tf.reshape(tf.transpose(x, perm=kept + axes), tf.concat([sizes, [-1]], axis=0))
