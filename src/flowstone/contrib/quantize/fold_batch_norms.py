"""The first pass: batch normalisation is folded into the weights of the layer before it.

In training, a layer `BatchNorm(Conv2D(inputs, weights))` becomes

    Conv2D_Fold(inputs, weights * correction * gamma / sigma_of_batch) / correction + offset + bias

in which `correction = sigma_of_batch / sigma_moving` has the quantised weights be those of inference, and is
undone behind (Jacob et al. 2017 and Krishnamoorthi, "Quantizing deep convolutional networks for efficient
inference", 2018, section 3.2). In evaluation both are absent. After `freeze_bn_delay` steps the moving
statistics take the place of the batch's: the division is by 1 then, and `offset` is not 0.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import flowstone as tf
from flowstone.contrib.quantize.batch_norms import BatchNorm, find_batch_norms
from flowstone.contrib.quantize.common import quantization_step, reroute, scope_of

__all__ = ["fold_batch_norms"]


def fold_batch_norms(graph: Any, is_training: bool, freeze_bn_delay: int | None = None) -> None:
    """Folds the batch normalisations of `graph`, in place.

    Raises TypeError for a batch normalisation by the batch's statistics that has no moving averages.
    """
    for norm in find_batch_norms(graph):
        _fold(graph, norm, freeze_bn_delay)


def _path(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def _fold(graph: Any, norm: BatchNorm, freeze_bn_delay: int | None) -> None:
    consumers = norm.output.consumers()
    layer_scope = scope_of(norm.layer)
    inner = _path(layer_scope, "BatchNorm_Fold") if norm.is_fused else layer_scope
    scale, bias = _scale_and_bias(norm, inner)
    corrected = None
    if norm.moving_mean is not None:
        with tf.name_scope(f"{_path(inner, 'batch_norm_correction')}/"):
            corrected = _corrections(graph, norm, scale, freeze_bn_delay)
    weights = norm.layer.inputs[1]
    factors = [scale] if corrected is None else [scale, corrected[0]]
    if norm.layer.type == "DepthwiseConv2dNative":
        names = ["scale_reshape", "correction_reshape"]
        factors = [
            _reshape_to(weights, f, _path(inner, name)) for f, name in zip(factors, names, strict=False)
        ]
    if corrected is not None:
        weights = tf.multiply(factors[1], weights, name=_path(layer_scope, "correction_mult"))
    weights = tf.multiply(weights, factors[0], name=_path(layer_scope, "mul_fold"))
    output = _copy_of_layer(norm, weights)
    if corrected is not None:
        output = tf.multiply(corrected[1], output, name=_path(layer_scope, "post_conv_mul"))
        output = tf.add(output, corrected[2], _path(layer_scope, "correction_add"))
    reroute(norm.output, tf.add(output, bias, name=_path(layer_scope, "add_fold")), consumers)


def _scale_and_bias(norm: BatchNorm, scope: str) -> tuple[Any, Any]:
    """The factor of the normalisation and what it adds."""
    if norm.scale is not None:
        return norm.scale, norm.bias
    with tf.name_scope(f"{scope}/"):
        scale = norm.gamma * tf.rsqrt(norm.variance + norm.epsilon)
        return scale, tf.subtract(norm.beta, norm.mean * scale, name="bias")


def _corrections(
    graph: Any, norm: BatchNorm, scale: Any, freeze_bn_delay: int | None
) -> tuple[Any, Any, Any]:
    """What the weights are multiplied by, and the factor and summand behind the layer."""
    moving = tf.rsqrt(norm.moving_variance + norm.epsilon)
    of_batch = tf.rsqrt(norm.variance + norm.epsilon)
    factor = tf.divide(moving, of_batch, name="scale_compute")
    factor = tf.identity(factor, name="correction_scale")
    reciprocal = tf.reciprocal(factor, name="reciprocal_compute")
    difference = norm.mean * of_batch - norm.moving_mean * moving
    offset = tf.multiply(norm.gamma, difference, name="offset_compute")
    if freeze_bn_delay is None:
        return factor, reciprocal, tf.zeros(scale.shape, name="zeros")
    delay = tf.constant(freeze_bn_delay, tf.int64, name="use_moving_average/y")
    frozen = tf.greater_equal(quantization_step(graph), delay, name="use_moving_average")
    for name, (product, rate) in zip(("freeze_moving_mean", "freeze_moving_var"), norm.updates, strict=True):
        reroute(rate, tf.cond(frozen, lambda: 0.0, partial(_same, rate), name=name), [product])
    reciprocal = tf.cond(frozen, lambda: tf.ones(factor.shape), lambda: reciprocal, name="correction_recip")
    offset = tf.cond(frozen, lambda: offset, lambda: tf.zeros(offset.shape), name="correction_offset")
    return factor, reciprocal, offset


def _same(value: Any) -> Any:
    return value


def _reshape_to(weights: Any, factor: Any, name: str) -> Any:
    """A factor for each channel, in the shape of a depthwise filter's last two dimensions."""
    channels, multiplier = weights.shape.as_list()[2:]
    return tf.reshape(factor, [channels, multiplier], name=name)


def _copy_of_layer(norm: BatchNorm, weights: Any) -> Any:
    """The layer with other weights, named NAME_Fold."""
    layer = norm.layer
    inputs, name = layer.inputs[0], f"{layer.name}_Fold"
    if layer.type == "MatMul":
        first, second = layer.get_attr("transpose_a"), layer.get_attr("transpose_b")
        return tf.matmul(inputs, weights, transpose_a=first, transpose_b=second, name=name)
    form = layer.get_attr("data_format").decode()
    strides, padding = layer.get_attr("strides"), layer.get_attr("padding").decode()
    if layer.type == "Conv2D":
        output = tf.nn.conv2d(inputs, weights, strides, padding, data_format=form, name=name)
    else:
        output = tf.nn.depthwise_conv2d(inputs, weights, strides, padding, name=name, data_format=form)
    if norm.batch_to_space is not None:
        block, crops = norm.batch_to_space.inputs[1:]
        output = tf.batch_to_space_nd(output, block, crops, name=f"{norm.batch_to_space.name}_Fold")
    return output
