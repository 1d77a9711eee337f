"""Losses of weights: `l1_regularizer`, `l2_regularizer`, sums of them, and `apply_regularization`.

A regulariser is a function of a variable that returns a scalar, or None for no loss. Layers take one as
``weights_regularizer``; the losses are then in the collection REGULARIZATION_LOSSES.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import flowstone as tf

__all__ = [
    "apply_regularization",
    "l1_l2_regularizer",
    "l1_regularizer",
    "l2_regularizer",
    "sum_regularizer",
]

Regularizer = Callable[..., Any]


def _check(scale: Any, argument: str) -> None:
    """ValueError for an integer, for which a program seldom means it, and for a negative number."""
    if isinstance(scale, numbers.Integral):
        raise ValueError(f"{argument} cannot be an integer: {scale}")
    if isinstance(scale, numbers.Real) and scale < 0.0:
        raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale:g}")


def _no_loss(_: Any, name: str | None = None) -> None:
    """No loss."""


def _is_zero(scale: Any) -> bool:
    return isinstance(scale, numbers.Real) and scale == 0.0


def l1_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """A function of weights that returns scale * sum(abs(weights)); for a scale of 0, one that returns None.

    ValueError for an integer or a negative scale.
    """
    _check(scale, "scale")
    if _is_zero(scale):
        return _no_loss

    def l1(weights: Any, name: str | None = None) -> Any:
        with tf.name_scope(scope, "l1_regularizer", [weights]) as name:
            factor = tf.convert_to_tensor(scale, dtype=weights.dtype.base_dtype, name="scale")
            return tf.multiply(factor, tf.reduce_sum(tf.abs(weights)), name=name)

    return l1


def l2_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """A function of weights that returns scale * sum(weights ** 2) / 2; for a scale of 0, one that returns
    None.

    ValueError for an integer or a negative scale.
    """
    _check(scale, "scale")
    if _is_zero(scale):
        return _no_loss

    def l2(weights: Any) -> Any:
        with tf.name_scope(scope, "l2_regularizer", [weights]) as name:
            factor = tf.convert_to_tensor(scale, dtype=weights.dtype.base_dtype, name="scale")
            return tf.multiply(factor, tf.nn.l2_loss(weights), name=name)

    return l2


def l1_l2_regularizer(scale_l1: Any = 1.0, scale_l2: Any = 1.0, scope: str | None = None) -> Regularizer:
    """The sum of `l1_regularizer` and `l2_regularizer`. ValueError for integers and negative scales."""
    _check(scale_l1, "scale_l1")
    _check(scale_l2, "scale_l2")
    scope = scope or "l1_l2_regularizer"
    if _is_zero(scale_l1):
        return l2_regularizer(scale_l2, scope)
    if _is_zero(scale_l2):
        return l1_regularizer(scale_l1, scope)
    return _sum([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope)


def sum_regularizer(
    regularizer_list: Iterable[Regularizer | None], scope: str | None = None
) -> Regularizer | None:
    """A function that adds what several regularisers return; None if all of them are None."""
    regularizers = [each for each in regularizer_list if each is not None]
    return _sum(regularizers, scope) if regularizers else None


def _sum(regularizers: Sequence[Regularizer], scope: str | None) -> Regularizer:
    def sum_reg(weights: Any) -> Any:
        with tf.name_scope(scope, "sum_regularizer", [weights]) as name:
            losses = [loss for loss in (each(weights) for each in regularizers) if loss is not None]
            return tf.add_n(losses, name=name) if losses else None

    return sum_reg


def apply_regularization(regularizer: Regularizer, weights_list: Sequence[Any] | None = None) -> Any:
    """The sum of a regulariser's losses over weights, added to REGULARIZATION_LOSSES.

    `weights_list`: default: those in the collection WEIGHTS. ValueError if there are none, or the
    regulariser does not return a scalar.
    """
    weights = weights_list or tf.get_collection(tf.GraphKeys.WEIGHTS)
    if not weights:
        raise ValueError("No weights to regularize.")
    with tf.name_scope("get_regularization_penalty", values=weights) as scope:
        penalties = []
        for each in weights:
            loss = regularizer(each)
            penalty = tf.convert_to_tensor(0.0 if loss is None else loss)
            rank = penalty.shape.ndims
            if rank not in (0, None):
                raise ValueError(
                    f"regularizer must return a scalar Tensor instead of a Tensor with rank {rank}."
                )
            penalties.append(penalty)
        total = tf.add_n(penalties, name=scope)
        tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, total)
        return total
