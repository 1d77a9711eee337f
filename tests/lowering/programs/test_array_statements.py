"""Products, reductions and integer quotients in a loop: machine code gives what the kernels do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.lowering.programs.array_statements import ARRAYS
from three_ways import assert_equal_three_ways, programs, repeated

DIMS = (4, 3, 5)


def accumulated(op: Any, x: Any) -> list[Any]:
    """From either end, with and without an element itself, and gradients."""
    ways = [(axis, exclusive, not exclusive) for axis in (0, 1, -1) for exclusive in (False, True)]
    found = [op(x, axis, exclusive, reverse) for axis, exclusive, reverse in ways]
    return [*found, op(tf.cast(x * 9.0, tf.int64), 1), *tf.gradients(op(x, 1), x, x)]


CASES: dict[str, Callable[[Any], list[Any]]] = {
    "All": lambda x: [tf.reduce_all(x > 0.0, 1), tf.reduce_all(x > -9.0)],
    "Any": lambda x: [tf.reduce_any(x > 1.0, [0, 1]), tf.reduce_any(x > 9.0)],
    "ArgMax": lambda x: [tf.argmax(x, axis) for axis in (0, 1, -1)],
    "ArgMin": lambda x: [tf.argmin(x, 1, output_type=tf.int32)],
    "BiasAddGrad": lambda x: [F.BiasAddGrad(x)],
    "Cumprod": lambda x: accumulated(tf.cumprod, x),
    "Cumsum": lambda x: accumulated(tf.cumsum, x),
    "EuclideanNorm": lambda x: [tf.math.reduce_euclidean_norm(x, axis) for axis in (1, [0, 2], None)],
    "L2Loss": lambda x: [tf.nn.l2_loss(x)],
    "MatMul": lambda x: [
        tf.matmul(x[0], x[1], transpose_a=True),
        tf.matmul(x[0], x[1], transpose_b=True),
        tf.matmul(x[0], tf.transpose(x[1])),
        tf.matmul(x[0], x[1, 0][:, None]),
        tf.matmul(x[0, 0][None], x[1], transpose_b=True),
        tf.matmul(x[0, 0][:, None], x[1, 0][None]),
    ],
    "Max": lambda x: [tf.reduce_max(x, 1), tf.reduce_max(x)],
    "Mean": lambda x: [tf.reduce_mean(x, [0, 1]), tf.reduce_mean(x, 1, keepdims=True)],
    "Min": lambda x: [tf.reduce_min(x, -1)],
    "OneHot": lambda x: [
        tf.one_hot(tf.argmax(x, 2), 7),
        tf.one_hot(tf.argmax(x, 1), 3, 2.0, -1.0),
        *[tf.one_hot(tf.argmax(x, 1), 3, axis=axis) for axis in (0, 1)],
    ],
    "Prod": lambda x: [tf.reduce_prod(x, 2), tf.reduce_prod(x)],
    "Sum": lambda x: [tf.reduce_sum(x, axis) for axis in (0, 1, 2, [0, 1], [1, 2], None)],
    "_AddedMatMul": lambda x: [tf.matmul(x[0], x[1], transpose_b=True) + x[2, :, :3]],
    "_FusedMatMul": lambda x: [tf.nn.relu(tf.nn.bias_add(tf.matmul(x[0, :, :3], x[1]), x[2, 0]))],
}
QUOTIENTS = {
    "FloorDiv": lambda a, b: F.FloorDiv(a, b),
    "FloorMod": lambda a, b: F.FloorMod(a, b),
    "Mod": lambda a, b: F.Mod(a, b),
    "TruncateDiv": lambda a, b: F.TruncateDiv(a, b),
    "TruncateMod": lambda a, b: F.TruncateMod(a, b),
}
SUMS_OF_GRADIENTS = {"_ProductSum", "_ProductSumAdd", "_ProductSumTotal"}


def test_every_operation_has_a_case() -> None:
    assert {*CASES, *QUOTIENTS, *SUMS_OF_GRADIENTS} == set(ARRAYS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda x: x.__name__)
@pytest.mark.parametrize("name", CASES)
def test_arrays(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, DIMS)
    results = repeated(CASES[name], tf.cast(x, dtype) if name in ("MatMul", "Sum") else x)
    assert_equal_three_ways(monkeypatch, results, {x: np.random.RandomState(0).randn(*DIMS)})


@pytest.mark.parametrize("name", QUOTIENTS)
def test_quotients(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = tf.placeholder(tf.int32, []), tf.placeholder(tf.int32, [])
    for x, y in ((7, 2), (-7, 2), (7, -2), (-7, -2), (0, 5)):
        results = repeated(lambda _: [QUOTIENTS[name](a, b)], a)
        assert_equal_three_ways(monkeypatch, results, {a: x, b: y})


@pytest.mark.parametrize("name", [name for name in QUOTIENTS if name.endswith("Mod")])
def test_remainders_of_floats(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [7.5, -7.5, 0.0, -0.0, 0.3, -1e30, np.inf, -np.inf, np.nan]
    x, y = (each.ravel() for each in np.meshgrid(numbers, [2.0, -2.0, 0.7, -0.0, np.inf, -np.inf, 1e-3]))
    for dtype in (np.float32, np.float64):
        a, b = tf.placeholder(dtype, x.shape), tf.placeholder(dtype, x.shape)
        results = repeated(lambda _, a=a, b=b: [QUOTIENTS[name](a, b), QUOTIENTS[name](a, b[4])], a)
        assert_equal_three_ways(monkeypatch, results, {a: x, b: y}, tolerance=0)


@pytest.mark.parametrize("transposed", [False, True])
def test_gradients_of_a_weight_that_a_loop_uses(transposed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = tf.placeholder(tf.float32, [3, 4]), tf.placeholder(tf.float32, [4, 4])
    y = tf.while_loop(
        lambda i, _: i < 3, lambda i, a: (i + 1, tf.tanh(tf.matmul(a, w, transpose_b=transposed))), [0, x]
    )[1]
    random = np.random.RandomState(0)
    feed = {x: random.rand(3, 4), w: random.rand(4, 4)}
    with tf.Session() as session:
        text = session.explain(tf.gradients(y, w), feed)
    assert "_ProductSum" not in text or "_Program(" in text
    assert_equal_three_ways(monkeypatch, [y, *tf.gradients(y, [x, w])], feed)


def test_dimensions_that_lie_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [3, 4, 5, 2])
    results = repeated(
        lambda y: [
            tf.reduce_sum(y, [0, 2]),
            tf.reduce_max(y, [3, 0], keepdims=True),
            tf.nn.moments(y[:, :1], [0, 2])[1],
            tf.reduce_mean(y, [1, 3]),
        ],
        x,
    )
    assert_equal_three_ways(monkeypatch, results, {x: np.random.RandomState(0).rand(3, 4, 5, 2)})


def test_sums_of_small_integers() -> None:
    x = tf.placeholder(tf.uint8, DIMS)
    found, _, log = programs(repeated(lambda y: [F.Sum(y, [0])], x), [x])
    assert not found and "machine code has no Sum of uint8" in str(log)


@pytest.mark.parametrize("axis", [0, -1, 5])
def test_the_place_of_an_extreme_of_a_number_is_refused(axis: int) -> None:
    """What the kernel says, not what the search for programs says."""
    x = tf.placeholder(tf.float32)
    place = tf.argmax(x * 2.0, axis) + 1
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="must be in"):
        session.run(place, {x: 1.0})
