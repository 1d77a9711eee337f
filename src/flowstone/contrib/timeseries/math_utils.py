"""Densities, covariance matrices, powers of matrices and states of time series models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.framework import nest
from flowstone.contrib.layers import fully_connected

__all__ = [
    "batch_end_time",
    "batch_matrix_pow",
    "batch_start_time",
    "batch_times_matrix",
    "block_diagonal",
    "cauchy_log_prob",
    "clip_covariance",
    "entropy_matched_cauchy_scale",
    "log_noninformative_covariance_prior",
    "make_toeplitz_matrix",
    "matrix_times_batch",
    "matrix_to_powers",
    "mvn_tril_log_prob",
    "normal_log_prob",
    "power_sums_tensor",
    "replicate_state",
    "sign_magnitude_positive_definite",
    "transform_to_covariance_matrices",
    "variable_covariance_matrix",
]


def normal_log_prob(loc: Any, scale: Any, x: Any) -> Any:
    """The log density of a normal, but with half of log(scale), as TensorFlow has it."""
    return -0.5 * (tf.square((x - loc) / scale) + np.log(2.0 * np.pi) + tf.log(scale))


def cauchy_log_prob(loc: Any, scale: Any, x: Any) -> Any:
    """The log density of a Cauchy distribution."""
    return -np.log(np.pi) - tf.log(scale) - tf.log1p(tf.square((x - loc) / scale))


def mvn_tril_log_prob(loc: Any, scale_tril: Any, x: Any) -> Any:
    """The log density [batch] of normals of means [batch, n] and Cholesky factors [batch, n, n]."""
    z = tf.matrix_triangular_solve(scale_tril, (x - loc)[..., tf.newaxis])[..., 0]
    log_determinant = 2.0 * tf.reduce_sum(tf.log(tf.matrix_diag_part(scale_tril)), axis=-1)
    size = tf.cast(tf.shape(scale_tril)[-1], log_determinant.dtype)
    return -0.5 * (tf.reduce_sum(tf.square(z), axis=-1) + size * np.log(2.0 * np.pi) + log_determinant)


def clip_covariance(covariance_matrix: Any, maximum_variance_ratio: Any, minimum_variance: Any) -> Any:
    """Matrices with variances of at least `minimum_variance` and the largest one over the ratio."""
    variances = tf.matrix_diag_part(covariance_matrix)
    least = tf.reduce_max(variances, axis=-1, keepdims=True) / maximum_variance_ratio
    return tf.matrix_set_diag(covariance_matrix, tf.maximum(tf.maximum(variances, least), minimum_variance))


def block_diagonal(matrices: Any, dtype: Any = tf.float32, name: str = "block_diagonal") -> Any:
    """A matrix [..., rows, columns] with `matrices` [..., r, c] along its diagonal and zeros elsewhere."""
    blocks = [tf.convert_to_tensor(matrix, dtype=dtype) for matrix in matrices]
    batch, rows, columns = tf.TensorShape(None), tf.Dimension(0), tf.Dimension(0)
    for block in blocks:
        shape = block.shape.with_rank_at_least(2)
        batch = batch.merge_with(shape[:-2])
        rows, columns = rows + shape[-2], columns + shape[-1]
    widths = [tf.shape(block)[-1] for block in blocks]
    width = tf.add_n(widths)
    before: Any = 0
    padded = []
    for block, own in zip(blocks, widths, strict=True):
        after = width - before - own
        outer = tf.zeros([tf.rank(block) - 1, 2], dtype=tf.int32)
        padded.append(tf.pad(block, tf.concat([outer, [(before, after)]], axis=0)))
        before = before + own
    matrix = tf.concat(padded, -2, name=name)
    matrix.set_shape(batch.concatenate(tf.TensorShape([rows, columns])))
    return matrix


def power_sums_tensor(array_size: Any, power_matrix: Any, multiplier: Any) -> Any:
    """S [array_size + 1, n, n]: S[k] sums Aⁱ B (Aⁱ)ᵀ over i < k, A `power_matrix`, B `multiplier`."""
    power_matrix = tf.convert_to_tensor(power_matrix)
    identity = tf.eye(tf.shape(power_matrix)[0], dtype=power_matrix.dtype)
    identity.set_shape(power_matrix.shape)
    powers = tf.scan(
        lambda power, _: tf.matmul(power, power_matrix),
        tf.range(tf.cast(array_size, tf.int32) - 1),
        initializer=identity,
    )
    later = tf.matmul(batch_times_matrix(powers, multiplier), powers, adjoint_b=True)
    sums = tf.cumsum(tf.concat([tf.expand_dims(multiplier, 0), later], 0))
    return tf.concat([tf.expand_dims(tf.zeros_like(multiplier), 0), sums], 0)


def matrix_to_powers(matrix: Any, powers: Any) -> Any:
    """The powers [count, n, n] of one matrix [n, n], of the exponents `powers` [count]."""
    return batch_matrix_pow(tf.tile(tf.expand_dims(matrix, 0), [tf.size(powers), 1, 1]), powers)


def batch_matrix_pow(matrices: Any, powers: Any) -> Any:
    """Each matrix [batch, n, n] to its own power: natural numbers [batch], by repeated squaring."""
    matrices = tf.convert_to_tensor(matrices)
    exponents = tf.cast(powers, tf.int32)
    identity = tf.eye(tf.shape(matrices)[1], batch_shape=[tf.shape(matrices)[0]], dtype=matrices.dtype)

    def any_is_left(base: Any, left: Any, product: Any) -> Any:
        return tf.reduce_any(left > 1)

    def square(base: Any, left: Any, product: Any) -> tuple[Any, Any, Any]:
        is_left = left > 1
        multiplied = tf.where(tf.equal(left % 2, 0), product, tf.matmul(product, base))
        return (
            tf.where(is_left, tf.matmul(base, base), base),
            tf.where(is_left, left // 2, left),
            tf.where(is_left, multiplied, product),
        )

    base, left, product = tf.while_loop(any_is_left, square, [matrices, exponents, identity])
    return tf.where(tf.equal(left, 0), identity, tf.matmul(base, product))


def batch_times_matrix(batch: Any, matrix: Any, adj_x: bool = False, adj_y: bool = False) -> Any:
    """The products [batch, r, c] of each matrix of `batch` and `matrix`, either transposed if so wished."""
    batch, matrix = tf.convert_to_tensor(batch), tf.convert_to_tensor(matrix)
    batch.shape.assert_has_rank(3)
    matrix.shape.assert_has_rank(2)
    if adj_x:
        batch = tf.transpose(batch, [0, 2, 1])
    flat = tf.reshape(batch, [-1, tf.shape(batch)[2]])
    columns = 0 if adj_y else 1
    sizes = [*batch.shape.as_list()[:2], matrix.shape.as_list()[columns]]
    found = [tf.shape(batch)[0], tf.shape(batch)[1], tf.shape(matrix)[columns]]
    shape = [there if size is None else size for size, there in zip(sizes, found, strict=True)]
    return tf.reshape(tf.matmul(flat, matrix, adjoint_b=adj_y), shape)


def matrix_times_batch(matrix: Any, batch: Any, adj_x: bool = False, adj_y: bool = False) -> Any:
    """The products [batch, r, c] of `matrix` and each matrix of `batch`, either transposed if so wished."""
    transposed = batch_times_matrix(batch=batch, matrix=matrix, adj_x=not adj_y, adj_y=not adj_x)
    return tf.transpose(transposed, [0, 2, 1])


def make_toeplitz_matrix(inputs: Any, name: str | None = None) -> Any:
    """The matrix [n·b, n·b] whose block (i, j) is `inputs`[|i − j|], of `inputs` [n, b, b]."""
    count, size = tf.shape(inputs)[0], tf.shape(inputs)[1]
    lags = tf.reshape(tf.range(count), [1, -1])
    blocks = tf.gather(inputs, tf.abs(lags - tf.transpose(lags)))
    output = tf.reshape(tf.transpose(blocks, [0, 2, 1, 3]), [size * count, size * count])
    return tf.identity(output, name=name)


def sign_magnitude_positive_definite(
    raw: Any, off_diagonal_scale: Any = 0.0, overall_scale: Any = 0.0
) -> Any:
    """Positive definite matrices RᵀR [..., n, n] of any numbers `raw` [..., n, n].

    The diagonal of R is exp of half the diagonal of `raw`. Above it stands exp of half of `raw`'s upper part,
    times the softsign of its lower part. `overall_scale` [...] is added to `raw` before, and
    `off_diagonal_scale` [...] off its diagonal.
    """
    raw = tf.convert_to_tensor(raw)
    diagonal = tf.matrix_diag_part(raw)

    def spread(scale: Any, like: Any) -> Any:
        scale = tf.convert_to_tensor(scale, dtype=raw.dtype.base_dtype)
        ones = tf.ones([tf.rank(like) - tf.rank(scale)], dtype=tf.int32)
        return tf.reshape(scale, tf.concat([tf.shape(scale), ones], axis=0))

    magnitude = tf.exp((raw + spread(off_diagonal_scale, raw) + spread(overall_scale, raw)) / 2.0)
    upper = magnitude * tf.nn.softsign(tf.matrix_transpose(raw))
    upper.set_shape(raw.shape)
    factor = tf.matrix_set_diag(
        tf.matrix_band_part(upper, 0, -1), tf.exp((diagonal + spread(overall_scale, diagonal)) / 2.0)
    )
    return tf.matmul(factor, factor, transpose_a=True)


def transform_to_covariance_matrices(input_vectors: Any, matrix_size: int) -> Any:
    """Covariance matrices [..., n, n] that a linear layer makes of `input_vectors` [..., size]."""
    numbers = fully_connected(input_vectors, matrix_size**2 + 2, activation_fn=None)
    shape = tf.concat([tf.shape(numbers)[:-1], [matrix_size, matrix_size]], 0)
    return sign_magnitude_positive_definite(
        tf.reshape(numbers[..., :-2], shape),
        off_diagonal_scale=numbers[..., -2],
        overall_scale=numbers[..., -1],
    )


def variable_covariance_matrix(
    size: int,
    name: str,
    dtype: Any,
    initial_diagonal_values: Any = None,
    initial_overall_scale_log: Any = 0.0,
) -> Any:
    """A covariance matrix [size, size] of trained variables; diagonal at first, of these values or ones."""
    zeros = tf.zeros_initializer()
    raw = tf.get_variable(f"{name}_pre_transform", [size, size], dtype, zeros)
    if initial_diagonal_values is not None:
        raw += tf.matrix_diag(tf.log(initial_diagonal_values))
    off_diagonal = tf.get_variable(
        f"{name}_off_diagonal_scale", dtype=dtype, initializer=tf.constant(-5.0, dtype=dtype)
    )
    overall = tf.convert_to_tensor(initial_overall_scale_log, dtype=dtype)
    overall += tf.get_variable(f"{name}_overall_scale", [], dtype, zeros)
    return tf.identity(sign_magnitude_positive_definite(raw, off_diagonal, overall), name=name)


def batch_start_time(times: Any) -> Any:
    """The first times [batch]."""
    return times[:, 0]


def batch_end_time(times: Any) -> Any:
    """The last times [batch]."""
    return times[:, -1]


def log_noninformative_covariance_prior(covariance: Any) -> Any:
    """The log of Jeffreys' prior of a covariance matrix [n, n]: det^(−(n + 1)/2)."""
    size = tf.shape(covariance)[0]
    covariance += tf.diag(1e-8 * tf.ones([size], dtype=covariance.dtype))
    return -(tf.cast(size + 1, covariance.dtype) / 2.0) * tf.log(tf.matrix_determinant(covariance))


def entropy_matched_cauchy_scale(covariance: Any) -> Any:
    """The scales [..., n] of Cauchy distributions of the entropies of normals with these variances."""
    return tf.sqrt(math.e / (8.0 * math.pi) * tf.matrix_diag_part(covariance))


def replicate_state(start_state: Any, batch_size: Any) -> Any:
    """The state of one series, once for every series of a batch."""
    return nest.map_structure(
        lambda value: tf.tile(
            tf.expand_dims(value, 0), tf.concat([[batch_size], tf.ones([tf.rank(value)], dtype=tf.int32)], 0)
        ),
        start_state,
    )
