"""Transforms of convolutions: nodes are those of TensorFlow 1.15.5, values those of the graph before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.tools.graph_transforms import TransformGraph

IMAGES = np.random.RandomState(1).randn(1, 9, 9, 2).astype(np.float32)
FUSIONS = ["fuse_resize_pad_and_conv", "fuse_resize_and_conv", "fuse_pad_and_conv"]


def filters() -> Any:
    return tf.constant(np.random.RandomState(2).randn(3, 3, 2, 2), tf.float32, name="w")


def values(graph: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(graph, name="")
        return session.run("out:0", {"x:0": IMAGES})


def transformed(make: Any, *transforms: str) -> dict[str, Any]:
    """The nodes after the transforms, by name; the values are as before."""
    with tf.Graph().as_default() as graph:
        make(tf.placeholder(tf.float32, [1, 9, 9, 2], name="x"))
    before = graph.as_graph_def()
    after = TransformGraph(before, ["x"], ["out"], transforms)
    np.testing.assert_allclose(values(after), values(before), rtol=1e-5, atol=1e-5)
    return {node.name: node for node in after.node}


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("rate", [2, 3])
@pytest.mark.parametrize("is_depthwise", [False, True])
def test_convolutions_of_dilated_filters(padding: str, rate: int, is_depthwise: bool) -> None:
    def make(x: Any) -> None:
        y = tf.space_to_batch_nd(x, [rate] * 2, _paddings(padding, rate)[0])
        product = tf.nn.depthwise_conv2d if is_depthwise else tf.nn.conv2d
        y = product(y, filters(), [1] * 4, "VALID", name="c")
        tf.batch_to_space_nd(y, [rate] * 2, _paddings(padding, rate)[1], name="out")

    nodes = transformed(make, "flatten_atrous_conv")
    assert nodes["out"].op == ("DepthwiseConv2dNative" if is_depthwise else "Conv2D")
    assert list(nodes["out"].input) == ["x", nodes["out"].input[1]]
    assert nodes["out"].attr["padding"].s == padding.encode()
    assert not {"SpaceToBatchND", "BatchToSpaceND"} & {node.op for node in nodes.values()}


def _paddings(padding: str, rate: int) -> tuple[list[list[int]], list[list[int]]]:
    """The paddings and crops for images of nine rows and filters of three."""
    begin = rate if padding == "SAME" else 0
    end = -(9 + 2 * begin) % rate
    return [[begin, begin + end]] * 2, [[0, end]] * 2


def test_a_filter_that_others_take_stays() -> None:
    def make(x: Any) -> None:
        w = filters()
        y = tf.nn.conv2d(tf.space_to_batch_nd(x, [3, 3], [[0, 0]] * 2), w, [1] * 4, "VALID")
        y = tf.batch_to_space_nd(y, [3, 3], [[0, 0]] * 2)
        tf.add(tf.reduce_sum(w), y, name="out")

    nodes = transformed(make, "flatten_atrous_conv")
    shapes = [node.attr["value"].tensor.tensor_shape for node in nodes.values() if node.op == "Const"]
    assert sorted(shape.dim[0].size for shape in shapes if len(shape.dim) == 4) == [3, 7]


def test_what_stands_between_stays() -> None:
    def make(x: Any) -> None:
        y = tf.nn.conv2d(tf.space_to_batch_nd(x, [3, 3], [[0, 0]] * 2), filters(), [1] * 4, "VALID")
        tf.batch_to_space_nd(tf.nn.relu(y), [3, 3], [[0, 0]] * 2, name="out")

    assert transformed(make, "flatten_atrous_conv")["out"].op == "BatchToSpaceND"


def images(x: Any, resize: bool, mode: str | None) -> Any:
    if resize:
        x = tf.image.resize_bilinear(x, [12, 11], align_corners=True, name="r")
    return x if mode is None else tf.pad(x, [[0, 0], [1, 1], [2, 1], [0, 0]], mode, name="p")


@pytest.mark.parametrize(
    ("resize", "mode", "expected", "sources"),
    [
        (False, "REFLECT", "FusedPadConv2D", ["x", "p/paddings", "w"]),
        (False, "SYMMETRIC", "FusedPadConv2D", ["x", "p/paddings", "w"]),
        (False, "CONSTANT", "Conv2D", ["p", "w"]),
        (True, "REFLECT", "FusedResizeAndPadConv2D", ["x", "r/size", "p/paddings", "w"]),
        (True, "CONSTANT", "Conv2D", ["p", "w"]),
        (True, None, "FusedResizeAndPadConv2D", ["x", "r/size", "out_dummy_paddings", "w"]),
        (False, None, "Conv2D", ["x", "w"]),
    ],
)
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_images_that_are_moved_in_the_convolution(
    resize: bool, mode: str | None, expected: str, sources: list[str], padding: str
) -> None:
    def make(x: Any) -> None:
        tf.nn.conv2d(images(x, resize, mode), filters(), [1, 2, 2, 1], padding, name="out")

    nodes = transformed(make, *FUSIONS)
    assert (nodes["out"].op, list(nodes["out"].input)) == (expected, sources)
    left = {"p/paddings"} if mode else set()
    if expected == "Conv2D":
        left |= {"x", *(("r", "r/size") if resize else ())}
    assert set(nodes) == {"out", *sources, *left}


def test_one_transform_joins_its_own_kinds_alone() -> None:
    def make(x: Any) -> None:
        tf.nn.conv2d(images(x, True, "REFLECT"), filters(), [1] * 4, "VALID", name="out")

    assert transformed(make, "fuse_resize_and_conv")["out"].op == "Conv2D"
    assert transformed(make, "fuse_pad_and_conv")["r"].op == "ResizeBilinear"


def test_images_that_others_take_stay() -> None:
    def make(x: Any) -> None:
        moved = images(x, True, "REFLECT")
        y = tf.nn.conv2d(moved, filters(), [1] * 4, "SAME")
        tf.add(tf.reduce_sum(moved), y, name="out")

    nodes = transformed(make, *FUSIONS)
    assert {"r", "p"} <= set(nodes) and not any(node.op.startswith("Fused") for node in nodes.values())


def test_dilated_convolutions_stay() -> None:
    def make(x: Any) -> None:
        moved = images(x, False, "REFLECT")
        tf.nn.conv2d(moved, filters(), [1] * 4, "SAME", dilations=[1, 2, 2, 1], name="out")

    assert transformed(make, "fuse_pad_and_conv")["out"].op == "Conv2D"


def test_tensor_arrays_of_version_two() -> None:
    with tf.Graph().as_default() as graph:
        array = tf.TensorArray(tf.float32, 3, name="t").unstack(tf.placeholder(tf.float32, [3], name="x"))
        tf.identity(array.write(0, 5.0).stack(), name="out")
    nodes = {node.name: node for node in TransformGraph(graph.as_graph_def(), ["x"], ["out"], [
        "backport_tensor_array_v3"]).node}  # fmt: skip
    kinds = {node.op for node in nodes.values() if node.op.startswith("TensorArray")}
    assert kinds == {f"TensorArray{word}V2" for word in ("", "Scatter", "Write", "Size", "Gather")}
    assert nodes["t/replacement_flow_node"].op == "Const"
    scatter = next(node for node in nodes.values() if node.op == "TensorArrayScatterV2")
    assert (scatter.input[0], scatter.input[3]) == ("t", "t/replacement_flow_node")
