"""Layers of `tf.contrib.layers` give TensorFlow 1.15's graphs, values, gradients and training steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contrib.layers.contrib_programs import COLLECTIONS, DIFFERENCES, PROGRAMS
from tests.layers.layer_programs import graph_lines, run
from tests.layers.test_tf_layers import is_below

import flowstone as tf
from flowstone.contrib.layers.pools import pool
from flowstone.contrib.layers.reshaping import inner_flatten
from flowstone.contrib.layers.scaling import poincare_normalize

GOLDEN = Path(__file__).parents[2] / "golden" / "contrib"
VALUES = np.load(GOLDEN / "layers.npz")
SECTIONS = (GOLDEN / "layers.txt").read_text(encoding="utf-8").split("# ")[1:]
LINES = {section.split("\n")[0]: section.strip().split("\n")[1:] for section in SECTIONS}


def test_every_program_has_its_goldens() -> None:
    assert list(LINES) == list(PROGRAMS) == list(VALUES.files)
    assert set(DIFFERENCES) <= set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs(name: str) -> None:
    found = graph_lines(tf, name, PROGRAMS, COLLECTIONS)
    expected = LINES[name]
    assert [line for line in found if not line.startswith("node ")] == [
        line for line in expected if not line.startswith("node ")
    ]
    nodes = {line[5:] for line in found if line.startswith("node ")}
    differing = nodes ^ {line[5:] for line in expected if line.startswith("node ")}
    meant = DIFFERENCES.get(name, {})
    unmeant = [line for line in differing if not any(is_below(line, node) for node in meant)]
    assert sorted(unmeant) == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_gradients_and_training(name: str) -> None:
    expected, start = VALUES[name], 0
    found = run(tf, name, PROGRAMS)
    assert sum(value.size for value in found.values()) == expected.size
    for key, value in found.items():
        golden = expected[start : start + value.size].reshape(value.shape)
        start += value.size
        np.testing.assert_allclose(value, golden, rtol=2e-4, atol=2e-5, err_msg=key)


IMAGES, ROWS = [2, 6, 5, 3], [4, 3]


@pytest.mark.parametrize(
    ("layer", "shape", "arguments", "message"),
    [
        ("fully_connected", ROWS, {"num_outputs": 2.0}, "num_outputs type"),
        ("fully_connected", [3], {"num_outputs": 2}, "min_ndim=2"),
        ("fully_connected", [2, None], {"num_outputs": 2}, "last dimension"),
        ("conv2d", IMAGES, {"num_outputs": 4, "kernel_size": 3, "data_format": "XX"}, "Invalid data_format"),
        ("conv2d", ROWS, {"num_outputs": 4, "kernel_size": 3}, "expects input with rank 4, got 2"),
        ("convolution", ROWS, {"num_outputs": 4, "kernel_size": 3}, "not supported for input with rank 2"),
        ("conv2d", IMAGES, {"num_outputs": 4, "kernel_size": 3, "padding": "FOO"}, "padding"),
        ("conv2d", [2, 6, 5, None], {"num_outputs": 4, "kernel_size": 3}, "channel dimension"),
        (
            "conv2d_transpose",
            IMAGES,
            {"num_outputs": 4, "kernel_size": 3, "data_format": "N"},
            "NCHW or NHWC",
        ),
        (
            "conv3d_transpose",
            IMAGES,
            {"num_outputs": 4, "kernel_size": 3, "data_format": "N"},
            "NCDHW or NDHWC",
        ),
        (
            "separable_conv2d",
            IMAGES,
            {"num_outputs": 4, "kernel_size": 3, "data_format": "N"},
            "NCHW or NHWC",
        ),
        ("conv2d_in_plane", ROWS, {"kernel_size": 3}, "at least 4 not: 2"),
        ("max_pool2d", IMAGES, {"kernel_size": 2, "data_format": "NCDHW"}, "NCHW or NHWC"),
        ("avg_pool3d", IMAGES, {"kernel_size": 2, "data_format": "NHWC"}, "NCDHW or NDHWC"),
        ("max_pool2d", ROWS, {"kernel_size": 2}, "ndim=4"),
        ("bias_add", IMAGES, {"data_format": "N"}, "NCHW or NHWC"),
        ("bias_add", None, {}, "must be known"),
        ("batch_norm", IMAGES, {"data_format": "N"}, "NCHW or NHWC"),
        ("batch_norm", None, {}, "undefined rank"),
        ("batch_norm", [2, None], {}, "`C` dimension must be known"),
        ("batch_norm", IMAGES, {"updates_collections": None, "renorm": True}, "renorm is not supported"),
        ("layer_norm", IMAGES, {"begin_norm_axis": 4}, "must be < rank"),
        ("layer_norm", [2, None], {}, "not fully defined"),
        ("layer_norm", None, {}, "undefined rank"),
        ("instance_norm", IMAGES, {"data_format": "N"}, "NCHW or NHWC"),
        ("group_norm", IMAGES, {"groups": 2}, "3 channels is not commensurate with 2 groups"),
        ("group_norm", IMAGES, {"groups": 4}, "Invalid groups 4 for 3 channels"),
        ("group_norm", IMAGES, {"groups": 3, "reduction_axes": [9]}, "out of bounds"),
        ("group_norm", IMAGES, {"groups": 3, "channels_axis": 1, "reduction_axes": [1]}, "exclusive"),
        ("softmax", [3], {}, "at least 2 not: 1"),
        ("spatial_softmax", IMAGES, {"data_format": "N"}, "NCHW or NHWC"),
        ("unit_norm", IMAGES, {"dim": -1}, "smaller than the input rank"),
        ("maxout", IMAGES, {"num_units": 2}, "not a multiple"),
        ("flatten", [], {}, "min_ndim=1"),
        ("gdn", IMAGES, {"data_format": "N"}, "Unknown data format"),
        ("images_to_sequence", ROWS, {}, "4D"),
        ("legacy_fully_connected", [3], {"num_output_units": 2}, "at least 2 not: 1"),
        ("legacy_fully_connected", [None, None], {"num_output_units": 2}, "must be known"),
    ],
)
def test_refused(layer: str, shape: Any, arguments: dict[str, Any], message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        getattr(tf.contrib.layers, layer)(tf.placeholder(tf.float32, shape), **arguments)


def test_stack_refuses_a_number() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="list or tuple"):
        tf.contrib.layers.stack(tf.ones(ROWS), tf.contrib.layers.fully_connected, 3)


@pytest.mark.parametrize("shape", [IMAGES, [2, None, 5, 3]])
def test_channels_first_is_channels_last_moved(shape: Any) -> None:
    layers = tf.contrib.layers
    values = np.random.RandomState(0).rand(*IMAGES).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, shape)
        moved = tf.transpose(x, [0, 3, 1, 2])
        options: Any = {"reuse": tf.AUTO_REUSE, "scope": "same"}
        pairs = []
        for layer, extra in (
            (layers.instance_norm, {}),
            (layers.bias_add, {"initializer": tf.ones_initializer()}),
            (layers.batch_norm, {"updates_collections": None, "fused": False}),
        ):
            last = layer(x, data_format="NHWC", **extra, **options)
            first = layer(moved, data_format="NCHW", **extra, **options)
            pairs.append([last, tf.transpose(first, [0, 2, 3, 1])])
        pairs.append([layers.spatial_softmax(x), layers.spatial_softmax(moved, data_format="NCHW")])
        session.run(tf.global_variables_initializer())
        for one, other in session.run(pairs, {x: values}):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_pool_of_any_rank() -> None:
    values = np.arange(12, dtype=np.float32).reshape(1, 6, 2)
    with tf.Graph().as_default(), tf.Session() as session:
        top = pool(values, 2, "MAX", stride=2)
        mean = pool(values[:, :, :, None], [2, 1], "AVG", scope="mean")
        assert (top.op.name, mean.op.name) == ("max_pool/Squeeze", "mean")
        assert session.run(top).tolist() == [[[2, 3], [6, 7], [10, 11]]]
        assert session.run(mean)[0, :, 0, 0].tolist() == [1, 3, 5, 7, 9]


def test_inner_flatten() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        assert inner_flatten(tf.ones([2, 3, 4]), 2).shape.as_list() == [2, 12]
        sparse = tf.SparseTensor([[1, 2, 3]], [1.0], [2, 3, 4])
        assert session.run(inner_flatten(sparse, 2)).indices.tolist() == [[1, 11]]
        with pytest.raises(ValueError, match="rank less than new_rank"):
            inner_flatten(tf.ones([2]), 2)


def test_poincare_normalize() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(poincare_normalize(tf.constant([[3.0, 4.0], [0.3, 0.4]])))
    np.testing.assert_allclose(found, [[0.6, 0.8], [0.3, 0.4]], atol=2e-5)


def test_dropout_keeps_the_mean() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        kept = session.run(tf.contrib.layers.dropout(tf.ones([10000]), 0.8, seed=1))
    assert set(np.unique(kept)) == {np.float32(0), np.float32(1.25)}
    assert abs(kept.mean() - 1) < 0.03


def test_the_hash_key_is_that_of_1_15() -> None:
    assert tf.contrib.layers.SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY == 956888297470


@pytest.mark.parametrize("make", ["conv2d", "fully_connected"])
def test_a_getter_may_give_tensors_in_place_of_variables(graph: tf.Graph, make: str) -> None:
    """As spectral normalization does, which divides kernels where layers ask for them."""

    def halved(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        variable = getter(name, *args, **kwargs)
        return tf.multiply(variable, 0.5) if name.endswith("weights") else variable

    x = tf.constant(np.ones([1, 3, 3, 2], np.float32))
    size = {"conv2d": (4, 3), "fully_connected": (4,)}[make]
    with tf.variable_scope("scope", custom_getter=halved):
        layer = getattr(tf.contrib.layers, make)
        y = layer(x, *size, activation_fn=None, weights_initializer=tf.ones_initializer())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(y)[0, 1, 1, 0] == (9.0 if make == "conv2d" else 1.0)
    assert [x.op.name.rpartition("/")[2] for x in tf.model_variables()] == ["weights", "biases"]
