"""Batch renormalisation (Ioffe, 2017): the moments of a batch corrected towards their moving averages.

`corrected_moments` gives r and d, by which normalised values are scaled and shifted, and moves the averages
that these come from; `moved_variance` moves the variance that inference uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.layers.arguments import smart_cond
from flowstone.ops.arrays.constants import ones_like, zeros_like
from flowstone.ops.networks.activations import relu
from flowstone.ops.variables.assignments import assign
from flowstone.training.optimizers.moving_averages import move_average

if TYPE_CHECKING:
    from flowstone.layers.normalization import BatchNormalization

__all__ = ["Clipping", "composed", "corrected_moments", "moved_variance", "moved_when"]

Clipping = dict[str, Any]
"""The bounds of the correction: ``rmin`` and ``rmax`` of r, ``dmax`` of d's absolute value."""


def composed(scale: Any, offset: Any, next_scale: Any, next_offset: Any) -> tuple[Any, Any]:
    """Scale and offset of x · scale + offset scaled and shifted again; the next ones may be None."""
    if next_scale is not None:
        scale, offset = scale * next_scale, offset * next_scale
    if next_offset is not None:
        offset = offset + next_offset
    return scale, offset


def moved_when(training: Any, variable: Any, value: Any, momentum: float) -> Any:
    """`variable` after its move towards `value`, in training only."""
    return smart_cond(
        training,
        lambda: move_average(variable, value, momentum, zero_debias=False),
        lambda: variable,
    )


def corrected_moments(
    layer: BatchNormalization, mean: Tensor, variance: Tensor, training: Any
) -> tuple[Any, Any, Tensor, Tensor]:
    """(r, d, mean, variance): the moments are there once the averages behind r and d have moved."""
    graph = get_default_graph()
    stddev = F.Sqrt(variance + layer.epsilon)
    average = F.Maximum(layer.renorm_stddev, F.Sqrt(_number(layer.epsilon, stddev)))
    r = stddev / average
    d = (mean - layer.renorm_mean) / average
    with graph.control_dependencies([r, d]):
        mean, stddev = F.Identity(mean), F.Identity(stddev)
    clipping = layer.renorm_clipping
    if clipping.get("rmin") is not None:
        r = F.Maximum(r, clipping["rmin"])
    if clipping.get("rmax") is not None:
        r = F.Minimum(r, clipping["rmax"])
    if clipping.get("dmax") is not None:
        d = F.Minimum(F.Maximum(d, -clipping["dmax"]), clipping["dmax"])
    clipped_r, clipped_d = r, d
    r = smart_cond(training, lambda: clipped_r, lambda: ones_like(clipped_r))
    d = smart_cond(training, lambda: clipped_d, lambda: zeros_like(clipped_d))
    moved = [
        _moved(layer, variable, F.Identity(value), training)
        for variable, value in ((layer.renorm_mean, mean), (layer.renorm_stddev, stddev))
    ]
    with graph.control_dependencies([getattr(each, "op", each) for each in moved]):
        return r, d, F.Identity(mean), F.Identity(variance)


def _number(value: float, like: Tensor) -> Any:
    return np.asarray(value, like.dtype.as_numpy_dtype)


def _moved(layer: BatchNormalization, variable: Any, value: Any, training: Any) -> Any:
    return smart_cond(
        training,
        lambda: move_average(variable, value, layer.renorm_momentum, zero_debias=False),
        lambda: F.Identity(variable),
    )


def moved_variance(layer: BatchNormalization, variance: Any, training: Any) -> Any:
    """`moving_variance` after the moving average of standard deviations has moved, in training only."""

    def moved() -> Any:
        stddev = F.Sqrt(variance + layer.epsilon)
        average = move_average(layer.moving_stddev, stddev, layer.momentum, zero_debias=False)
        squared = relu(average * average - layer.epsilon)
        with get_default_graph().name_scope("AssignNewValue") as scope:
            return assign(layer.moving_variance, squared, name=scope)

    return smart_cond(training, moved, lambda: layer.moving_variance)
