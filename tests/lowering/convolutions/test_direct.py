"""Convolutions of small images in machine code: graph text, equal results, and what stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, text
from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.machine.machine_profiles import ZEN5, generic
from flowstone.native.codegen import host

RNG = np.random.default_rng(42)
NAME = "convolve_directly"

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason())


@pytest.fixture(autouse=True)
def paying(monkeypatch) -> Iterator[None]:
    """Uses machine code for small images on any machine."""
    monkeypatch.setattr(flags, "NATIVE", 2)
    with machine.using(generic()._replace(direct_products=100_000)):
        yield


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def layer(channels: int, outputs: int, side: int = 8) -> tuple[Any, Any, Any]:
    x, w = tf.placeholder(tf.float32, [2, side, side, channels]), tf.Variable(values(3, 3, channels, outputs))
    return x, w, tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")


def test_a_convolution_and_its_gradients_are_marked() -> None:
    x, w, y = layer(4, 6)
    found = text([y, *tf.gradients(y * y, [x, w])], [x], "fold_constants", "apply_identities", NAME)
    assert sum("direct=True" in line for line in found) == 3


@pytest.mark.parametrize(
    ("images", "channels", "is_direct"),
    [((2, 7, 7), 64, True), ((8, 16, 16), 16, True), ((2, 14, 14), 64, False)],
)
def test_small_images_on_amds_vectors_are_direct(images, channels, is_direct) -> None:
    with machine.using(ZEN5):
        x = tf.placeholder(tf.float32, [*images, channels])
        y = tf.nn.conv2d(x, tf.Variable(values(3, 3, channels, channels)), [1, 1, 1, 1], "SAME")
        found = text([y], [x], "fold_constants", "apply_identities", NAME)
    assert any("direct=True" in line for line in found) is is_direct


def test_filters_stay_in_the_programs_order() -> None:
    x, _, y = layer(24, 24)
    passes = ("fold_constants", "apply_identities", NAME, "lay_out_filters")
    assert "memory_order" not in "".join(text([y], [x], *passes))
    assert "memory_order" in "".join(text([y], [x], *(each for each in passes if each != NAME)))


def convolved(images: list[int | None], kernel: list[int], dtype: Any = tf.float32, **more: Any) -> Any:
    x = tf.placeholder(dtype, images)
    return tf.nn.conv2d(x, tf.constant(values(*kernel), dtype), [1, 1, 1, 1], "SAME", **more)


@pytest.mark.parametrize(
    ("make", "is_marked"),
    [
        (lambda: convolved([1, 8, 8, 4], [3, 3, 4, 4], dilations=[1, 2, 1, 1]), True),
        (lambda: convolved([1, 40, 40, 64], [3, 3, 64, 64]), False),
        (lambda: convolved([1, 8, 8, 4], [3, 3, 4, 4], tf.float64), False),
        (lambda: convolved([None, 8, 8, 4], [3, 3, 4, 4]), False),
        (lambda: convolved([1, 8, 8, 4], [1, 1, 4, 4]), False),
        (lambda: convolved([1, 8, 8, 4], [3, 3, 2, 4]), False),
        (lambda: convolved([1, 4, 8, 8], [3, 3, 4, 4], data_format="NCHW"), False),
    ],
    ids=["dilated", "large", "float64", "unknown batch", "pointwise", "groups", "channels first"],
)
def test_which_are_marked(make, is_marked) -> None:
    found = text([make()], [], "fold_constants", "apply_identities", NAME)
    assert any("direct=True" in line for line in found) is is_marked


@pytest.mark.parametrize("padding", ["SAME", "VALID", [[0, 0], [2, 1], [1, 0], [0, 0]]])
@pytest.mark.parametrize(
    ("taps", "strides", "dilations"),
    [((3, 3), (1, 1), (1, 1)), ((5, 2), (2, 2), (1, 1)), ((2, 3), (2, 1), (1, 1)), ((3, 2), (1, 1), (2, 3))],
)
def test_results_and_gradients_agree(monkeypatch, padding, taps, strides, dilations) -> None:
    x, w = tf.placeholder(tf.float32, [3, 12, 11, 5]), tf.Variable(values(*taps, 5, 10))
    y = tf.nn.conv2d(x, w, [1, *strides, 1], padding, dilations=[1, *dilations, 1])
    fetches = [y, *tf.gradients(y * tf.constant(values(*y.shape.as_list())), [x, w])]
    setup = tf.global_variables_initializer()
    agree(monkeypatch, fetches, {x: values(3, 12, 11, 5)}, NAME, fires=3, setup=setup)


@pytest.mark.parametrize("activate", [tf.identity, tf.nn.relu, tf.tanh, tf.sigmoid])
@pytest.mark.parametrize("scale", [1.0, np.inf])
def test_bias_and_activation_come_along(monkeypatch, activate, scale) -> None:
    x, _, y = layer(4, 6)
    y = activate(tf.nn.bias_add(y, tf.constant(values(6))))
    setup = tf.global_variables_initializer()
    agree(monkeypatch, [y], {x: values(2, 8, 8, 4) * np.float32(scale)}, NAME, fires=1, setup=setup)


def test_words_of_sentences_are_convolved_as_rows(monkeypatch) -> None:
    x, w = tf.placeholder(tf.float32, [2, 20, 7, 1]), tf.Variable(values(3, 7, 1, 9))
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "VALID")
    fetches, setup = [y, *tf.gradients(y * y, [x, w])], tf.global_variables_initializer()
    agree(monkeypatch, fetches, {x: values(2, 20, 7, 1)}, NAME, fires=3, setup=setup)


def test_training_goes_on_where_filters_lie_otherwise() -> None:
    x, w, y = layer(24, 24)
    train = tf.train.MomentumOptimizer(1e-3, 0.9).minimize(tf.reduce_sum(y * y))
    found = []
    for native in (2, 0):
        flags.NATIVE = native  # the fixture puts it back
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(train, {x: np.ones([2, 8, 8, 24])})
            found.append(session.run(w))
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)
