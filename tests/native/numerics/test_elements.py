"""Every element of the table against ATen's kernels: the same bits or, of functions that libraries compute in
different ways, a few units in the last place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from element_operands import ATTRIBUTES, inputs, op
from flowstone.framework import flags
from flowstone.framework.types import dtypes
from flowstone.native.codegen import host
from flowstone.native.numerics.elements import ELEMENTS, suits
from flowstone.native.numerics.special_functions import FUNCTIONS

ROUNDED = {name for name, element in ELEMENTS.items() if element.calls} | {"Sqrt", "Rsqrt", "TanhGrad"}
# What other passes compute or drop before clusters are made.
FOLDED = {"Cast", "Identity", "LogicalNot", "OnesLike", "PreventGradient", "StopGradient", "ZerosLike"}
TARGETS = ("float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool")
CASES = [
    (name, dtype)
    for name, element in sorted(ELEMENTS.items())
    for dtype in sorted(element.types)
    if not (name == "Cast" and dtype == "bool")
]


def run(name: str, operands: list[Any], attributes: dict[str, Any]) -> tuple[Any, str]:
    """The op's value, beside another element of the same shape that makes a cluster of it; and the plan."""
    with tf.Graph().as_default(), tf.Session() as session:
        fed = [tf.placeholder(x.dtype, x.shape) for x in operands]
        y = op(name, fed, attributes)
        more = [tf.equal(y, y)] if y.dtype is not tf.bool else [tf.logical_not(y)]
        feed = dict(zip(fed, operands))
        return session.run([y, *more], feed)[0], session.explain([y, *more], feed)


@pytest.mark.parametrize("exact", [False, True], ids=["fast", "exact"])
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_element(name: str, dtype: str, exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE_EXACT", exact)
    attributes: dict[str, Any] = dict(ATTRIBUTES.get(name, {}))
    for target in TARGETS if name == "Cast" else ("",):
        if target:
            attributes["DstT"] = dtypes.as_dtype(target)
        operands = inputs(name, dtype, (5, 23))
        types = [dtype] * len(operands)
        if name.startswith("Select"):
            types[0] = "bool"
        if not suits(name, types, attributes):
            continue
        found, plan = run(name, operands, attributes)
        assert "_Cluster" in plan or name in FOLDED, plan
        with monkeypatch.context() as plain:
            plain.setattr(flags, "NATIVE", 0)
            wanted, _ = run(name, operands, attributes)
        assert found.dtype == wanted.dtype
        if name in FUNCTIONS:  # to units in the last place: test_special_functions.py
            np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-6)
        elif found.dtype.kind == "f" and name in ROUNDED:
            np.testing.assert_allclose(found, wanted, rtol=6 * np.finfo(found.dtype).eps, atol=1e-37)
        else:
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["Xdivy", "Xlog1py", "Xlogy"])
def test_zero_keeps_its_sign_whatever_comes_second(name: str, dtype: str) -> None:
    x, y = np.meshgrid(np.array([0.0, -0.0], dtype), np.array([0, 2, -2, np.inf, np.nan], dtype))
    found, plan = run(name, [x, y], {})
    assert "_Cluster" in plan
    np.testing.assert_array_equal(found, x)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(x))


@pytest.mark.parametrize("count", [1, 15, 33, 300_007])
def test_float16_is_rounded_after_each_operation(count: int) -> None:
    """In rests of vectors, by threads, and of numbers that become infinite or denormal."""
    powers = np.exp2(np.random.RandomState(0).uniform(-26, 15.9, [2, count]))
    x, y = (powers * np.where(powers.view(np.int64) % 2, 1, -1)).astype(np.float16)
    with tf.Graph().as_default(), tf.Session() as session:
        fed = [tf.placeholder(tf.float16, [count]) for _ in range(2)]
        feed = dict(zip(fed, [x, y]))
        z = tf.where(fed[0] > fed[1], fed[0] * fed[1] + fed[0], fed[0] / fed[1] - 3)
        found, plan = session.run(z, feed), session.explain(z, feed)
    assert "_Cluster" in plan
    with np.errstate(all="ignore"):
        expected = np.where(x > y, x * y + x, x / y - np.float16(3))
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, expected)


def test_float16_needs_a_processor_that_converts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "has_halves", lambda: False)
    assert not suits("AddV2", ["float16"] * 2, {})
    assert not suits("Cast", ["float32"], {"DstT": dtypes.float16})
    assert suits("Cast", ["float32"], {"DstT": dtypes.float64})


@pytest.mark.skipif(not host.is_x86(), reason="processors differ")
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "int32", "int64"])
def test_numbers_out_of_range_become_those_that_aten_has(source: str, target: str) -> None:
    with np.errstate(all="ignore"):
        values = [2.0**k * f for k in (7, 8, 15, 16, 31, 32, 63, 64) for f in (1, -1, 0.999999, -1.25)]
        x = np.array([*values, np.nan, np.inf, -np.inf, -0.5], source)
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(source, x.shape)
        y = tf.cast(fed, target)
        found, plan = (
            session.run([y, tf.equal(y, 0)], {fed: x})[0],
            session.explain([y, tf.equal(y, 0)], {fed: x}),
        )
    assert "_Cluster" in plan
    wide = torch.tensor(x).to(torch.int64) if target == "uint8" else torch.tensor(x)
    np.testing.assert_array_equal(found, wide.to(getattr(torch, target)).numpy())
