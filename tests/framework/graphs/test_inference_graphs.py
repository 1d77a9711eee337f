"""Graphs for inference compute what they computed, with fewer nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.graphs.inference_graphs import fold_batch_norms, optimize_for_inference, strip_unused

FLOAT = tf.float32.as_datatype_enum
draw = np.random.default_rng(3)
PARTS = [draw.uniform(0.5, 2.0, 6).astype(np.float32) for _ in range(4)]


def values(*shape: int) -> Any:
    return tf.constant(draw.normal(size=shape).astype(np.float32))


def convolution(x: Any) -> Any:
    return tf.nn.conv2d(x, values(3, 3, 3, 6), [1, 1, 1, 1], "SAME", name="product")


def depthwise(x: Any) -> Any:
    return tf.nn.depthwise_conv2d_native(x, values(3, 3, 3, 2), [1, 1, 1, 1], "SAME", name="product")


def normalized(product: Callable[[Any], Any], is_training: bool = False) -> Any:
    """The GraphDef of a batch normalisation of a product, whose result is "y"."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 4, 4, 3], name="x")
        scale, offset, mean, variance = (tf.constant(part) for part in PARTS)
        given = {} if is_training else {"mean": mean, "variance": variance}
        y = tf.nn.fused_batch_norm(
            tf.check_numerics(product(tf.identity(x)), "product"),
            scale,
            offset,
            is_training=is_training,
            **given,
        )[0]
        tf.identity(y, name="y")
        return graph.as_graph_def()


def run(graph_def: Any, fed: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        return session.run("y:0", {"x:0": fed})


@pytest.mark.parametrize("product", [convolution, depthwise])
def test_normalisations_are_folded(product: Callable[[Any], Any]) -> None:
    graph_def = normalized(product)
    result = optimize_for_inference(graph_def, ["x"], ["y"], FLOAT)
    ops = sorted(node.op for node in result.node)
    kind = "Conv2D" if product is convolution else "DepthwiseConv2dNative"
    assert ops == sorted(["Placeholder", "Const", kind, "Const", "BiasAdd", "Identity"])
    fed = draw.normal(size=(2, 4, 4, 3)).astype(np.float32)
    np.testing.assert_allclose(run(result, fed), run(graph_def, fed), rtol=1e-4, atol=1e-4)


def test_normalisations_of_the_batch_are_kept() -> None:
    graph_def = normalized(convolution, is_training=True)
    result = optimize_for_inference(graph_def, ["x"], ["y"], FLOAT)
    assert "FusedBatchNormV3" in {node.op for node in result.node}


def test_outputs_keep_their_values() -> None:
    graph_def = normalized(convolution)
    result = optimize_for_inference(graph_def, ["x"], ["product", "y"], FLOAT)
    assert "FusedBatchNormV3" in {node.op for node in result.node}


def test_weights_that_others_take_are_kept() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 4, 4, 3], name="x")
        weights = values(3, 3, 3, 6)
        scale, offset, mean, variance = (tf.constant(part) for part in PARTS)
        product = tf.nn.conv2d(x, weights, [1, 1, 1, 1], "SAME")
        tf.nn.fused_batch_norm(product, scale, offset, mean, variance, is_training=False)
        tf.reduce_sum(weights)
    graph_def = graph.as_graph_def()
    assert fold_batch_norms(graph_def) == graph_def


def test_unused_nodes_are_stripped() -> None:
    with tf.Graph().as_default() as graph:
        source = tf.constant([1, 2], name="source")
        middle = tf.cast(source, tf.float32, name="x")
        tf.multiply(middle, 2.0, name="y")
        tf.add(middle, 1.0, name="unused")
    result = strip_unused(graph.as_graph_def(), ["x"], ["y"], [FLOAT])
    assert {node.name: node.op for node in result.node} == {"x": "Placeholder", "y/y": "Const", "y": "Mul"}
    np.testing.assert_array_equal(run(result, [3.0, 4.0]), [6.0, 8.0])
    with pytest.raises(KeyError, match="absent"):
        strip_unused(graph.as_graph_def(), ["absent"], ["y"], FLOAT)
