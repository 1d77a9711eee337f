"""Scores of generated images by what a classifier has made of them: its logits, or the outputs of a layer.

The scores from logits are those of Salimans et al. 2016 (Inception score); distances from activations those
of Heusel et al. 2017 (Fréchet Inception distance) and of Bińkowski et al. 2018 (kernel Inception distance).
Activations are of shape [n, features]; numbers are computed in float64 and given in the activations' type.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = [
    "classifier_score_from_logits",
    "diagonal_only_frechet_classifier_distance_from_activations",
    "frechet_classifier_distance_from_activations",
    "kernel_classifier_distance_and_std_from_activations",
    "kernel_classifier_distance_from_activations",
    "mean_only_frechet_classifier_distance_from_activations",
]


def classifier_score_from_logits(logits: Any) -> Any:
    """The exponential of the mean divergence of each row's classes from those of all rows.

    `logits`: of shape [n, classes]; ValueError for another rank. Returns a scalar of their type.
    """
    logits = _activations(logits)
    kind = logits.dtype
    if kind != tf.float64:
        logits = tf.cast(logits, tf.float64)
    probabilities = tf.nn.softmax(logits)
    marginal = tf.log(tf.reduce_mean(probabilities, axis=0))
    divergences = tf.reduce_sum(probabilities * (tf.nn.log_softmax(logits) - marginal), axis=1)
    return _as(kind, tf.exp(tf.reduce_mean(divergences)))


def frechet_classifier_distance_from_activations(real_activations: Any, generated_activations: Any) -> Any:
    """The squared Fréchet distance of the normal distributions of two sets of activations.

    |m - m'|² + trace(C + C' - 2 (C C')^1/2), of means m and covariances C. Returns a scalar.
    """
    kind, (real, generated) = _in_float64(real_activations, generated_activations)
    first, second = _covariance(real), _covariance(generated)
    spread = tf.trace(first + second) - 2.0 * _trace_of_root_of_product(first, second)
    return _as(kind, spread + _squared_difference_of_means(real, generated))


def mean_only_frechet_classifier_distance_from_activations(
    real_activations: Any, generated_activations: Any
) -> Any:
    """The squared distance of the means of two sets of activations. Returns a scalar."""
    kind, (real, generated) = _in_float64(real_activations, generated_activations)
    return _as(kind, _squared_difference_of_means(real, generated))


def diagonal_only_frechet_classifier_distance_from_activations(
    real_activations: Any, generated_activations: Any
) -> Any:
    """The Fréchet distance where features are independent: of covariances only the variances count."""
    kind, (real, generated) = _in_float64(real_activations, generated_activations)
    (mean, variance), (other_mean, other_variance) = (tf.nn.moments(x, axes=[0]) for x in (real, generated))
    spread = variance + other_variance - 2.0 * tf.sqrt(variance * other_variance)
    return _as(kind, tf.reduce_sum(tf.squared_difference(mean, other_mean) + spread))


def kernel_classifier_distance_from_activations(
    real_activations: Any, generated_activations: Any, max_block_size: int = 1024, dtype: Any = None
) -> Any:
    """The estimate of `kernel_classifier_distance_and_std_from_activations`, without its deviation."""
    return kernel_classifier_distance_and_std_from_activations(
        real_activations, generated_activations, max_block_size, dtype
    )[0]


def kernel_classifier_distance_and_std_from_activations(
    real_activations: Any, generated_activations: Any, max_block_size: int = 1024, dtype: Any = None
) -> Any:
    """The squared maximum mean discrepancy of two sets of activations by the kernel (x · y / features + 1)³.

    Args:
        real_activations: of shape [n, features].
        generated_activations: of shape [m, features].
        max_block_size: the sets are cut into equally many parts of at most so many rows.
        dtype: of the result; by default that of `real_activations`.

    Returns the mean of the parts' unbiased estimates, and the standard error of that mean: not a number where
    there is one part. Both are scalars.
    """
    real, generated = _activations(real_activations), _activations(generated_activations)
    kind = real.dtype if dtype is None else tf.as_dtype(dtype)
    real, generated = tf.cast(real, kind), tf.cast(generated, kind)
    real.shape[1:].assert_is_compatible_with(generated.shape[1:])
    sizes = tf.shape(real)[0], tf.shape(generated)[0]
    count = -(-tf.maximum(sizes[0], sizes[1]) // max_block_size)

    def ends(size: Any) -> Any:
        """Where the parts end: the last ones have a row more where they are not all of one size."""
        number = tf.range(1, count + 1)
        return number * (size // count) + tf.maximum(number - (count - size % count), 0)

    bounds = [tf.concat([[0], ends(size)], 0) for size in sizes]

    def estimate(number: Any) -> Any:
        parts = [x[each[number] : each[number + 1]] for x, each in zip((real, generated), bounds)]
        return _discrepancy(*parts)

    estimates = tf.map_fn(estimate, tf.range(count), dtype=kind, back_prop=False)
    mean = tf.reduce_mean(estimates)
    parts = tf.cast(count, kind)
    variance = tf.reduce_sum(tf.square(estimates - mean)) / (parts - 1.0)
    error = tf.sqrt(variance / parts)
    return mean, error


def _discrepancy(real: Any, generated: Any) -> Any:
    """The unbiased estimate of the squared maximum mean discrepancy of two sets."""
    features = tf.cast(tf.shape(real)[1], real.dtype)

    def kernel(x: Any, y: Any) -> Any:
        return (tf.matmul(x, y, transpose_b=True) / features + 1.0) ** 3

    def within(x: Any) -> Any:
        size = tf.cast(tf.shape(x)[0], x.dtype)
        values = kernel(x, x)
        return (tf.reduce_sum(values) - tf.trace(values)) / (size * (size - 1.0))

    return within(real) + within(generated) - 2.0 * tf.reduce_mean(kernel(real, generated))


def _activations(values: Any) -> Any:
    values = tf.convert_to_tensor(values)
    values.shape.assert_has_rank(2)
    return values


def _in_float64(*sets: Any) -> tuple[Any, list[Any]]:
    """The type of the first set, and all in float64."""
    tensors = [_activations(each) for each in sets]
    return tensors[0].dtype, [tf.cast(x, tf.float64) for x in tensors]


def _as(kind: Any, value: Any) -> Any:
    return value if kind == tf.float64 else tf.cast(value, kind)


def _squared_difference_of_means(real: Any, generated: Any) -> Any:
    return tf.reduce_sum(
        tf.squared_difference(tf.reduce_mean(real, axis=0), tf.reduce_mean(generated, axis=0))
    )


def _covariance(activations: Any) -> Any:
    centred = activations - tf.reduce_mean(activations, axis=0)
    count = tf.cast(tf.shape(activations)[0] - 1, tf.float64)
    return tf.matmul(centred, centred, transpose_a=True) / count


def _square_root(matrix: Any) -> Any:
    """The symmetric square root of a symmetric matrix without negative eigenvalues."""
    singular, left, right = tf.svd(matrix)
    roots = tf.where(singular < 1e-10, singular, tf.sqrt(singular))
    return tf.matmul(left * roots, right, transpose_b=True)


def _trace_of_root_of_product(first: Any, second: Any) -> Any:
    """The trace of the square root of a product of covariances, by that of a similar symmetric matrix."""
    root = _square_root(first)
    return tf.trace(_square_root(tf.matmul(root, tf.matmul(second, root))))
