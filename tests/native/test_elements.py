"""Every element of the table against ATen's kernels: the same bits or, of functions that libraries compute in
different ways, a few units in the last place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import dtypes, flags
from flowstone.framework.operation import F
from flowstone.native.elements import ELEMENTS, suits

ROUNDED = {name for name, element in ELEMENTS.items() if element.calls} | {"Sqrt", "Rsqrt", "TanhGrad"}
OPERANDS = {"AddN": 3}
ATTRIBUTES = {"LeakyRelu": {"alpha": 0.3}, "LeakyReluGrad": {"alpha": 0.3}}
# What other passes compute or drop before clusters are made.
FOLDED = {"Cast", "Identity", "LogicalNot", "OnesLike", "PreventGradient", "StopGradient", "ZerosLike"}
CASES = [
    (name, dtype)
    for name, element in sorted(ELEMENTS.items())
    for dtype in sorted(element.types)
    if not (name == "Cast" and dtype == "bool")
]


def values(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    random = np.random.RandomState(seed)
    if dtype == "bool":
        return random.rand(*shape) > 0.5
    if dtype.startswith("float"):
        x = (random.randn(*shape) * 3).astype(dtype)
        special = [math.inf, -math.inf, math.nan, 0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 6.0, 41.0]
        x.flat[: len(special)] = random.permutation(special)
        return x
    return random.randint(0 if dtype == "uint8" else -9, 9, shape).astype(dtype)


def inputs(name: str, dtype: str, shape: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    count = ELEMENTS[name].operands or OPERANDS[name]
    made = [values(dtype, shape, i) for i in range(count)]
    if name in ("Select", "SelectV2"):
        made[0] = values("bool", shape, 7)
    return made


def op(name: str, fed: list[Any], attributes: dict[str, Any]) -> Any:
    if name == "AddN":
        return F.AddN(fed)
    if name == "Cast":
        return tf.cast(fed[0], attributes["DstT"])
    if name.startswith("BiasAdd"):
        return getattr(F, name)(fed[0], fed[1][0])
    return getattr(F, name)(*fed, **attributes)


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
    for target in ("float32", "float64", "int32", "bool") if name == "Cast" else ("",):
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
        if found.dtype.kind == "f" and name in ROUNDED:
            np.testing.assert_allclose(found, wanted, rtol=6 * np.finfo(found.dtype).eps, atol=1e-37)
        else:
            np.testing.assert_array_equal(found, wanted)
