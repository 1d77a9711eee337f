"""Functions of tensors that distributions use: triangles, weighted sums, scales of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.distributions.sample_shapes import gen_new_seed, integer_vector
from flowstone.framework.tensors.node import static_value

__all__ = [
    "checked",
    "fill_triangular",
    "fill_triangular_inverse",
    "gen_new_seed",
    "is_diagonal_scale",
    "make_diag_scale",
    "make_tril_scale",
    "matrix_diag_transform",
    "reduce_weighted_logsumexp",
    "rotate_transpose",
    "shapes_from_loc_and_scale",
    "softplus_inverse",
    "tridiag",
]


def checked(is_checked: bool, value: Any, check: Callable[[], Any]) -> Any:
    """The value, available after the check if `is_checked`."""
    if not is_checked:
        return value
    with tf.control_dependencies([check()]):
        return tf.identity(value)


def softplus_inverse(x: Any, name: str | None = None) -> Any:
    """The y with log(1 + exp(y)) = x, for positive floating x."""
    with tf.name_scope(name or "softplus_inverse"):
        x = tf.convert_to_tensor(x, name="x")
        # log(expm1(x)) is log(x) for x near 0 and x for large ones, where the rest rounds or overflows.
        threshold = math.log(np.finfo(x.dtype.as_numpy_dtype).eps) + 2.0
        too_small, too_large = x < math.exp(threshold), x > -threshold
        x_between = tf.where(tf.logical_or(too_small, too_large), tf.ones_like(x), x)
        between = x_between + tf.log(-tf.expm1(-x_between))
        return tf.where(too_small, tf.log(x), tf.where(too_large, x, between))


def _triangle_size(count: int) -> int:
    size = (math.isqrt(1 + 8 * count) - 1) // 2
    if size * (size + 1) // 2 != count:
        raise ValueError(f"Input right-most shape ({count}) does not correspond to a triangular matrix.")
    return size


def fill_triangular(x: Any, upper: bool = False, name: str | None = None) -> Any:
    """Vectors [..., n (n + 1) / 2] as triangular matrices [..., n, n], filled in a spiral from the last row.

    [1, 2, 3, 4, 5, 6] becomes [[4, 0, 0], [6, 5, 0], [3, 2, 1]], and [[1, 2, 3], [0, 5, 6], [0, 0, 4]] if
    `upper`. ValueError if the length is known to be of no such form.
    """
    with tf.name_scope(name or "fill_triangular"):
        x = tf.convert_to_tensor(x, name="x")
        static = x.shape.with_rank_at_least(1)
        count = static[-1].value
        size: Any
        if count is not None:
            size = _triangle_size(count)
        else:
            root = tf.sqrt(0.25 + 2.0 * tf.cast(tf.shape(x)[-1], tf.float32))
            size = tf.cast(root, tf.int32)
        parts = (
            [x, tf.reverse(x[..., size:], axis=[-1])] if upper else [x[..., size:], tf.reverse(x, axis=[-1])]
        )
        square = tf.reshape(tf.concat(parts, axis=-1), tf.concat([tf.shape(x)[:-1], [size, size]], axis=0))
        result = tf.matrix_band_part(square, 0 if upper else -1, -1 if upper else 0)
        known = size if isinstance(size, int) else None
        result.set_shape(static[:-1].concatenate([known, known]))
        return result


def fill_triangular_inverse(x: Any, upper: bool = False, name: str | None = None) -> Any:
    """The vectors [..., n (n + 1) / 2] of which `fill_triangular` makes the matrices [..., n, n]."""
    with tf.name_scope(name or "fill_triangular_inverse"):
        x = tf.convert_to_tensor(x, name="x")
        static = x.shape.with_rank_at_least(2)
        known = static[-1].value
        size: Any = known if known is not None else tf.shape(x)[-1]
        if upper:
            first, rest = x[..., 0, :], x[..., 1:, :]
        else:
            first, rest = tf.reverse(x[..., -1, :], axis=[-1]), x[..., :-1, :]
        both = rest + tf.reverse(rest, axis=[-2, -1])
        flat = tf.reshape(both, tf.concat([tf.shape(x)[:-2], [size * (size - 1)]], axis=0))
        result = tf.concat([first, flat[..., : size * (size - 1) // 2]], axis=-1)
        result.set_shape(static[:-2].concatenate([None if known is None else known * (known + 1) // 2]))
        return result


def matrix_diag_transform(matrix: Any, transform: Any = None, name: str | None = None) -> Any:
    """The matrices [..., k, k] with the function `transform` applied to their diagonals."""
    with tf.name_scope(name or "matrix_diag_transform"):
        matrix = tf.convert_to_tensor(matrix, name="matrix")
        if transform is None:
            return matrix
        return tf.matrix_set_diag(matrix, transform(tf.matrix_diag_part(matrix)))


def reduce_weighted_logsumexp(
    logx: Any,
    w: Any = None,
    axis: Any = None,
    keep_dims: bool = False,
    return_sign: bool = False,
    name: str | None = None,
) -> Any:
    """log |Σ w exp(logx)| along axes, without overflow.

    Args:
        logx: floating.
        w: weights of either sign that broadcast with `logx`; ones by default.
        axis: the axes; all by default.
        keep_dims: whether they stay, of size 1.
        return_sign: whether the sum's sign is returned, too: a pair.
        name: the scope of its operations.
    """
    with tf.name_scope(name or "reduce_weighted_logsumexp"):
        logx = tf.convert_to_tensor(logx, name="logx")
        if w is None:
            result = tf.reduce_logsumexp(logx, axis=axis, keepdims=keep_dims)
            return (result, tf.ones_like(result)) if return_sign else result
        w = tf.convert_to_tensor(w, dtype=logx.dtype, name="w")
        log_terms = logx + tf.log(tf.abs(w))
        largest = tf.stop_gradient(tf.reduce_max(log_terms, axis=axis, keepdims=True))
        largest = tf.where(tf.is_inf(largest), tf.zeros_like(largest), largest)
        terms = tf.sign(w) * tf.exp(log_terms - largest)
        total = tf.reduce_sum(terms, axis=axis, keepdims=keep_dims)
        shift = largest if keep_dims else tf.squeeze(largest, axis=axis)
        result = shift + tf.log(tf.abs(total))
        return (result, tf.sign(total)) if return_sign else result


def tridiag(below: Any = None, diag: Any = None, above: Any = None, name: str | None = None) -> Any:
    """The matrices [..., k, k] with these diagonals.

    Args:
        below: [..., k - 1], below the diagonal.
        diag: [..., k].
        above: [..., k - 1], above the diagonal.
        name: the scope of its operations.

    ValueError if none is given. The diagonals broadcast.
    """
    with tf.name_scope(name or "tridiag"):
        parts = []
        for values, before, after in (
            (below, (1, 0), (0, 1)),
            (diag, (0, 0), (0, 0)),
            (above, (0, 1), (1, 0)),
        ):
            if values is None:
                continue
            values = tf.convert_to_tensor(values)
            if before == after:
                parts.append(tf.matrix_diag(values))
                continue
            outer = [[0, 0]] * ((values.shape.with_rank_at_least(1).ndims or 1) - 1)
            longer = tf.matrix_diag(values)
            parts.append(tf.pad(longer, outer + [list(before), list(after)]))
        if not parts:
            raise ValueError("Must specify at least one of `below`, `diag`, `above`.")
        return tf.add_n(parts) if len({str(part.shape) for part in parts}) == 1 else sum(parts[1:], parts[0])


def rotate_transpose(x: Any, shift: Any, name: str = "rotate_transpose") -> Any:
    """x with its axes rotated: the last `shift` come first, or the first last for negative shifts."""
    with tf.name_scope(name):
        x = tf.convert_to_tensor(x, name="x")
        shift = tf.convert_to_tensor(shift, name="shift")
        tf.assert_integer(shift)
        rank, known = x.shape.ndims, static_value(shift)
        if rank is not None and known is not None:
            if rank < 2:
                return x
            first = -int(known) % rank
            return tf.transpose(x, perm=[*range(first, rank), *range(first)])
        axes = tf.range(tf.rank(x))
        return tf.transpose(x, perm=tf.roll(axes, shift=shift, axis=0))


# ---- the scales of distributions of vectors


def _size_of_vectors(loc: Any, shape_hint: Any) -> Any:
    """How many elements vectors have: a number if it is known."""
    if shape_hint is not None:
        return shape_hint
    if loc is None:
        return None
    size = loc.shape.with_rank_at_least(1)[-1].value
    return tf.shape(loc)[-1] if size is None else size


def _converted(value: Any, dtype: Any, name: str) -> Any:
    return None if value is None else tf.convert_to_tensor(value, dtype=dtype, name=name)


def _not_singular(value: Any, validate_args: bool, assert_positive: bool) -> Any:
    def check() -> Any:
        if assert_positive:
            return tf.assert_positive(value, message="diagonal part must be positive")
        zero = tf.zeros([], value.dtype)
        return tf.assert_none_equal(value, zero, message="diagonal part must be non-zero")

    return checked(validate_args, value, check)


def make_diag_scale(
    loc: Any = None,
    scale_diag: Any = None,
    scale_identity_multiplier: Any = None,
    shape_hint: Any = None,
    validate_args: bool = False,
    assert_positive: bool = False,
    name: str | None = None,
    dtype: Any = None,
) -> Any:
    """The LinearOperator c I + diag(d) of a number c and vectors d [..., k].

    Args:
        loc: vectors that say how long they are, if d is not given.
        scale_diag: d.
        scale_identity_multiplier: c.
        shape_hint: the length, if neither `loc` nor d is given.
        validate_args: whether steps check that the diagonal has no zero.
        assert_positive: whether it is checked to be positive.
        name: the scope of its operations.
        dtype: of what is given as numbers.

    ValueError if the length is not known.
    """
    with tf.name_scope(name or "make_diag_scale"):
        loc = _converted(loc, dtype, "loc")
        scale_diag = _converted(scale_diag, dtype, "scale_diag")
        multiplier = _converted(scale_identity_multiplier, dtype, "scale_identity_multiplier")
        positive = True if assert_positive else None
        if scale_diag is not None:
            if multiplier is not None:
                scale_diag = scale_diag + multiplier[..., None]
            return tf.linalg.LinearOperatorDiag(
                diag=_not_singular(scale_diag, validate_args, assert_positive),
                is_non_singular=True,
                is_self_adjoint=True,
                is_positive_definite=positive,
            )
        size = _size_of_vectors(loc, shape_hint)
        if size is None:
            raise ValueError("Cannot infer `event_shape` unless `loc` or `shape_hint` is specified.")
        if multiplier is None:
            return tf.linalg.LinearOperatorIdentity(
                num_rows=size, dtype=dtype or (tf.float32 if loc is None else loc.dtype.base_dtype)
            )
        return tf.linalg.LinearOperatorScaledIdentity(
            num_rows=size,
            multiplier=_not_singular(multiplier, validate_args, assert_positive),
            is_non_singular=True,
            is_self_adjoint=True,
            is_positive_definite=positive,
        )


def _with_diagonals(tril: Any, scale_diag: Any, multiplier: Any) -> Any:
    """The matrix with what is added to its diagonal."""
    diagonal = tf.matrix_diag_part(tril)
    if scale_diag is not None:
        diagonal = diagonal + _converted(scale_diag, tril.dtype, "scale_diag")
    if multiplier is not None:
        diagonal = diagonal + _converted(multiplier, tril.dtype, "scale")[..., None]
    return tf.matrix_set_diag(tril, diagonal)


def make_tril_scale(
    loc: Any = None,
    scale_tril: Any = None,
    scale_diag: Any = None,
    scale_identity_multiplier: Any = None,
    shape_hint: Any = None,
    validate_args: bool = False,
    assert_positive: bool = False,
    name: str | None = None,
    dtype: Any = None,
) -> Any:
    """The LinearOperator c I + diag(d) + L; that of `make_diag_scale` if L is not given."""
    if scale_tril is None:
        return make_diag_scale(
            loc,
            scale_diag,
            scale_identity_multiplier,
            shape_hint,
            validate_args,
            assert_positive,
            name,
            dtype,
        )
    with tf.name_scope(name or "make_tril_scale"):
        tril = tf.convert_to_tensor(scale_tril, dtype=dtype, name="scale_tril")
        if scale_diag is not None or scale_identity_multiplier is not None:
            tril = _with_diagonals(tril, scale_diag, scale_identity_multiplier)
        if validate_args:
            diagonal = tf.matrix_diag_part(tril)
            with tf.control_dependencies([_not_singular(diagonal, True, assert_positive)]):
                tril = tf.identity(tril)
        return tf.linalg.LinearOperatorLowerTriangular(
            tril,
            is_non_singular=True,
            is_self_adjoint=False,
            is_positive_definite=True if assert_positive else None,
        )


def is_diagonal_scale(scale: Any) -> bool:
    """Whether the LinearOperator is of a class whose matrices are diagonal. TypeError for another thing."""
    if not isinstance(scale, tf.linalg.LinearOperator):
        raise TypeError(f"Expected argument 'scale' to be instance of LinearOperator. Found: {scale}")
    kinds = ("LinearOperatorIdentity", "LinearOperatorScaledIdentity", "LinearOperatorDiag")
    return isinstance(scale, tuple(getattr(tf.linalg, kind) for kind in kinds))


def shapes_from_loc_and_scale(loc: Any, scale: Any, name: str = "shapes_from_loc_and_scale") -> Any:
    """The batch shape and the event shape of scale x + loc: int32 vectors, or TensorShapes if they are known.

    ValueError if `loc` is known to be of other vectors than the scale.
    """
    with tf.name_scope(name):
        event_size, sizes = scale.range_dimension.value, scale.range_dimension_tensor()
        loc_size = None if loc is None else loc.shape.with_rank_at_least(1)[-1].value
        if None not in (event_size, loc_size) and loc_size not in (1, event_size):
            raise ValueError(f"loc has vectors of {loc_size} elements, but the scale's have {event_size}.")
        event: Any = tf.TensorShape([event_size])
        if event_size is None:
            event = sizes[None]
        batch = scale.batch_shape_tensor()
        if loc is None:
            return scale.batch_shape if scale.batch_shape.is_fully_defined() else batch, event
        own = loc.shape.with_rank_at_least(1)[:-1]
        of_loc = (
            integer_vector(own.as_list(), "loc_batch_shape") if own.is_fully_defined() else tf.shape(loc)[:-1]
        )
        with tf.name_scope("prefer_static_broadcast_shape"):
            if own.is_fully_defined() and scale.batch_shape.is_fully_defined():
                batch = tf.broadcast_static_shape(scale.batch_shape, own)
                return batch, event
            return tf.broadcast_dynamic_shape(batch, of_loc), event
