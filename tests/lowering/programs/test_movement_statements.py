"""Operations that move elements, in a loop: machine code gives what the kernels do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.lowering.programs.movement_statements import MOVEMENTS
from flowstone.lowering.programs.row_statements import ROWS
from flowstone.lowering.programs.slice_statements import SLICES
from three_ways import assert_equal_three_ways, repeated

DIMS = (4, 3, 2)


def ranges(x: Any) -> list[Any]:
    """Of as many integers as is known, from where a number says."""
    begins = [tf.cast(x[0, 0, 0] * n, dtype) for n, dtype in ((3.0, tf.int32), (-9.0, tf.int64))]
    found = [tf.range(begin, begin + 6, 2) for begin in begins]
    for each in found:
        each.set_shape([3])
    return found


CASES: dict[str, Callable[[Any], list[Any]]] = {
    "BroadcastTo": lambda x: [F.BroadcastTo(x, [5, 4, 3, 2]), F.BroadcastTo(x[:, :1], [4, 6, 2])],
    "Concat": lambda x: [F.Concat(1, [x, x * 2.0, x[:, :1]])],
    "ConcatV2": lambda x: [tf.concat([x, -x], axis) for axis in (0, 1, -1)],
    "ExpandDims": lambda x: [tf.expand_dims(x, axis) + 1.0 for axis in (0, 2, -1)],
    "Fill": lambda x: [tf.fill([2, 5], x[1, 1, 1])],
    "Identity": lambda x: [tf.identity(x) + 1.0],
    "IdentityN": lambda x: [y + 1.0 for y in tf.identity_n([x, x[0]])],
    "Pack": lambda x: [tf.stack([x, x + 1.0, -x], axis) for axis in (0, 1, 3)],
    "PreventGradient": lambda x: [F.PreventGradient(x) + 1.0],
    "Range": ranges,
    "Rank": lambda x: [F.Rank(x)],
    "Reshape": lambda x: [tf.reshape(x, [6, 4]) + 1.0, tf.reshape(x, [-1]) * 2.0],
    "ReverseSequence": lambda x: [
        tf.reverse_sequence(x, [3, 0, 1, 2], seq_axis=1, batch_axis=0),
        tf.reverse_sequence(x, tf.cast(x[0, :, 0] > 0.0, tf.int64) + 2, seq_axis=0, batch_axis=1),
        tf.reverse_sequence(x, [1, 2, 0], seq_axis=2, batch_axis=1),
        *tf.gradients(tf.reverse_sequence(x, [1, 2, 3, 0], seq_axis=1, batch_axis=0), x, x),
    ],
    "ReverseV2": lambda x: [tf.reverse(x, [0]), tf.reverse(x, [1, 2])],
    "Roll": lambda x: [tf.roll(x, 1, 0), tf.roll(x, [-2, 0, 3], [1, 0, -1]), tf.roll(x[:, 0, 0], 7, 0)],
    "Shape": lambda x: [F.Shape(x)],
    "ShapeN": lambda x: [F.ShapeN([x, x[0]])[0], *F.ShapeN([x[0, 0], x], out_type=tf.int64)],
    "Size": lambda x: [F.Size(x)],
    "Split": lambda x: [*tf.split(x, 2), *tf.split(x, 3, axis=1)],
    "SplitV": lambda x: [*tf.split(x, [1, 3]), *tf.split(x, [2, 1], axis=1)],
    "Squeeze": lambda x: [tf.squeeze(x[:, :1], 1) + 1.0],
    "StopGradient": lambda x: [tf.stop_gradient(x) + 1.0],
    "Tile": lambda x: [tf.tile(x, [2, 1, 1]), tf.tile(x, [1, 3, 2])],
    "Transpose": lambda x: [tf.transpose(x), tf.transpose(x, [0, 2, 1])],
    "Unpack": lambda x: [*tf.unstack(x), *tf.unstack(x, axis=1)],
}


def test_every_operation_has_a_case() -> None:
    assert {*CASES, *ROWS, *SLICES} == set(MOVEMENTS)


@pytest.mark.parametrize("name", CASES)
def test_movements(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, DIMS)
    results = repeated(CASES[name], x)
    assert_equal_three_ways(monkeypatch, results, {x: np.random.RandomState(0).rand(*DIMS)})


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint8, np.bool_], ids=lambda x: x.__name__)
def test_types(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(dtype, DIMS)
    results = repeated(lambda y: [tf.transpose(y), y[1:, ::2], tf.concat([y, y], 1), tf.stack([y, y], 2)], x)
    assert_equal_three_ways(
        monkeypatch, results, {x: np.random.RandomState(0).randint(0, 2, DIMS).astype(dtype)}
    )


def test_rows_by_an_index_that_a_loop_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, DIMS)
    first = [0, tf.zeros(DIMS[1:]), tf.zeros(DIMS[1:])]
    results = tf.while_loop(
        lambda i, *_: i < 4, lambda i, a, b: (i + 1, a * 2.0 + x[i], b + tf.gather(x, i) * x[-i - 1]), first
    )
    assert_equal_three_ways(monkeypatch, list(results), {x: np.random.RandomState(0).rand(*DIMS)})


@pytest.mark.parametrize("shift", [0, -4])
def test_gradients_of_rows_by_an_index_that_a_loop_counts(
    shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = tf.placeholder(tf.float32, [4, 3])

    def body(i: Any, a: Any, total: Any) -> Any:
        return i + 1, tf.tanh(a) * x[i + shift] + 1.0, total + tf.sin(x[i + shift][1])

    _, y, total = tf.while_loop(lambda i, *_: i < 3, body, [0, x[0], 0.0])
    gradients = tf.gradients([y, total], x)
    assert_equal_three_ways(monkeypatch, gradients, {x: np.random.RandomState(0).randn(4, 3).astype("f")})


@pytest.mark.parametrize("index", [lambda x, i: x[:, i], lambda x, i: x[:, :, i], lambda x, i: x[:, i, :]])
def test_columns_by_an_index_that_a_loop_counts(
    index: Callable[[Any, Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = tf.placeholder(tf.float32, [2, 5, 6])

    def body(i: Any, a: Any) -> Any:
        return i - 1, tf.tanh(a) * index(x, i) + tf.reduce_max(index(x, i + 1))

    _, y = tf.while_loop(lambda i, _: i > -4, body, [3, index(x, 0)])
    feed = {x: np.random.RandomState(0).randn(2, 5, 6).astype("f")}
    assert_equal_three_ways(monkeypatch, [y, *tf.gradients(y, x)], feed)


@pytest.mark.parametrize("row", ["x[i]", "gather"])
def test_a_row_outside_of_its_array(row: str) -> None:
    x, n = tf.placeholder(tf.float32, DIMS), tf.placeholder(tf.int32, [])
    last = tf.while_loop(
        lambda i, _: i < n,
        lambda i, a: (i + 1, a + (x[i] if row == "x[i]" else tf.gather(x, i))),
        [0, tf.zeros(DIMS[1:])],
    )[1]
    value = np.ones(DIMS, np.float32)
    with tf.Session() as session:
        assert "_Program(" in session.explain(last, {x: value, n: 4})
        assert session.run(last, {x: value, n: 4}).max() == 4.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="4"):
            session.run(last, {x: value, n: 5})
        assert session.run(last, {x: value, n: 2}).max() == 2.0


@pytest.mark.parametrize(
    "make",
    [
        lambda x: tf.raw_ops.Transpose(x=x, perm=[0, 0]),
        lambda x: tf.raw_ops.Transpose(x=x, perm=[0]),
        lambda x: tf.raw_ops.Slice(input=x, begin=[-1, 0], size=[1, 1]),
        lambda x: tf.raw_ops.Slice(input=x, begin=[-2, 0], size=[1, 1]),
        lambda x: tf.raw_ops.Slice(input=x, begin=[2, 0], size=[2, 1]),
    ],
)
def test_what_is_wrong_fails_with_the_error_of_its_kernel(make: Any) -> None:
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [3, 4])
        try:
            y = tf.exp(make(x))
        except ValueError:
            return  # refused when it is built, as TensorFlow refuses it
    with tf.Session(graph=graph) as session, pytest.raises(tf.errors.InvalidArgumentError, match=r"\[\[node"):
        session.run(y, {x: np.ones([3, 4], "f")})
