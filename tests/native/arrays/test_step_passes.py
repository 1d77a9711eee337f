"""Quantisation by machine code, beside ATen's kernels: the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.arrays import step_passes
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
RAW = tf.raw_ops
SIZES = [(), (0,), (3, 7), (5, 60_000)]  # the last by a team
RANGES = [(-6.0, 6.0), (0.0, 3.0), (-1.0, 0.0), (0.5, 2.0), (-3.3, 100.0)]
TYPES = ["quint8", "qint8", "quint16", "qint16"]
MODES = ["MIN_COMBINED", "MIN_FIRST", "SCALED"]


def with_and_without(monkeypatch: pytest.MonkeyPatch, build: Callable[..., Any], *arrays: Any) -> list[Any]:
    """What a session gives for these feeds, without and with machine code."""
    found = []
    for native in (0, 1):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = [tf.placeholder(kind, each.shape) for each, kind in arrays]
            found.append(session.run(build(*fed), dict(zip(fed, [each for each, _ in arrays]))))
    return found


def floats(shape: tuple[int, ...]) -> Any:
    """Numbers in and beyond the ranges, with infinities and NaN, and halves between steps."""
    x = np.random.default_rng(len(shape)).normal(size=shape).astype("float32") * 4
    if x.size > 10:
        x.flat[3], x.flat[5], x.flat[6:9] = np.inf, -np.inf, (0.5, -0.0, 2.0**-30)
    return x


@pytest.mark.parametrize("ends", [*RANGES, (0.0, 0.0)])
@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("narrow", [False, True])
def test_floats_rounded_to_steps_and_their_gradients(
    monkeypatch: pytest.MonkeyPatch, shape: Any, ends: Any, narrow: bool
) -> None:
    x, steps = floats(shape), {"num_bits": 5, "narrow_range": narrow}
    if x.size > 10:
        x.flat[4] = np.nan
    dy = np.random.default_rng(9).normal(size=shape).astype("float32")

    def build(x: Any, dy: Any) -> Any:
        low, high = (tf.constant(end) for end in ends)
        back = RAW.FakeQuantWithMinMaxVarsGradient(gradients=dy, inputs=x, min=low, max=high, **steps)
        found = [RAW.FakeQuantWithMinMaxVars(inputs=x, min=low, max=high, **steps), *back]
        if ends[0] < ends[1]:
            fixed = {"min": ends[0], "max": ends[1], **steps}
            found.append(RAW.FakeQuantWithMinMaxArgs(inputs=x, **fixed))
            found.append(RAW.FakeQuantWithMinMaxArgsGradient(gradients=dy, inputs=x, **fixed))
        return found

    plain, fast = with_and_without(monkeypatch, build, (x, tf.float32), (dy, tf.float32))
    for i, (one, other) in enumerate(zip(plain, fast)):
        if i in (2, 3):
            np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-3)
        else:
            np.testing.assert_array_equal(other, one)


def test_gradients_that_are_not_finite_reach_all_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    x, dy = np.array([0, 9, -9, 0], "float32"), np.array([np.nan, np.inf, 2, 1], "float32")

    def build(x: Any, dy: Any) -> Any:
        return RAW.FakeQuantWithMinMaxVarsGradient(gradients=dy, inputs=x, min=-6.0, max=6.0)

    for found in with_and_without(monkeypatch, build, (x, tf.float32), (dy, tf.float32)):
        np.testing.assert_array_equal(found[0], [np.nan, np.nan, 0, 1])
        np.testing.assert_array_equal(found[1:], [np.nan, np.nan])  # products with 0, as TensorFlow's


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("ends", RANGES)
def test_floats_to_integers(monkeypatch: pytest.MonkeyPatch, ends: Any, dtype: str, mode: str) -> None:
    for shape in SIZES:

        def build(x: Any) -> Any:
            return tf.quantize_v2(x, ends[0], ends[1], tf.as_dtype(dtype), mode)

        plain, fast = with_and_without(monkeypatch, build, (floats(shape), tf.float32))
        for one, other in zip(plain, fast):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [*TYPES, "qint32"])
@pytest.mark.parametrize("ends", [*RANGES, (1.0, 1.0)])
def test_integers_to_floats(monkeypatch: pytest.MonkeyPatch, ends: Any, dtype: str, mode: str) -> None:
    kind = tf.as_dtype(dtype)
    limits = np.iinfo({"quint8": "u1", "qint8": "i1", "quint16": "u2", "qint16": "i2", "qint32": "i4"}[dtype])
    for shape in SIZES:
        chance = np.random.default_rng(0)
        x = chance.integers(limits.min, limits.max, shape, limits.dtype, endpoint=True)
        x = np.asarray(x)

        def build(x: Any) -> Any:
            return tf.dequantize(tf.bitcast(x, kind), ends[0], ends[1], mode)

        given = (x, tf.as_dtype(limits.dtype))
        plain, fast = with_and_without(monkeypatch, build, given)
        assert plain.dtype == fast.dtype == np.float32
        np.testing.assert_array_equal(fast, plain)


@pytest.mark.parametrize("ends", [*RANGES, (0.0, 0.0)])
@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("way", ["HALF_TO_EVEN", "HALF_UP"])
@pytest.mark.parametrize("given", [False, True])
def test_floats_quantised_and_back(
    monkeypatch: pytest.MonkeyPatch, shape: Any, ends: Any, way: str, given: bool
) -> None:
    x, dy = floats(shape), np.random.default_rng(9).normal(size=shape).astype("float32")
    if not given:
        x = np.nan_to_num(x, posinf=3, neginf=-3)

    def build(x: Any, dy: Any) -> Any:
        steps = {"signed_input": ends[0] < 0, "range_given": given, "round_mode": way}
        low, high = (tf.constant(end) for end in ends)
        made = RAW.QuantizeAndDequantizeV2(input=x, input_min=low, input_max=high, num_bits=5, **steps)
        third = RAW.QuantizeAndDequantizeV4Grad(gradients=dy, input=x, input_min=low, input_max=high)
        return [made, third[0]]

    plain, fast = with_and_without(monkeypatch, build, (x, tf.float32), (dy, tf.float32))
    for one, other in zip(plain, fast):
        np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize("new", [*TYPES, "qint32"])
@pytest.mark.parametrize("ends", [*RANGES, (-1e-3, 5000.0)])
@pytest.mark.parametrize("shape", SIZES)
def test_integers_of_another_range(monkeypatch: pytest.MonkeyPatch, shape: Any, ends: Any, new: str) -> None:
    x = np.asarray(np.random.default_rng(3).integers(-(2**31), 2**31 - 1, shape, "int32", endpoint=True))

    def build(x: Any) -> Any:
        given = {"input": tf.bitcast(x, tf.qint32), "input_min": ends[0], "input_max": ends[1]}
        kind = tf.as_dtype(new)
        low, high = min(ends[0], 0.0) / 3, max(ends[1], 0.0) / 2
        return [
            *RAW.Requantize(**given, requested_output_min=low, requested_output_max=high, out_type=kind),
            *RAW.QuantizeDownAndShrinkRange(**given, out_type=kind),
            *RAW.RequantizationRange(**given),
        ]

    plain, fast = with_and_without(monkeypatch, build, (x, tf.int32))
    for one, other in zip(plain, fast):
        np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize("shape", [(0, 3), (5, 1), (4, 3), (33, 70), (3, 3, 100, 300)])
@pytest.mark.parametrize("empty", [False, True])
def test_channels_rounded_to_steps(monkeypatch: pytest.MonkeyPatch, shape: Any, empty: bool) -> None:
    x = floats(shape)
    if x.size > 10:
        x.flat[4] = np.nan
    random = np.random.default_rng(shape[-1])
    low, high = (random.uniform(*ends, shape[-1]).astype("float32") for ends in ((-5, -1), (0.5, 4)))
    if empty:
        low[0] = high[0] = 0

    def build(x: Any) -> Any:
        return RAW.FakeQuantWithMinMaxVarsPerChannel(inputs=x, min=low, max=high, num_bits=6)

    plain, fast = with_and_without(monkeypatch, build, (x, tf.float32))
    np.testing.assert_array_equal(fast, plain)


def test_other_types_have_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert step_passes.step_passes(torch.float64) is None
    assert step_passes.step_passes(torch.uint8) is not None
    assert step_passes.requantizer(torch.int32, torch.float32) is None
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert step_passes.step_passes(torch.uint8) is None


@pytest.mark.parametrize("shape", [(4,), (0, 3), (6, 5), (3, 1), (2, 3, 2, 4), (7, 1100), (401, 7, 33)])
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("is_empty", [False, True])
def test_channels_of_their_own_ranges(
    monkeypatch: pytest.MonkeyPatch, shape: Any, narrow: bool, is_empty: bool
) -> None:
    chance = np.random.default_rng(sum(shape))
    x, channels = floats(shape), shape[-1]
    if x.size > 10:
        x.flat[4] = np.nan
    dy = chance.normal(size=shape).astype("float32")
    low = chance.uniform(-6, 1, channels).astype("float32")
    high = low + chance.uniform(0.1, 8, channels).astype("float32")
    if is_empty:
        low[-1] = high[-1] = 0

    def build(x: Any, dy: Any) -> Any:
        given = {"inputs": x, "min": tf.constant(low), "max": tf.constant(high), "narrow_range": narrow}
        back = RAW.FakeQuantWithMinMaxVarsPerChannelGradient(gradients=dy, **given)
        return [RAW.FakeQuantWithMinMaxVarsPerChannel(**given), *back]

    plain, fast = with_and_without(monkeypatch, build, (x, tf.float32), (dy, tf.float32))
    for one, other in zip(plain[:2], fast[:2]):
        np.testing.assert_array_equal(other, one)
    for one, other in zip(plain[2:], fast[2:]):
        assert other.dtype == np.float32
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-3)
