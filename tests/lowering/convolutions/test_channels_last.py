"""Images with channels first, computed with channels last: graph text, equal results, and where not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text

RNG = np.random.default_rng(29)
NAME = "put_channels_last"


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def convolved(x: Any, filters: int, stride: int = 1, padding: Any = "SAME") -> Any:
    w = tf.Variable(0.3 * values(3, 3, int(x.shape[1]), filters))
    return tf.nn.conv2d(x, w, [1, 1, stride, stride], padding, data_format="NCHW")


def layer(x: Any, filters: int) -> Any:
    b = tf.Variable(values(filters))
    return tf.nn.relu(tf.nn.bias_add(convolved(x, filters), b, data_format="NCHW"))


NAMES = (
    "fold_constants",
    "apply_identities",
    "drop_waits",
    NAME,
    "cancel_transposes",
    "merge_common_subexpressions",
    "remove_unneeded",
    "fuse_biases",
)


def rewritten(y: Any, x: Any, *targets: Any) -> list[str]:
    return [
        kind
        for kind in ops(text(y, [x], *NAMES, targets=targets))
        if kind not in ("_Arg", "Const", "VariableV2")
    ]


def test_a_convolution_is_seen_with_channels_last() -> None:
    x = tf.placeholder(tf.float32, [2, 3, 8, 9], name="x")
    lines = text([convolved(x, 4, 2)], [x], NAME)
    (line,) = [line for line in lines if "Conv2D(" in line]
    assert "strides=(1,2,2,1)" in line and "NCHW" not in line and "float32[2,4,5,4]" in line
    assert ops(lines).count("Transpose") == 2
    before = text([convolved(x, 4, 2)], [x])
    assert "Transpose" not in ops(before) and any("data_format='NCHW'" in line for line in before)


def test_layers_meet_without_transposes() -> None:
    x = tf.placeholder(tf.float32, [2, 3, 8, 8])
    h = tf.nn.max_pool(layer(x, 4), [1, 1, 2, 2], [1, 1, 2, 2], "VALID", data_format="NCHW")
    y = tf.reduce_mean(layer(h, 6), [2, 3])
    assert rewritten([y], x) == ["Transpose", "_BiasedConv2D", "MaxPool", "_BiasedConv2D", "Mean"]


def test_a_training_step_has_no_convolution_of_channels_first() -> None:
    x = tf.placeholder(tf.float32, [2, 3, 8, 8])
    h = tf.nn.avg_pool(layer(x, 4), [1, 1, 2, 2], [1, 1, 2, 2], "VALID", data_format="NCHW")
    h = layer(layer(h, 6), 7)
    y = tf.reduce_mean(tf.square(tf.reshape(h, [2, -1])))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(y)
    kinds = rewritten([y], x, train)
    assert kinds.count("Conv2DBackpropFilter") == 3
    assert kinds.count("Transpose") == 3  # of the images, of what is flattened, and of its gradient
    lines = text([y], [x], *NAMES, targets=[train])
    assert not [line for line in lines if "NCHW" in line and "BiasAddGrad" not in line]


PADDINGS = ["SAME", "VALID", [[0, 0], [0, 0], [1, 2], [2, 0]]]


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_and_their_gradients_agree(monkeypatch, padding, stride) -> None:
    x = tf.placeholder(tf.float32, [2, 3, 7, 9])
    y = convolved(x, 5, stride, padding)
    (w,) = tf.trainable_variables()
    fetches = [y, *tf.gradients(y * y, [x, w])]
    log = agree(
        monkeypatch, fetches, {x: values(2, 3, 7, 9)}, NAME, fires=3, setup=tf.global_variables_initializer()
    )
    assert log.count(f"{NAME}: ") == 3


@pytest.mark.parametrize("training", [True, False])
def test_normalised_residual_layers_agree(monkeypatch, training) -> None:
    x = tf.placeholder(tf.float32, [4, 3, 6, 6])
    first = layer(x, 4)
    scale, offset = tf.Variable(values(4)), tf.Variable(values(4))
    statistics = {} if training else {"mean": tf.constant(values(4)), "variance": tf.constant(values(4) ** 2)}
    h = tf.nn.fused_batch_norm(
        convolved(first, 4), scale, offset, data_format="NCHW", is_training=training, **statistics
    )[0]
    y = tf.nn.relu(h + first)
    loss = tf.reduce_mean(tf.square(y))
    fetches = [y, loss, *tf.gradients(loss, [x, scale, offset])]
    agree(
        monkeypatch,
        fetches,
        {x: values(4, 3, 6, 6)},
        NAME,
        fires=6 if training else 5,
        setup=tf.global_variables_initializer(),
    )


@pytest.mark.parametrize("pool", ["max", "average", "both"])
def test_poolings_agree(monkeypatch, pool) -> None:
    x = tf.placeholder(tf.float32, [2, 3, 9, 8])
    h = layer(x, 4)
    window, stride = [1, 1, 3, 3], [1, 1, 2, 2]
    y = tf.zeros([])
    if pool != "average":
        y += tf.nn.max_pool(h, window, stride, "SAME", data_format="NCHW")
    if pool != "max":
        y += tf.nn.avg_pool(h, window, stride, "SAME", data_format="NCHW")
    fetches = [y, *tf.gradients(y * y, [x])]
    agree(
        monkeypatch,
        fetches,
        {x: values(2, 3, 9, 8)},
        NAME,
        fires=6 if pool == "both" else 4,
        setup=tf.global_variables_initializer(),
    )


def test_depthwise_and_transposed_convolutions_agree(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [2, 3, 6, 6])
    h = tf.nn.depthwise_conv2d(x, tf.Variable(values(3, 3, 3, 2)), [1, 1, 1, 1], "SAME", data_format="NCHW")
    w = tf.Variable(values(3, 3, 4, 6))
    y = tf.nn.conv2d_transpose(h, w, [2, 4, 12, 12], [1, 1, 2, 2], "SAME", data_format="NCHW")
    fetches = [y, *tf.gradients(y * y, [x, w])]
    agree(
        monkeypatch, fetches, {x: values(2, 3, 6, 6)}, NAME, fires=5, setup=tf.global_variables_initializer()
    )


def test_volumes_agree(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [2, 3, 4, 6, 6])
    w = tf.Variable(values(2, 3, 3, 3, 4))
    y = tf.nn.conv3d(x, w, [1, 1, 1, 2, 1], "SAME", data_format="NCDHW")
    y = tf.nn.max_pool3d(y, [1, 1, 2, 2, 2], [1, 1, 2, 2, 2], "SAME", data_format="NCDHW")
    fetches = [y, *tf.gradients(y * y, [x, w])]
    log = agree(
        monkeypatch,
        fetches,
        {x: values(2, 3, 4, 6, 6)},
        NAME,
        fires=5,
        setup=tf.global_variables_initializer(),
    )
    assert f"{NAME}: " in log


def test_unknown_batches_agree(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [None, 3, 6, 6])
    y = tf.reduce_sum(layer(x, 4), [1, 2, 3])
    fetches = [y, *tf.gradients(y, [x])]
    agree(
        monkeypatch, fetches, {x: values(2, 3, 6, 6)}, NAME, fires=2, setup=tf.global_variables_initializer()
    )


@pytest.mark.parametrize("reason", ["no convolution", "channels last", "unknown rank"])
def test_other_graphs_stay_as_they_are(reason) -> None:
    x = tf.placeholder(tf.float32, None if reason == "unknown rank" else [2, 4, 8, 8])
    if reason == "no convolution":
        y = tf.nn.max_pool(x, [1, 1, 2, 2], [1, 1, 2, 2], "SAME", data_format="NCHW")
    else:
        layout = "NHWC" if reason == "channels last" else "NCHW"
        w = tf.Variable(tf.ones([3, 3, 8 if layout == "NHWC" else 4, 2]))
        y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME", data_format=layout)
    assert text([y], [x], NAME) == text([y], [x])
