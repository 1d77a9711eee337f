"""What residual networks are built of (He and others, Deep residual learning for image recognition, 2015)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import flowstone as tf
from flowstone.contrib import layers
from flowstone.contrib.framework import add_arg_scope, arg_scope
from flowstone.contrib.slim.nets.end_points import end_points_of

__all__ = ["Block", "conv2d_same", "resnet_arg_scope", "scored", "stack_blocks_dense", "subsample"]


class Block(NamedTuple):
    """A row of residual units.

    Attributes:
        scope: its name.
        unit_fn: makes a unit: ``unit_fn(inputs, rate=…, **args)``.
        args: the arguments of each unit; ``stride`` among them.
    """

    scope: str
    unit_fn: Callable[..., Any]
    args: Sequence[dict[str, Any]]


def subsample(inputs: Any, factor: int, scope: str | None = None) -> Any:
    """Every `factor`-th pixel of images [batch, height, width, channels], in both directions."""
    if factor == 1:
        return inputs
    return layers.max_pool2d(inputs, [1, 1], stride=factor, scope=scope)


def conv2d_same(
    inputs: Any, num_outputs: int, kernel_size: int, stride: int, rate: int = 1, scope: str | None = None
) -> Any:
    """A convolution whose padding does not depend on the image's size: as much on each side as SAME would
    add for a stride of one, so that every result lies where the subsampled one of that stride would.
    """
    if stride == 1:
        return layers.conv2d(
            inputs, num_outputs, kernel_size, stride=1, rate=rate, padding="SAME", scope=scope
        )
    added = kernel_size + (kernel_size - 1) * (rate - 1) - 1
    before = added // 2
    sides = [before, added - before]
    inputs = tf.pad(inputs, [[0, 0], sides, sides, [0, 0]])
    return layers.conv2d(
        inputs, num_outputs, kernel_size, stride=stride, rate=rate, padding="VALID", scope=scope
    )


@add_arg_scope  # type: ignore[misc, unused-ignore]
def stack_blocks_dense(
    net: Any, blocks: Sequence[Block], output_stride: int | None = None, outputs_collections: Any = None
) -> Any:
    """The images after all blocks.

    `output_stride`: how much smaller the result may be than `net`; once that is reached, units keep the size
    and their convolutions are dilated by what would have been their strides. None: as the blocks say. Each
    block's result is collected. Raises ValueError for an output stride that the blocks cannot reach.
    """
    current_stride = rate = 1
    unreached = ValueError("The target output_stride cannot be reached.")
    for block in blocks:
        with tf.variable_scope(block.scope, "block", [net]) as scope:
            for number, arguments in enumerate(block.args, 1):
                if output_stride is not None and current_stride > output_stride:
                    raise unreached
                with tf.variable_scope(f"unit_{number}", values=[net]):
                    if output_stride is not None and current_stride == output_stride:
                        net = block.unit_fn(net, rate=rate, **{**arguments, "stride": 1})
                        rate *= arguments.get("stride", 1)
                    else:
                        net = block.unit_fn(net, rate=1, **arguments)
                        current_stride *= arguments.get("stride", 1)
            net = layers.utils.collect_named_outputs(outputs_collections, scope.name, net)
    if output_stride is not None and current_stride != output_stride:
        raise unreached
    return net


def scored(net: Any, num_classes: int | None, collection: str) -> tuple[Any, dict[str, Any]]:
    """(the scores, or `net` itself without classes; the collected layers by name with ``predictions``)."""
    if num_classes is None:
        return net, end_points_of(collection)
    net = layers.conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="logits")
    end_points = end_points_of(collection)
    end_points["predictions"] = layers.softmax(net, scope="predictions")
    return net, end_points


def resnet_arg_scope(
    weight_decay: float = 0.0001,
    batch_norm_decay: float = 0.997,
    batch_norm_epsilon: float = 1e-5,
    batch_norm_scale: bool = True,
) -> Any:
    """The arguments of a residual network's layers: L2 regularisation with `weight_decay`, and a batch
    normalisation that has moving averages with `batch_norm_decay`, adds `batch_norm_epsilon` to variances,
    and scales if `batch_norm_scale`.
    """
    batch_norm = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "scale": batch_norm_scale,
        "updates_collections": tf.GraphKeys.UPDATE_OPS,
    }
    convolutions = arg_scope(
        [layers.conv2d],
        weights_regularizer=layers.l2_regularizer(weight_decay),
        weights_initializer=layers.variance_scaling_initializer(),
        activation_fn=tf.nn.relu,
        normalizer_fn=layers.batch_norm,
        normalizer_params=batch_norm,
    )
    normalised = arg_scope([layers.batch_norm], **batch_norm)
    with convolutions, normalised, arg_scope([layers.max_pool2d], padding="SAME") as scope:
        return scope
