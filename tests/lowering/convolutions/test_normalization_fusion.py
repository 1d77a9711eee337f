"""Normalisation folded into convolutions: graph text, equal results without, and where it is not done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text

RNG = np.random.default_rng(19)
NAME = "fold_normalizations"


@pytest.fixture(autouse=True)
def settings(set_profile) -> None:
    set_profile(scaled_images=64)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def moments(channels: int, make: Any = tf.Variable) -> list[Any]:
    """Scale, offset, mean and variance."""
    return [
        make(values(channels)),
        make(values(channels)),
        make(values(channels)),
        make(values(channels) ** 2 + 0.5),
    ]


def image(layout: str = "NHWC", batch: int | None = 2) -> tuple[Any, Any]:
    dims = (6, 7, 3) if layout == "NHWC" else (3, 6, 7)
    return tf.placeholder(tf.float32, [batch, *dims], name="x"), values(2, *dims)


def convolved(x: Any, layout: str = "NHWC", depthwise: bool = False, make: Any = tf.Variable) -> Any:
    if depthwise:
        return tf.nn.depthwise_conv2d(x, make(values(3, 3, 3, 2)), [1] * 4, "SAME", data_format=layout)
    return tf.nn.conv2d(x, make(values(3, 3, 3, 4)), [1] * 4, "SAME", data_format=layout)


def normalized(x: Any, how: list[Any], layout: str = "NHWC") -> Any:
    return tf.nn.fused_batch_norm(x, *how, data_format=layout, is_training=False)[0]


def check(monkeypatch: Any, y: Any, feed: Any, fires: int) -> str:
    return agree(
        monkeypatch, [y], feed, NAME, fires=fires, setup=tf.global_variables_initializer(), tolerance=1e-3
    )


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_inference_scales_the_filter(monkeypatch, layout, depthwise, biased) -> None:
    x, data = image(layout)
    y = convolved(x, layout, depthwise)
    channels = 6 if depthwise else 4
    if biased:
        y = tf.nn.bias_add(y, tf.Variable(values(channels)), data_format=layout)
    y = tf.nn.relu(normalized(y, moments(channels), layout))
    before, after = ops(text([y], [x])), ops(text([y], [x], NAME))
    assert "FusedBatchNormV3" in before and "FusedBatchNormV3" not in after
    assert after.count("BiasAdd") == 1 and after[-1] == "Relu"
    log = check(monkeypatch, y, {x: data}, fires=1)
    assert "scales the filter" in log and ("_BiasedConv2D(" in log) == (not depthwise)


@pytest.mark.parametrize("biased", [False, True])
def test_the_composed_form(monkeypatch, biased) -> None:
    x, data = image(batch=None)
    scale, offset, mean, variance = moments(4)
    y = convolved(x)
    if biased:
        y = tf.nn.bias_add(y, tf.Variable(values(4)))
    y = tf.nn.relu(tf.nn.batch_normalization(y, mean, variance, offset, scale, 1e-3))
    log = check(monkeypatch, y, {x: data}, fires=1)
    assert "scales the filter" in log and "fuse_biases" in log


def test_of_constants_nothing_is_left_for_the_step(monkeypatch) -> None:
    x, data = image()
    y = normalized(convolved(x, make=tf.constant), moments(4, tf.constant))
    assert ops(text([y], [x], NAME)) == ["_Arg", "Const", "Const", "Conv2D", "BiasAdd"]
    assert "scales the filter" in agree(monkeypatch, [y], {x: data}, NAME, fires=1, tolerance=1e-3)


def test_chains(monkeypatch) -> None:
    x, data = image()
    y = tf.nn.relu(normalized(convolved(x), moments(4)))
    y = tf.nn.conv2d(y, tf.Variable(values(1, 1, 4, 4)), [1] * 4, "SAME")
    y = tf.nn.relu(normalized(y, moments(4)) + 1.0)
    log = check(monkeypatch, y, {x: data}, fires=2)
    assert log.count("scales the filter") == 2


def test_large_filters_of_small_images_stay() -> None:
    x = tf.placeholder(tf.float32, [1, 2, 2, 64])
    y = tf.nn.conv2d(x, tf.Variable(tf.zeros([3, 3, 64, 4])), [1] * 4, "SAME")
    assert "FusedBatchNormV3" in ops(text([normalized(y, moments(4))], [x], NAME))


def test_small_images_stay(set_profile) -> None:
    x, _ = image()
    y = normalized(convolved(x), moments(4))
    set_profile(scaled_images=2 * 6 * 7 * 4 + 1)
    assert "FusedBatchNormV3" in ops(text([y], [x], NAME))


def test_what_others_take_stays(monkeypatch) -> None:
    x, data = image()
    z = convolved(x)
    y = normalized(z, moments(4))
    assert "FusedBatchNormV3" in ops(text([y, z], [x], NAME))
    assert "FusedBatchNormV3" in ops(text([y, tf.exp(z)], [x], NAME))
    assert "FusedBatchNormV3" in ops(text([y, *y.op.outputs[1:3]], [x], NAME))
    gradient = tf.gradients(tf.square(y), [x, *tf.trainable_variables()[:3]])
    agree(
        monkeypatch,
        [y, *gradient],
        {x: data},
        NAME,
        fires=0,
        setup=tf.global_variables_initializer(),
        tolerance=1e-3,
    )


def test_training_stays() -> None:
    x, _ = image()
    y = tf.nn.fused_batch_norm(convolved(x), *moments(4)[:2])[0]
    assert "FusedBatchNormV3" in ops(text([y], [x], NAME))


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_filter_that_changes_in_between_is_read_before(monkeypatch, use_resource) -> None:
    x, data = image()
    w = tf.Variable(values(3, 3, 3, 4), use_resource=use_resource)
    z = tf.nn.conv2d(x, w, [1] * 4, "SAME")
    with tf.control_dependencies([z]):
        changed = tf.assign(w, values(3, 3, 3, 4))
    with tf.control_dependencies([changed]):
        y = normalized(tf.identity(z), moments(4))
    log = check(monkeypatch, y, {x: data}, fires=0)
    assert "scales the filter" not in log


def test_on_several_devices_each_folds_its_own() -> None:
    x, data = image()
    z, how = convolved(x), moments(4)
    with tf.device("/cpu:1"):
        y = tf.nn.relu(normalized(convolved(normalized(z, how)[..., :3]), moments(4)))
    results = []
    for count in (2, 1):
        config = tf.ConfigProto(device_count={"CPU": count}, allow_soft_placement=True)
        with tf.Session(config=config) as s:
            s.run(tf.global_variables_initializer())
            results.append(s.run(y, {x: data}))
    np.testing.assert_allclose(*results, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("variance", [-1.0, np.inf, np.nan])
def test_constants_that_make_no_finite_factor_stay(monkeypatch, variance) -> None:
    x, value = image()
    numbers = [np.full(4, number, "f") for number in (1.0, 0.5, 0.25, variance)]
    scale, offset, mean, variances = map(tf.constant, numbers)
    y = convolved(x, make=tf.constant)
    z = tf.nn.fused_batch_norm(y, scale, offset, mean, variances, 0.0, is_training=False)[0]
    assert f"{NAME}:" not in agree(monkeypatch, [z], {x: value}, NAME, fires=0)
