"""Pooling before activations, and places of maxima kept: graph text, equal results, and where not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune

RNG = np.random.default_rng(13)
BOTH = ("pool_first", "keep_places")


def images(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def pooled(activation: Any, layout: str = "NHWC", size: int = 2, padding: str = "VALID") -> Any:
    dims = [2, 9, 8, 3] if layout == "NHWC" else [2, 3, 9, 8]
    x = tf.placeholder(tf.float32, dims, name="x")
    window = [1, size, size, 1] if layout == "NHWC" else [1, 1, size, size]
    strides = [1, 2, 2, 1] if layout == "NHWC" else [1, 1, 2, 2]
    y = tf.nn.max_pool(activation(x), window, strides, padding, data_format=layout)
    return x, y


@pytest.mark.parametrize("activation", [tf.nn.relu, tf.nn.relu6, tf.nn.elu, tf.nn.selu])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("size", [2, 3])
def test_activations_that_never_decrease_come_after(monkeypatch, activation, padding, size) -> None:
    x, y = pooled(activation, padding=padding, size=size)
    gradient = tf.gradients(
        tf.square(y) * tf.placeholder_with_default(images(*y.shape.as_list()), y.shape), x
    )[0]
    feed = {x: images(2, 9, 8, 3)}
    log = agree(monkeypatch, [y, gradient], feed, *BOTH, fires=(1, 1))
    assert "pool_first: " in log
    lines = ops(text([y], [x], "pool_first"))
    assert lines[-2] == "MaxPool" and lines[-1] == activation(x).op.type
    assert "keep_places: " in log


def test_the_size_of_the_batch_need_not_be_known() -> None:
    x = tf.placeholder(tf.float32, [None, 8, 8, 3])
    y = tf.nn.max_pool(tf.nn.relu(x), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    assert ops(text([y], [x], "pool_first"))[-2:] == ["MaxPool", "Relu"]
    y = tf.nn.max_pool(tf.nn.relu(x), [1, 2, 2, 1], [1, 1, 1, 1], "SAME")  # as many maxima as elements
    assert ops(text([y], [x], "pool_first"))[-2:] == ["Relu", "MaxPool"]


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("size", [2, 3])
def test_places_are_kept_for_the_gradient(monkeypatch, layout, padding, size) -> None:
    x, y = pooled(lambda x: x, layout, size, padding)
    gradient = tf.gradients(tf.exp(y), x)[0]
    ties = np.round(images(*x.shape.as_list()))
    log = agree(monkeypatch, [y, gradient], {x: ties}, "keep_places", fires=1)
    assert "keep_places: " in log and "_MaxPoolGradAtPlaces" in log


@pytest.mark.parametrize("layout", ["NDHWC", "NCDHW"])
@pytest.mark.parametrize(("size", "padding"), [(2, "VALID"), (2, "SAME"), (3, "SAME")])
def test_volumes_are_pooled_likewise(monkeypatch, layout, size, padding) -> None:
    last = layout == "NDHWC"
    x = tf.placeholder(tf.float32, [2, 5, 6, 4, 3] if last else [2, 3, 5, 6, 4])
    window, strides = ([1, *[n] * 3, 1] if last else [1, 1, *[n] * 3] for n in (size, 2))
    y = tf.nn.max_pool3d(tf.nn.relu(x), window, strides, padding, data_format=layout)
    gradient = tf.gradients(tf.exp(y), x)[0]
    log = agree(
        monkeypatch, [y, gradient], {x: np.round(2 * images(*x.shape.as_list()))}, *BOTH, fires=(1, 1)
    )
    assert "pool_first: " in log and "keep_places: " in log and "_MaxPoolGradAtPlaces" in log
    assert ops(text([y], [x], "pool_first"))[-2:] == ["MaxPool3D", "Relu"]


def test_tanh_of_many_comes_after(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [4, 100, 104, 5])
    filters = tf.constant(images(3, 3, 5, 8))
    before = tf.nn.conv2d(x, filters, [1, 1, 1, 1], "SAME")
    y = tf.nn.max_pool(tf.tanh(before * 0.1), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    gradient = tf.gradients(tf.square(y), filters)[0] / 1e4
    assert "pool_first: " in agree(
        monkeypatch, [y, gradient], {x: images(4, 100, 104, 5)}, *BOTH, fires=(1, 1)
    )
    assert ops(text([y], [x], "pool_first"))[-2:] == ["MaxPool", "Tanh"]


def test_what_was_pooled_is_let_go(monkeypatch) -> None:
    """The gradient takes the places and the shape: the convolution's result ends with the pooling."""
    x = tf.placeholder(tf.float32, [2, 16, 16, 4])
    filters = tf.get_variable("w", [3, 3, 4, 8], initializer=tf.constant_initializer(images(3, 3, 4, 8)))
    convolved = tf.nn.conv2d(x, filters, [1, 1, 1, 1], "SAME")
    y = tf.nn.relu(tf.nn.max_pool(convolved, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"))
    gradients = tf.gradients(tf.reduce_sum(tf.square(y)), [x, filters])
    held = []
    for names in ((), ("keep_places",)):
        subgraph = prune(gradients, [], [x])
        run_passes(subgraph, EVERY, {each.name for each in EVERY if each.name not in names})
        consumers = subgraph.consumers()[next(n for n in subgraph.nodes if n.type == "Conv2D").outputs[0]]
        held.append([node.type for node in consumers])
    assert held == [["MaxPool", "MaxPoolGrad"], ["_MaxPoolWithPlaces"]]
    feed, setup = {x: images(2, 16, 16, 4)}, tf.global_variables_initializer()
    agree(monkeypatch, gradients, feed, "keep_places", fires=1, setup=setup)


def test_what_others_look_at_stays() -> None:
    x, y = pooled(tf.nn.relu)
    active = y.op.inputs[0]
    assert ops(text([y, active], [x], "pool_first")) == ["_Arg", "Relu", "MaxPool"]
    assert ops(text([y, tf.reduce_sum(active)], [x], "pool_first"))[1:3] == ["Relu", "MaxPool"]
    x, y = pooled(tf.tanh)
    assert ops(text([y], [x], "pool_first")) == ["_Arg", "Tanh", "MaxPool"]
    x, y = pooled(lambda x: -x)
    assert ops(text([y], [x], "pool_first")) == ["_Arg", "Neg", "MaxPool"]
    x = tf.placeholder(tf.float32, [1, 4, 4, 1])
    same = tf.nn.max_pool(tf.nn.relu(x), [1, 3, 3, 1], [1, 1, 1, 1], "SAME")
    assert ops(text([same], [x], "pool_first")) == ["_Arg", "Relu", "MaxPool"]


def test_what_others_wait_for_stays() -> None:
    for waited in ("pool", "activation"):
        x, y = pooled(tf.nn.relu)
        with tf.control_dependencies([y if waited == "pool" else y.op.inputs[0]]):
            later = tf.assign(tf.Variable(0.0), 1.0)
        assert ops(text([y, later], [x], "pool_first"))[1:3] == ["Relu", "MaxPool"]


def test_second_derivatives_and_unknown_shapes_find_the_maxima_as_before(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [None, 6, 6, 2])
    y = tf.nn.max_pool(tf.nn.relu(x), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    first = tf.gradients(y * y * y, x)[0]
    second = tf.gradients(first, x)[0]
    agree(monkeypatch, [first, second], {x: images(3, 6, 6, 2)}, *BOTH, fires=(0, 1))


@pytest.mark.parametrize("taken", [True, False])
def test_beside_and_within_conditionals(monkeypatch: Any, taken: bool) -> None:
    x = tf.placeholder(tf.float32, [2, 8, 8, 3])
    chosen, labels = tf.placeholder(tf.bool, []), tf.one_hot([0, 2], 4)
    filters = tf.get_variable("w", [3, 3, 3, 4], initializer=tf.constant_initializer(images(3, 3, 3, 4)))

    def layer(x: Any) -> Any:
        y = tf.nn.relu(tf.nn.conv2d(x, filters, [1, 1, 1, 1], "SAME"))
        return tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")

    y = tf.cond(chosen, lambda: layer(x), lambda: 0.5 * layer(2.0 * x)) + layer(x)
    logits = tf.reduce_sum(y, [1, 2])
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    gradients = tf.gradients(loss, [x, filters])
    feed = {x: images(2, 8, 8, 3), chosen: taken}
    names = ("pool_first", "keep_places", "fuse_losses")
    setup = tf.global_variables_initializer()
    log = agree(monkeypatch, [loss, *gradients], feed, *names, fires=(3, 3, 1), setup=setup)
    assert all(f"{name}:" in log for name in names)
