"""Residual networks (He and others, Deep residual learning for image recognition, 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib import layers
from flowstone.contrib.framework import add_arg_scope, arg_scope
from flowstone.contrib.slim.nets import resnet_utils
from flowstone.contrib.slim.nets.resnet_utils import resnet_arg_scope as resnet_arg_scope

__all__ = [
    "bottleneck",
    "resnet_arg_scope",
    "resnet_v1",
    "resnet_v1_50",
    "resnet_v1_101",
    "resnet_v1_152",
    "resnet_v1_200",
    "resnet_v1_block",
]


@add_arg_scope  # type: ignore[misc, unused-ignore]
def bottleneck(
    inputs: Any,
    depth: int,
    depth_bottleneck: int,
    stride: int,
    rate: int = 1,
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """A unit of three convolutions beside a shortcut, normalised after each and rectified, also their sum.

    `inputs`: [batch, height, width, channels]; `depth`: of the result; `depth_bottleneck`: of the two inner
    results; `stride`: of the unit; `rate`: the dilation of its middle convolution. The result is collected.
    """
    with tf.variable_scope(scope, "bottleneck_v1", [inputs]) as outer:
        depth_in = layers.utils.last_dimension(inputs.get_shape(), min_rank=4)
        if depth == depth_in:
            shortcut = resnet_utils.subsample(inputs, stride, "shortcut")
        else:
            shortcut = layers.conv2d(
                inputs, depth, [1, 1], stride=stride, activation_fn=None, scope="shortcut"
            )
        residual = layers.conv2d(inputs, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        residual = resnet_utils.conv2d_same(residual, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        residual = layers.conv2d(residual, depth, [1, 1], stride=1, activation_fn=None, scope="conv3")
        output = tf.nn.relu(shortcut + residual)
        return layers.utils.collect_named_outputs(outputs_collections, outer.name, output)


def _root_block(inputs: Any, output_stride: int | None) -> tuple[Any, int | None]:
    """The images reduced fourfold, and how much smaller what follows may make them."""
    if output_stride is not None:
        if output_stride % 4 != 0:
            raise ValueError("The output_stride needs to be a multiple of 4.")
        output_stride //= 4
    net = resnet_utils.conv2d_same(inputs, 64, 7, stride=2, scope="conv1")
    return layers.max_pool2d(net, [3, 3], stride=2, scope="pool1"), output_stride


def resnet_v1(
    inputs: Any,
    blocks: Sequence[resnet_utils.Block],
    num_classes: int | None = None,
    is_training: Any = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    include_root_block: bool = True,
    reuse: Any = None,
    scope: str | None = None,
) -> tuple[Any, dict[str, Any]]:
    """A residual network of `blocks`; returns its result and the layers by name.

    Args:
        inputs: [batch, height, width, channels].
        num_classes: scores [batch, height, width, num_classes] are returned; None: what is before them.
        is_training: whether batch normalisation takes the batch's moments.
        global_pool: whether the mean over the image is taken, which leaves a height and width of one.
        output_stride: how much smaller the result is at most, a multiple of 4 with the root block; units
            then are dilated. None: as the blocks say.
        include_root_block: whether a convolution and a pooling, which reduce the image fourfold, come first.
        reuse, scope: as of `tf.variable_scope`.

    Raises ValueError for an output stride that cannot be reached.
    """
    with tf.variable_scope(scope, "resnet_v1", [inputs], reuse=reuse) as outer:
        collection = f"{outer.original_name_scope}_end_points"
        with arg_scope(
            [layers.conv2d, bottleneck, resnet_utils.stack_blocks_dense], outputs_collections=collection
        ), arg_scope([layers.batch_norm], is_training=is_training):  # fmt: skip
            net = inputs
            if include_root_block:
                net, output_stride = _root_block(net, output_stride)
            net = resnet_utils.stack_blocks_dense(net, blocks, output_stride)
            if global_pool:
                net = tf.reduce_mean(net, [1, 2], name="pool5", keepdims=True)
            return resnet_utils.scored(net, num_classes, collection)


def resnet_v1_block(scope: str, base_depth: int, num_units: int, stride: int) -> resnet_utils.Block:
    """A block of `num_units` units of depth ``4 * base_depth``, of which the last has the stride."""
    unit = {"depth": base_depth * 4, "depth_bottleneck": base_depth, "stride": 1}
    return resnet_utils.Block(scope, bottleneck, [unit] * (num_units - 1) + [{**unit, "stride": stride}])


def _blocks(*num_units: int) -> list[resnet_utils.Block]:
    rows = zip(num_units, (64, 128, 256, 512), (2, 2, 2, 1))
    return [
        resnet_v1_block(f"block{number}", depth, count, stride)
        for number, (count, depth, stride) in enumerate(rows, 1)
    ]


def resnet_v1_50(
    inputs: Any,
    num_classes: int | None = None,
    is_training: Any = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    reuse: Any = None,
    scope: str = "resnet_v1_50",
) -> tuple[Any, dict[str, Any]]:
    """`resnet_v1` with 50 layers."""
    return resnet_v1(
        inputs, _blocks(3, 4, 6, 3), num_classes, is_training, global_pool, output_stride, True, reuse, scope
    )


def resnet_v1_101(
    inputs: Any,
    num_classes: int | None = None,
    is_training: Any = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    reuse: Any = None,
    scope: str = "resnet_v1_101",
) -> tuple[Any, dict[str, Any]]:
    """`resnet_v1` with 101 layers."""
    return resnet_v1(
        inputs, _blocks(3, 4, 23, 3), num_classes, is_training, global_pool, output_stride, True, reuse, scope
    )


def resnet_v1_152(
    inputs: Any,
    num_classes: int | None = None,
    is_training: Any = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    reuse: Any = None,
    scope: str = "resnet_v1_152",
) -> tuple[Any, dict[str, Any]]:
    """`resnet_v1` with 152 layers."""
    return resnet_v1(
        inputs, _blocks(3, 8, 36, 3), num_classes, is_training, global_pool, output_stride, True, reuse, scope
    )


def resnet_v1_200(
    inputs: Any,
    num_classes: int | None = None,
    is_training: Any = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    reuse: Any = None,
    scope: str = "resnet_v1_200",
) -> tuple[Any, dict[str, Any]]:
    """`resnet_v1` with 200 layers."""
    return resnet_v1(
        inputs,
        _blocks(3, 24, 36, 3),
        num_classes,
        is_training,
        global_pool,
        output_stride,
        True,
        reuse,
        scope,
    )
