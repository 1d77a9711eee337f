"""Normalisation within one example: over all its values, over a channel, over groups of channels.

Sources: Ba et al., "Layer Normalization" (2016); Ulyanov et al., "Instance Normalization" (2016); Wu and He,
"Group Normalization" (2018).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.framework.arg_scope import add_arg_scope
from flowstone.contrib.framework.variables import model_variable
from flowstone.contrib.layers.utils import get_variable_collections
from flowstone.contrib.layers.variables_of_layers import Function, finished

__all__ = ["group_norm", "instance_norm", "layer_norm"]

_ZEROS, _ONES = tf.zeros_initializer(), tf.ones_initializer()


def _parameters(
    inputs: Any, shape: Any, given: Mapping[str, Any], initializers: Mapping[str, Any]
) -> tuple[Any, Any]:
    """The variables beta and gamma, as far as they are wanted."""
    found = []
    for name, wanted, default in (("beta", given["center"], _ZEROS), ("gamma", given["scale"], _ONES)):
        found.append(
            model_variable(
                name,
                shape=shape,
                dtype=inputs.dtype.base_dtype,
                initializer=initializers.get(name, default),
                collections=get_variable_collections(given["variables_collections"], name),
                trainable=given["trainable"],
            )
            if wanted
            else None
        )
    return found[0], found[1]


def _rank(inputs: Any) -> int:
    rank: int | None = inputs.shape.ndims
    if rank is None:
        raise ValueError(f"Inputs {inputs.name} has undefined rank.")
    return rank


@add_arg_scope
def layer_norm(
    inputs: Any, center: bool = True, scale: bool = True, activation_fn: Function | None = None,
    reuse: Any = None, variables_collections: Any = None, outputs_collections: Any = None,
    trainable: bool = True, begin_norm_axis: int = 1, begin_params_axis: int = -1, scope: Any = None,
) -> Any:  # fmt: skip
    """Normalises each example by its own mean and variance (Ba et al., 2016).

    Args:
        inputs: [batch, …].
        center, scale: whether there is a ``beta``, a ``gamma``.
        activation_fn: is applied to the result; None for none.
        begin_norm_axis: mean and variance are over the dimensions from this one.
        begin_params_axis: beta and gamma have the dimensions from this one.

    The scope is by default "LayerNorm". For the other arguments see `fully_connected`. ValueError for inputs
    of unknown rank, sizes or axes beyond it.
    """
    given = dict(locals())
    with tf.variable_scope(scope, "LayerNorm", [inputs], reuse=reuse) as sc:
        inputs = tf.convert_to_tensor(inputs)
        shape, rank = inputs.shape, _rank(inputs)
        first = begin_norm_axis + rank if begin_norm_axis < 0 else begin_norm_axis
        if begin_params_axis >= rank or first >= rank:
            raise ValueError(
                f"begin_params_axis ({begin_params_axis}) and begin_norm_axis ({first}) must be < "
                f"rank(inputs) ({rank})"
            )
        sizes = shape[begin_params_axis:]
        if not sizes.is_fully_defined():
            raise ValueError(
                f"Inputs {inputs.name}: shape(inputs)[{begin_params_axis}:] is not fully defined: {shape}"
            )
        beta, gamma = _parameters(inputs, sizes, given, {})
        mean, variance = tf.nn.moments(inputs, list(range(first, rank)), keep_dims=True)
        epsilon = 1e-3 if inputs.dtype.base_dtype == tf.float16 else 1e-12
        outputs = tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(shape)
        return finished(outputs, sc.name, outputs_collections, activation_fn)


@add_arg_scope
def instance_norm(
    inputs: Any, center: bool = True, scale: bool = True, epsilon: float = 1e-6,
    activation_fn: Function | None = None, param_initializers: Mapping[str, Any] | None = None,
    reuse: Any = None, variables_collections: Any = None, outputs_collections: Any = None,
    trainable: bool = True, data_format: str = "NHWC", scope: Any = None,
) -> Any:  # fmt: skip
    """Normalises each channel of each example by its own mean and variance (Ulyanov et al., 2016).

    Args:
        inputs: [batch, …, channels]; [batch, channels, …] for NCHW.
        center, scale: whether there is a ``beta``, a ``gamma``, one value a channel.
        epsilon: is added to the variance.
        activation_fn: is applied to the result; None for none.
        param_initializers: of "beta" and "gamma".

    The scope is by default "InstanceNorm". For the other arguments see `fully_connected`. ValueError for
    another layout, inputs of unknown rank or number of channels.
    """
    given = dict(locals())
    if data_format not in ("NCHW", "NHWC"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    with tf.variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse) as sc:
        inputs = tf.convert_to_tensor(inputs)
        shape, rank = inputs.shape, _rank(inputs)
        channel_axis = 1 if data_format == "NCHW" else rank - 1
        sizes = shape[channel_axis : channel_axis + 1]
        if not sizes.is_fully_defined():
            raise ValueError(f"Inputs {inputs.name} has undefined channels dimension {sizes}.")
        factors: Any = _parameters(inputs, sizes, given, param_initializers or {})
        if data_format == "NCHW":
            broadcast = [1, sizes.as_list()[0], *[1] * (rank - 2)]
            factors = [None if each is None else tf.reshape(each, broadcast) for each in factors]
        axes = [axis for axis in range(1, rank) if axis != channel_axis]
        mean, variance = tf.nn.moments(inputs, axes, keep_dims=True)
        outputs = tf.nn.batch_normalization(
            inputs, mean, variance, factors[0], factors[1], epsilon, name="instancenorm"
        )
        outputs.set_shape(shape)
        return finished(outputs, sc.name, outputs_collections, activation_fn)


@add_arg_scope
def group_norm(
    inputs: Any, groups: int = 32, channels_axis: int = -1, reduction_axes: Sequence[int] = (-3, -2),
    center: bool = True, scale: bool = True, epsilon: float = 1e-6, activation_fn: Function | None = None,
    param_initializers: Mapping[str, Any] | None = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
    mean_close_to_zero: bool = False,
) -> Any:  # fmt: skip
    """Normalises groups of channels of each example by their own mean and variance (Wu and He, 2018).

    Args:
        inputs: a tensor whose sizes but the first are known best.
        groups: how many groups the channels are divided into.
        channels_axis: the dimension of the channels.
        reduction_axes: the dimensions that mean and variance are over, beside a group's channels.
        center, scale: whether there is a ``beta``, a ``gamma``, one value a channel.
        epsilon: is added to the variance.
        activation_fn: is applied to the result; None for none.
        param_initializers: of "beta" and "gamma".
        mean_close_to_zero: takes the mean of the squares for the variance's, which is faster and less exact.

    The scope is by default "GroupNorm". For the other arguments see `fully_connected`. ValueError for inputs
    of unknown rank or number of channels, axes out of bounds or named twice, and a number of channels that is
    no multiple of `groups`.
    """
    given = dict(locals())
    inputs = tf.convert_to_tensor(inputs)
    shape, rank = inputs.shape, _rank(inputs)
    axis, reduced = _axes(rank, channels_axis, reduction_axes)
    channels = shape.as_list()[axis]
    _check_groups(inputs, channels, groups)
    dynamic = tf.shape(inputs)
    sizes = [size if size is not None else dynamic[i] for i, size in enumerate(shape.as_list())]
    grouped = [*sizes[:axis], groups, channels // groups, *sizes[axis + 1 :]]
    # Dimensions behind the channels are one further now, and those of a group count, too.
    over = [axis + 1] + [each + (each > axis) for each in reduced]
    broadcast = [1] * axis + [groups, channels // groups] + [1] * (rank - axis - 1)
    parts = tf.reshape(inputs, grouped)
    with tf.variable_scope(scope, "GroupNorm", [inputs], reuse=reuse) as sc:
        factors = _parameters(inputs, [channels], given, param_initializers or {})
        beta, gamma = (None if each is None else tf.reshape(each, broadcast) for each in factors)
        mean, variance = _moments(parts, over, mean_close_to_zero)
        gain = tf.rsqrt(variance + epsilon)
        offset = -mean * gain
        if gamma is not None:
            gain, offset = gain * gamma, offset * gamma
        if beta is not None:
            offset += beta
        outputs = tf.reshape(parts * gain + offset, sizes)
        outputs.set_shape(shape)
        return finished(outputs, sc.name, outputs_collections, activation_fn)


def _axes(rank: int, channels_axis: int, reduction_axes: Sequence[int]) -> tuple[int, list[int]]:
    given = [channels_axis, *reduction_axes]
    if any(not -rank <= each < rank for each in given):
        raise ValueError("Axis is out of bounds.")
    axis, *reduced = [each % rank for each in given]
    if axis in reduced:
        raise ValueError("reduction_axis must be mutually exclusive with channels_axis")
    return axis, sorted(set(reduced))


def _check_groups(inputs: Any, channels: int | None, groups: int) -> None:
    if channels is None:
        raise ValueError(f"Inputs {inputs.name} has undefined channel dimension.")
    if groups > channels:
        raise ValueError(f"Invalid groups {groups} for {channels} channels.")
    if channels % groups:
        raise ValueError(f"{channels} channels is not commensurate with {groups} groups.")


def _moments(parts: Any, axes: list[int], mean_close_to_zero: bool) -> Any:
    if not mean_close_to_zero:
        return tf.nn.moments(parts, axes, keep_dims=True)
    counts, means, variances, _ = tf.nn.sufficient_statistics(parts, axes, keep_dims=True)
    return tf.nn.normalize_moments(counts, means, variances, shift=None)
