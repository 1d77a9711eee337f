"""What the Inception networks are built of: rows of layers, written as text.

A layer is ``name:depth:kernel/stride@padding~stddev``, of which only the name must be there: what it is
and, unless a kernel is given, its size follow from it (``Conv2d_0b_3x3``, ``MaxPool_1a_3x3``). Stride 1,
padding SAME and the usual initialiser hold unless others are given. ``a+b`` are layers beside each other,
whose results are joined. A block has several branches, rows of layers, whose results are joined, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib import layers
from flowstone.contrib.framework import arg_scope
from flowstone.contrib.slim.nets.end_points import trunc_normal

__all__ = ["batch_norm_scope", "checked_depth", "reduced_kernel_size", "run_blocks", "scores"]

Blocks = Mapping[str, str | Sequence[str]]

_LAYER = re.compile(
    r"(?P<name>\w+_(?P<size>\d+x\d+))(?::(?P<depth>\d+))?(?::(?P<kernel>\d+x\d+))?"
    r"(?:/(?P<stride>\d))?(?:@(?P<padding>\w+))?(?:~(?P<stddev>[\d.]+))?"
)


def run_blocks(
    net: Any, blocks: Blocks, final_endpoint: str, depth: Callable[[int], int], end_points: dict[str, Any]
) -> Any:
    """The images after the blocks up to `final_endpoint`; `end_points` gets the result of each.

    `depth` gives the depth of a layer from that of the table. Raises ValueError if no block has that name.
    """
    if final_endpoint in end_points:
        return end_points[final_endpoint]
    for name, block in blocks.items():
        if isinstance(block, str):
            net = _layer(net, block, depth)
        else:
            with tf.variable_scope(name):
                net = tf.concat([_branch(net, i, row, depth) for i, row in enumerate(block)], 3)
        end_points[name] = net
        if name == final_endpoint:
            return net
    raise ValueError(f"Unknown final endpoint {final_endpoint}")


def _branch(net: Any, number: int, row: str, depth: Callable[[int], int]) -> Any:
    with tf.variable_scope(f"Branch_{number}"):
        for step in row.split():
            results = [_layer(net, text, depth) for text in step.split("+")]
            net = tf.concat(results, 3) if len(results) > 1 else results[0]
    return net


def _layer(net: Any, text: str, depth: Callable[[int], int]) -> Any:
    match = _LAYER.fullmatch(text)
    assert match is not None, text
    name = match["name"]
    kernel = [int(size) for size in (match["kernel"] or match["size"]).split("x")]
    options = {"stride": int(match["stride"] or 1), "padding": match["padding"] or "SAME", "scope": name}
    if name.startswith("Conv"):
        if match["stddev"]:
            options["weights_initializer"] = trunc_normal(float(match["stddev"]))
        return layers.conv2d(net, depth(int(match["depth"])), kernel, **options)
    pool = layers.max_pool2d if name.startswith("MaxPool") else layers.avg_pool2d
    return pool(net, kernel, **options)


def checked_depth(depth_multiplier: float, min_depth: int) -> Callable[[int], int]:
    """The function from a layer's usual depth to its depth. ValueError unless the factor is positive."""
    if depth_multiplier <= 0:
        raise ValueError("depth_multiplier is not greater than zero.")
    return lambda depth: max(int(depth * depth_multiplier), min_depth)


def reduced_kernel_size(input_tensor: Any, kernel_size: Sequence[int]) -> list[int]:
    """The kernel, but no larger than the image [batch, height, width, channels], as far as that is known."""
    sizes = input_tensor.get_shape().as_list()[1:3]
    if None in sizes:
        return list(kernel_size)
    return [min(size, most) for size, most in zip(sizes, kernel_size)]


def scores(
    net: Any, kernel_size: Sequence[int], num_classes: int, keep_prob: float, spatial_squeeze: bool
) -> tuple[Any, Any]:
    """(the images' means after dropout, the scores of them), in the scope ``Logits``."""
    with tf.variable_scope("Logits"):
        kernel = reduced_kernel_size(net, kernel_size)
        name = f"AvgPool_1a_{kernel[0]}x{kernel[1]}"
        net = layers.avg_pool2d(net, kernel, padding="VALID", scope=name)
        net = layers.dropout(net, keep_prob=keep_prob, scope="Dropout_1b")
        logits = layers.conv2d(
            net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="Conv2d_1c_1x1"
        )
        if spatial_squeeze:
            logits = tf.squeeze(logits, [1, 2], name="SpatialSqueeze")
    return net, logits


def batch_norm_scope(
    weight_decay: float,
    batch_norm_var_collection: str,
    decay: float = 0.9997,
    epsilon: float = 0.001,
    updates_collections: Any = tf.GraphKeys.UPDATE_OPS,
    use_batch_norm: bool = True,
    fused: bool | None = None,
) -> Any:
    """The arguments of an Inception network's layers: L2 regularisation and batch normalisation, whose moving
    averages are in the collection `batch_norm_var_collection`, too.
    """
    averages = [batch_norm_var_collection]
    parameters: dict[str, Any] = {
        "decay": decay,
        "epsilon": epsilon,
        "updates_collections": updates_collections,
        "fused": fused,
        "variables_collections": {
            "beta": None, "gamma": None, "moving_mean": averages, "moving_variance": averages,
        },
    }  # fmt: skip
    with (
        arg_scope(
            [layers.conv2d, layers.fully_connected], weights_regularizer=layers.l2_regularizer(weight_decay)
        ),
        arg_scope(
            [layers.conv2d],
            weights_initializer=layers.variance_scaling_initializer(),
            activation_fn=tf.nn.relu,
            normalizer_fn=layers.batch_norm if use_batch_norm else None,
            normalizer_params=parameters if use_batch_norm else {},
        ) as scope,
    ):
        return scope
