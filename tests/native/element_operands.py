"""Operands for every operation by element, with special values among them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.native.numerics.elements import ELEMENTS

OPERANDS = {"AddN": 3}
ATTRIBUTES = {"LeakyRelu": {"alpha": 0.3}, "LeakyReluGrad": {"alpha": 0.3}}


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
