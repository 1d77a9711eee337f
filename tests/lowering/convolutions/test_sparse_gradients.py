"""Gradients of convolutions below maxima over positions: graph text, equal values, what stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.machine.machine_profiles import generic
from flowstone.lowering.convolutions import sparse_gradients
from flowstone.native.codegen import host

NAME = "skip_zero_gradients"
RNG = np.random.default_rng(5)

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")


@pytest.fixture(autouse=True)
def paying(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Takes convolutions of any size."""
    monkeypatch.setattr(flags, "NATIVE", 2)
    monkeypatch.setattr(sparse_gradients, "LEAST", 0)
    with machine.using(generic()._replace(direct_products=0)):
        yield


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def words(
    width: int = 3, filters: int = 9, length: int = 40, batch: int = 3, dtype: Any = tf.float32, **more: Any
) -> tuple[Any, Any, Any]:
    """Texts, a filter, and its results at all positions."""
    x = tf.placeholder(dtype, [batch, length, 11])
    w = tf.constant(values(width, 11, filters), dtype)
    return x, w, tf.nn.conv1d(x, w, more.pop("stride", 1), more.pop("padding", "VALID"), **more)


def check(monkeypatch: Any, x: Any, w: Any, z: Any, fires: int, given: Any = None, more: Any = ()) -> None:
    """With and without the pass, of the gradients of something made of the maxima."""
    found = tf.gradients(z * tf.constant(values(*z.shape.as_list()), z.dtype), [x, w])
    fed = values(*x.shape.as_list()) if given is None else given
    agree(monkeypatch, [z, *found, *more], {x: fed}, NAME, fires=fires)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "activate", [tf.identity, tf.nn.relu, tf.tanh, tf.sigmoid, tf.nn.elu, tf.nn.softplus]
)
def test_maxima_over_the_words_of_texts(monkeypatch: Any, width: int, activate: Any) -> None:
    x, w, y = words(width)
    fires = 2 if width > 1 else 0  # products of matrices stay
    check(monkeypatch, x, w, tf.reduce_max(activate(y + 0.1), 1), fires)


@pytest.mark.parametrize(
    "more", [{"stride": 2}, {"padding": "SAME"}, {"batch": 1}, {"filters": 48, "length": 90}]
)
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_other_texts(monkeypatch: Any, dtype: Any, more: Any) -> None:
    x, w, y = words(dtype=dtype, **more)
    check(monkeypatch, x, w, tf.reduce_max(tf.nn.relu(y), [1], keepdims=True), fires=2)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [(1, 1), (2, 1)])
def test_maxima_over_images(monkeypatch: Any, padding: str, strides: Any) -> None:
    x, w = tf.placeholder(tf.float32, [2, 13, 12, 5]), tf.constant(values(3, 2, 5, 7))
    y = tf.nn.relu(tf.nn.conv2d(x, w, [1, *strides, 1], padding))
    check(monkeypatch, x, w, tf.reduce_max(y, [1, 2]), fires=2)


def test_pooling_over_all_words_of_rows_of_numbers(monkeypatch: Any) -> None:
    x, w = tf.placeholder(tf.float32, [3, 30, 11, 1]), tf.constant(values(4, 11, 1, 9))
    y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1] * 4, "VALID"), tf.constant(values(9))))
    check(monkeypatch, x, w, tf.nn.max_pool(y, [1, 27, 1, 1], [1] * 4, "VALID"), fires=2)


def test_equal_maxima_share_the_gradient(monkeypatch: Any) -> None:
    """As words that fill up short texts make them: few of them, and so many that all is computed."""
    for same in (3, 38):
        given = values(3, 40, 11)
        given[:, :same] = 2.0
        x, w, y = words()
        check(monkeypatch, x, w, tf.reduce_max(y, 1), 2, given)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_not_finite_makes_the_same(monkeypatch: Any, value: float) -> None:
    given = values(3, 40, 11)
    given[1, 20, 4] = value
    x, w, y = words()
    check(monkeypatch, x, w, tf.reduce_max(tf.nn.relu(y), 1), 2, given)


def test_a_gradient_of_something_else_is_computed_whole() -> None:
    x, w, y = words()
    few = tf.reduce_max(tf.reshape(y[:, :36], [3, 4, 9, 9]), 2)
    for z in (tf.reduce_sum(y * y, 1), few, tf.reduce_max(y, 1) + tf.reduce_mean(y, 1)):
        found = ops(text(tf.gradients(z, [x, w]), [x], "fold_constants", "apply_identities", NAME))
        assert "_SparseConv2DGradient" not in found and "Conv2DBackpropFilter" in found


@pytest.mark.parametrize("case", ["small", "direct", "half", "unknown", "first"])
def test_others_stay(monkeypatch: Any, case: str) -> None:
    if case == "small":
        monkeypatch.undo()
    x, w, y = words(dtype=tf.float16 if case == "half" else tf.float32)
    if case == "unknown":
        x = tf.placeholder(tf.float32, [None, 40, 11])
        y = tf.nn.conv1d(x, w, 1, "VALID")
    if case == "first":
        x, w = tf.placeholder(tf.float32, [3, 11, 1, 40]), tf.constant(values(1, 3, 11, 9))
        y = tf.nn.conv2d(x, w, [1] * 4, "VALID", data_format="NCHW")
    flow = tf.gradients(tf.reduce_max(y, 3 if case == "first" else 1), [x, w])
    with machine.using(generic()._replace(direct_products=100_000 if case == "direct" else 0)):
        found = ops(text(flow, [x], "fold_constants", "apply_identities", "convolve_directly", NAME))
    assert "_SparseConv2DGradient" not in found and "Conv2DBackpropInput" in found
