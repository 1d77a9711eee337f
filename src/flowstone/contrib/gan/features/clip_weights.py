"""Weights kept small after each step, as Wasserstein GANs need them (Arjovsky et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf

__all__ = ["clip_discriminator_weights", "clip_variables"]


def clip_variables(optimizer: Any, variables: Sequence[Any], weight_clip: float) -> Any:
    """An optimiser that, after each step of another, cuts the elements of variables to ±`weight_clip`.

    Raises ValueError for a negative bound.
    """
    if weight_clip < 0:
        raise ValueError(f"`discriminator_weight_clip` must be positive. Instead, was {weight_clip}")
    dimensions = {variable: list[int]() for variable in variables}
    return tf.contrib.opt.VariableClippingOptimizer(
        opt=optimizer, vars_to_clip_dims=dimensions, max_norm=weight_clip
    )


def clip_discriminator_weights(optimizer: Any, model: Any, weight_clip: float) -> Any:
    """`clip_variables` of the variables of a GANModel's discriminator."""
    return clip_variables(optimizer, model.discriminator_variables, weight_clip)
