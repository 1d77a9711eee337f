"""Max pooling by machine code: graph text, the same bits, and what stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags
from flowstone.lowering.convolutions import byte_pooling
from flowstone.native.codegen import host

RNG = np.random.default_rng(31)
NAME = "pool_in_bytes"

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason())


@pytest.fixture(autouse=True)
def everywhere(monkeypatch) -> None:
    """Compiles at plan time, also for small images."""
    monkeypatch.setattr(flags, "NATIVE", 2)
    monkeypatch.setattr(byte_pooling, "WORTHWHILE", 1)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def pooled(size: int = 3, stride: int = 2, padding: str = "SAME", **images: Any) -> tuple[Any, Any]:
    x = tf.placeholder(images.get("kind", tf.float32), images.get("dims", [2, 9, 8, 6]))
    layout = images.get("layout", "NHWC")
    windows = [1, size, size, 1] if layout == "NHWC" else [1, 1, size, size]
    strides = [1, stride, stride, 1] if layout == "NHWC" else [1, 1, stride, stride]
    return x, tf.nn.max_pool(x, windows, strides, padding, data_format=layout)


def test_places_are_kept_in_bytes() -> None:
    x, y = pooled()
    fetches = [y, *tf.gradients(y * y, x)]
    for names, kept in ((("keep_places", NAME), "uint8"), (("keep_places",), "int64")):
        lines = text(fetches, [x], *names)
        (pool,) = [line for line in lines if "_MaxPoolWithPlaces(" in line]
        assert f"{kept}[2,5,4,6]" in pool and ops(lines).count("_MaxPoolGradAtPlaces") == 1


def test_pooling_without_a_gradient_becomes_machine_code_too() -> None:
    x, y = pooled()
    assert ops(text([y], [x], NAME)).count("_MaxPoolWithPlaces") == 1
    assert ops(text([y], [x])).count("MaxPool") == 1


@pytest.mark.parametrize("is_constant", [True, False])
def test_windows_may_be_constant_inputs(monkeypatch, is_constant) -> None:
    x = tf.placeholder(tf.float32, [2, 9, 8, 6])
    feeds, windows = {x: values(2, 9, 8, 6)}, [[1, 3, 3, 1], [1, 2, 2, 1]]
    if not is_constant:
        sizes = [tf.placeholder(tf.int32, [4]) for _ in windows]
        feeds, windows = feeds | dict(zip(sizes, windows)), sizes
    y = tf.raw_ops.MaxPoolV2(input=x, ksize=windows[0], strides=windows[1], padding="SAME")
    agree(monkeypatch, [y], feeds, NAME, fires=int(is_constant), tolerance=0)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("size", "stride"), [(2, 2), (3, 2), (3, 1), (2, 3), (5, 5)])
def test_values_and_gradients_have_the_same_bits(monkeypatch, padding, size, stride) -> None:
    x, y = pooled(size, stride, padding, dims=[3, 13, 12, 21])
    fetches = [y, *tf.gradients(y * tf.constant(values(*y.shape.as_list())), x)]
    feed = {x: RNG.integers(-3, 4, (3, 13, 12, 21)).astype("f")}
    fires = 2 if "_MaxPoolWithPlaces" in ops(text(fetches, [x], "keep_places")) else 0
    agree(monkeypatch, fetches, feed, NAME, fires=fires, tolerance=0)


def test_pooling_of_pooling_and_two_gradients(monkeypatch) -> None:
    x, y = pooled(dims=[2, 16, 16, 5])
    z = tf.nn.max_pool(tf.nn.relu(y), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    fetches = [z, *tf.gradients(z * z, x), *tf.gradients(tf.sin(y), x)]
    agree(monkeypatch, fetches, {x: values(2, 16, 16, 5)}, NAME, fires=5, tolerance=1e-6)


def test_numbers_that_are_not_finite() -> None:
    x, y = pooled(2, 2, dims=[1, 6, 6, 3])
    gradients = tf.gradients(y, x)
    fed = values(1, 6, 6, 3)
    fed[0, 0, 1], fed[0, 2, 2], fed[0, 4:, 4:] = np.nan, np.inf, -np.inf
    with tf.Session() as s:
        assert "uint8" in s.explain([y, gradients], {x: fed})
        found, (dx,) = s.run([y, gradients], {x: fed})
    windows = fed.reshape(1, 3, 2, 3, 2, 3).transpose(0, 1, 3, 5, 2, 4).reshape(1, 3, 3, 3, 4)
    np.testing.assert_array_equal(found, np.maximum(np.nanmax(windows, -1), np.finfo("f").min))
    assert dx.sum() == found.size and dx[0, 0, 1].tolist() == [0, 0, 0] and dx[0, 4, 4].tolist() == [1, 1, 1]


def test_an_activation_after_the_pooling_shows_that_there_were_no_numbers() -> None:
    x = tf.placeholder(tf.float32, [1, 4, 4, 3])
    y = tf.nn.max_pool(tf.nn.relu(x), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    fed = values(1, 4, 4, 3)
    fed[0, :2, :2], fed[0, 2:, 2:], fed[0, 0, 2] = np.nan, -np.inf, np.nan
    with tf.Session() as s:
        for fetches in (y, [y, tf.gradients(y, x)]):
            assert "pool_first" in s.explain(fetches, {x: fed})
            found = s.run([y, *([] if fetches is y else fetches[1])], {x: fed})[0]
            assert np.isnan(found[0, 0, 0]).all() and (found[0, 1, 1] == 0).all()
            assert np.isfinite(found[0, 0, 1]).all()


@pytest.mark.parametrize("reason", ["NCHW", "double", "batch", "large", "small", "off"])
def test_other_pooling_stays_as_it_is(monkeypatch, reason) -> None:
    images = {
        "NCHW": {"layout": "NCHW"},
        "double": {"kind": tf.float64},
        "batch": {"dims": [None, 9, 8, 6]},
        "large": {"dims": [1, 40, 40, 2]},
    }.get(reason, {})
    if reason == "small":
        monkeypatch.setattr(byte_pooling, "WORTHWHILE", 2 * 9 * 8 * 6 + 1)
    if reason == "off":
        monkeypatch.setattr(flags, "NATIVE", 0)
    x, y = pooled(17 if reason == "large" else 3, **images)
    assert "_MaxPoolWithPlaces" not in ops(text([y], [x], NAME))
