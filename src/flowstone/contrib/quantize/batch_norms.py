"""The batch normalisations of a graph that follow a layer: fused ones, and those of `tf.contrib.layers`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import flowstone as tf
from flowstone.contrib.quantize.common import LAYER_TYPES, scope_of

__all__ = ["BatchNorm", "find_batch_norms"]

_UNFUSED = re.compile(r"(.*/)?BatchNorm/batchnorm(_\d+)?/add_1$")


_GRADIENT = "FoldFusedBatchNormGrad"


@tf.RegisterGradient(_GRADIENT)
def _gradient_of_statistics(op: Any, dy: Any, dmean: Any, dvariance: Any, *others: Any) -> tuple[Any, ...]:
    """Of the batch's statistics, all that folding leaves: the op's own gradient ignores them."""
    x, mean = op.inputs[0], op.outputs[1]
    n = tf.cast(tf.size(x) / tf.size(mean), tf.float32)
    return dmean / n + 2.0 * dvariance * (x - mean) / (n - 1.0), None, None, None, None


@dataclass
class BatchNorm:
    """A batch normalisation: `layer` and `batch_to_space` are operations, `epsilon` a number or tensor.

    `scale` and `bias` are tensors of an unfused one; `moving_mean` and `moving_variance` are None if it
    normalises by the moving averages themselves. `updates` are the products of the averages' updates, mean
    first, each with the rate among its inputs.
    """

    is_fused: bool
    layer: Any
    batch_to_space: Any
    output: Any
    gamma: Any
    beta: Any
    mean: Any
    variance: Any
    epsilon: Any
    scale: Any = None
    bias: Any = None
    moving_mean: Any = None
    moving_variance: Any = None
    updates: list[tuple[Any, Any]] = field(default_factory=list)


def find_batch_norms(graph: Any) -> list[BatchNorm]:
    """Those whose results something takes, fused ones first.

    Raises TypeError for one by the batch's statistics without moving averages.
    """
    ops = graph.get_operations()
    fused = [_fused(op) for op in ops if op.type.startswith("FusedBatchNorm") and "Grad" not in op.type]
    unfused = [_unfused(graph, op) for op in ops if op.type in ("Add", "AddV2") and _UNFUSED.match(op.name)]
    return [norm for norm in (*fused, *unfused) if norm is not None]


def _layer_before(op: Any) -> tuple[Any, Any]:
    """The layer below a normalisation, through a reshape, and the operation that undoes its dilation."""
    if op.type == "Reshape":
        op = op.inputs[0].op
    dilation = op if op.type == "BatchToSpaceND" else None
    layer = op if dilation is None else dilation.inputs[0].op
    return (layer, dilation) if layer.type in LAYER_TYPES else (None, None)


def _update(statistic: Any, name: str) -> tuple[Any, tuple[Any, Any]]:
    """The moving average of a statistic, and the product that updates it with its rate."""
    for op in statistic.consumers():
        if op.type == "Sub" and op.inputs[1] is statistic:
            for product in op.outputs[0].consumers():
                if product.type == "Mul":
                    difference = op.outputs[0]
                    rate = product.inputs[1] if product.inputs[0] is difference else product.inputs[0]
                    return op.inputs[0], (product, rate)
    raise TypeError(f"The batch normalization {name!r} has no moving averages, which folding it needs")


def _fused(op: Any) -> BatchNorm | None:
    layer, dilation = _layer_before(op.inputs[0].op)
    output = op.outputs[0]
    if layer is not None and layer.type == "MatMul":
        reshapes = [user for user in output.consumers() if user.type == "Reshape"]
        output = reshapes[0].outputs[0] if reshapes else output
    if layer is None or not output.consumers():
        return None
    gamma, beta, mean, variance = op.inputs[1:5]
    norm = BatchNorm(True, layer, dilation, output, gamma, beta, mean, variance, op.get_attr("epsilon"))
    if op.get_attr("is_training"):
        norm.mean = op.outputs[1]
        op._set_attr("_gradient_op_type", tf.AttrValue(s=_GRADIENT.encode()))
        norm.moving_mean, of_mean = _update(op.outputs[1], op.name)
        norm.moving_variance, of_variance = _update(op.outputs[2], op.name)
        norm.updates = [of_mean, of_variance]
        norm.variance = _biased_variance(op)
    return norm


def _biased_variance(op: Any) -> Any:
    """The variance of the batch as the mean of squares, of a fused normalisation, which gives (n - 1)'s."""
    with tf.name_scope(f"{scope_of(op)}/" if scope_of(op) else None):
        n = tf.cast(tf.size(op.inputs[0]) / tf.size(op.outputs[1]), tf.float32)
        return tf.multiply(op.outputs[2], (n - 1.0) / n, name="Undo_Bessel_Correction")


def _unfused(graph: Any, op: Any) -> BatchNorm | None:
    scaled, bias = op.inputs[0].op, op.inputs[1]
    if scaled.type != "Mul" or bias.op.type != "Sub" or not op.outputs[0].consumers():
        return None
    layer, dilation = _layer_before(scaled.inputs[0].op)
    scale = scaled.inputs[1]
    root = scale.op if scale.op.type == "Rsqrt" else scale.op.inputs[0].op
    if layer is None or root.type != "Rsqrt" or bias.op.inputs[1].op.type != "Mul":
        return None
    variance, epsilon = root.inputs[0].op.inputs
    mean = bias.op.inputs[1].op.inputs[0]
    gamma = None if scale.op is root else scale.op.inputs[1]
    norm = BatchNorm(
        False, layer, dilation, op.outputs[0], gamma, bias.op.inputs[0], mean, variance, epsilon, scale, bias
    )
    if variance.op.type in ("Squeeze", "Mean"):
        norm.moving_mean, of_mean = _update(mean, op.name)
        norm.moving_variance, of_variance = _update(variance, op.name)
        norm.updates = [of_mean, of_variance]
        if gamma is None:
            norm.gamma = tf.ones(norm.moving_mean.shape)
    return norm
