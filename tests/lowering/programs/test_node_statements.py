"""Every operation by element in a loop: machine code gives what the kernels do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from element_operands import ATTRIBUTES, inputs, op
from flowstone.framework.declarations.operation import F
from flowstone.lowering.programs.node_statements import STATEMENTS
from flowstone.native.numerics.elements import ELEMENTS, suits
from three_ways import assert_equal_three_ways, programs, repeated


@pytest.mark.parametrize("name", sorted(ELEMENTS))
@pytest.mark.parametrize("dims", [(), (3,), (2, 37)], ids=str)
def test_operations_by_element(name: str, dims: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    if name.startswith("BiasAdd") and len(dims) < 2:
        pytest.skip("a bias is added to matrices")
    attributes: dict[str, Any] = dict(ATTRIBUTES.get(name, {}))
    if name == "Cast":
        attributes["DstT"] = tf.float64
    dtype = next(each for each in ("float32", "bool", "int32") if each in ELEMENTS[name].types)
    operands = inputs(name, dtype, (12, 37)) if dims else inputs(name, dtype, (11, 1))
    operands = [np.asarray(x.reshape(-1)[: int(np.prod(dims))].reshape(dims)) for x in operands]
    assert suits(name, [x.dtype.name for x in operands], attributes)
    fed = [tf.placeholder(x.dtype, x.shape) for x in operands]
    results = repeated(lambda xs: [op(name, list(xs), attributes)], fed)
    assert_equal_three_ways(monkeypatch, results, dict(zip(fed, operands)))


SHAPES = [
    ((), (3,)),
    ((4, 1), (1, 3)),
    ((2, 1, 3), (5, 1)),
    ((2, 3), (1,)),
    ((1, 1), (7,)),
    ((3, 4, 5), (4, 5)),
]


@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
def test_broadcasts(a: tuple[int, ...], b: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.RandomState(0)
    fed = [tf.placeholder(tf.float32, dims) for dims in (a, b)]
    results = repeated(lambda xs: [xs[0] - xs[1], tf.maximum(xs[1], xs[0]), xs[1] > xs[0]], fed)
    assert_equal_three_ways(monkeypatch, results, {x: random.rand(*x.shape.as_list()) for x in fed})


def test_rows_that_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    which = tf.placeholder(tf.bool, [4])
    x, y = tf.placeholder(tf.float32, [4, 3, 2]), tf.placeholder(tf.float32, [4, 3, 2])
    results = repeated(lambda _: [F.Select(which, x, y)], x)
    random = np.random.RandomState(0)
    feed = {which: [True, False, True, True], x: random.rand(4, 3, 2), y: random.rand(4, 3, 2)}
    assert_equal_three_ways(monkeypatch, results, feed)


def test_types_that_machine_code_does_not_have() -> None:
    x = tf.placeholder(tf.complex64, [3])
    found, _, log = programs(repeated(lambda y: [y * y], x), [x])
    assert not found and "complex64" in str(log)


def test_channels_that_come_first() -> None:
    x, b = tf.placeholder(tf.float32, [2, 3, 4, 5]), tf.placeholder(tf.float32, [3])
    found, _, log = programs(repeated(lambda y: [F.BiasAdd(y, b, data_format="NCHW")], x), [x, b])
    assert not found and "its channels do not come last" in str(log)


def test_the_table_has_every_operation_by_element() -> None:
    assert set(ELEMENTS) <= set(STATEMENTS)
