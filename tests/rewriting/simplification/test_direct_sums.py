"""Products with ones as sums and repetitions, sums of sums: graph text, equal results without the pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.lowering.passes import EVERY

RNG = np.random.default_rng(9)
EVERYTHING = [each.name for each in EVERY]
NAME = "sum_directly"


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x: tf.matmul(x, tf.ones([5, 1])), "Sum(%0, %1) keep_dims=True : float32[4,1]"),
        (
            lambda x: tf.matmul(x, tf.ones([1, 5]), transpose_b=True),
            "Sum(%0, %1) keep_dims=True : float32[4,1]",
        ),
        (lambda x: tf.matmul(tf.ones([1, 4]), x), "Sum(%0, %1) keep_dims=True : float32[1,5]"),
        (lambda x: tf.matmul(x[:, :1], tf.ones([1, 6])), "BroadcastTo(%4, %5) : float32[4,6]"),
        (lambda x: tf.matmul(tf.ones([3, 1]), x[:1]), "BroadcastTo(%4, %5) : float32[3,5]"),
    ],
)
def test_products_with_ones(monkeypatch, make, expected) -> None:
    x = tf.placeholder(tf.float32, [4, 5], name="x")
    y = make(x)
    line = text([y], [x], "fold_constants", NAME, "remove_unneeded")[-2]
    assert line.partition(" = ")[2].partition("  #")[0] == expected
    assert NAME in agree(
        monkeypatch, [y, tf.gradients(y, x)[0]], {x: values(4, 5)}, NAME, fires=1, tolerance=1e-6
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda x: tf.matmul(x, tf.ones([4, 1]), transpose_a=True),
        lambda x: tf.matmul(x, tf.ones([5, 2])),
        lambda x: tf.matmul(x, tf.constant([[1.0], [1], [1], [1], [2]])),
        lambda x: tf.matmul(tf.cast(x, tf.int32), tf.ones([5, 1], tf.int32)),
        lambda x: tf.matmul(x, tf.ones([tf.shape(x)[1], 1])),
    ],
)
def test_other_products_stay(make) -> None:
    x = tf.placeholder(tf.float32, [4, 5])
    assert "MatMul" in ops(text([make(x)], [x], NAME))


@pytest.mark.parametrize("total", [tf.reduce_sum, tf.reduce_mean])
@pytest.mark.parametrize("keep", [True, False])
def test_the_total_of_a_sum_is_one_sum(monkeypatch, total, keep) -> None:
    x = tf.placeholder(tf.float32, [4, 5, 2])
    y = total(tf.reshape(tf.reduce_sum(x, 1, keep), [8]))
    lines = ops(text([y], [x], *EVERYTHING))
    assert lines.count("Sum") == 1 and not {"Mean", "Reshape"} & set(lines)
    fetches = [y, tf.gradients(y, x)[0]]
    assert "one sum for two" in agree(
        monkeypatch, fetches, {x: values(4, 5, 2)}, NAME, fires=1, tolerance=1e-6
    )


def test_a_sum_that_others_take_stays() -> None:
    x = tf.placeholder(tf.float32, [4, 5])
    rows = tf.reduce_sum(x, 1)
    assert ops(text([tf.reduce_mean(rows), rows], [x], *EVERYTHING)).count("Mean") == 1
    assert ops(text([tf.reduce_mean(rows), rows * 2.0], [x], *EVERYTHING)).count("Mean") == 1
    of_parts = tf.reduce_mean(tf.reduce_sum(x, 1, keepdims=True), 1)
    assert ops(text([of_parts], [x], *EVERYTHING)).count("Mean") == 1


def test_a_reshape_that_only_adds_or_drops_axes_comes_before_the_broadcast(monkeypatch) -> None:
    x, y = tf.placeholder(tf.float32, [4, 1]), tf.placeholder(tf.float32, [4, 1, 6, 1])
    wide = tf.broadcast_to(x, [4, 6])
    product = tf.reshape(wide, [4, 1, 6, 1]) * y
    assert "BroadcastTo" not in ops(text([product], [x, y], *EVERYTHING))
    split = tf.reshape(wide, [2, 2, 6]) * tf.reshape(y, [2, 2, 6])
    assert "BroadcastTo" in ops(text([split], [x, y], *EVERYTHING))
    feed = {x: values(4, 1), y: values(4, 1, 6, 1)}
    agree(
        monkeypatch,
        [product, split],
        feed,
        "narrow_broadcasts",
        fires=2,
        tolerance=1e-6,
    )


def test_an_operation_between_reshapes_needs_none(monkeypatch) -> None:
    x, y, z = (tf.placeholder(tf.float32, dims) for dims in ([4, 6], [4, 6], [4, 1]))
    product = tf.expand_dims(x, 1) * tf.reshape(y, [-1, 1, 6])
    rows = tf.reshape(product, [4, 6])
    assert ops(text([rows], [x, y], *EVERYTHING)) == ["_Arg", "_Arg", "Mul"]
    column = tf.reshape(tf.reshape(z, [4, 1, 1]) * tf.reshape(y, [4, 1, 6]), [4, 6])
    assert ops(text([column], [y, z], *EVERYTHING)) == ["_Arg", "_Arg", "Mul"]
    kept = ops(text([rows, product], [x, y], *EVERYTHING))
    assert kept.count("Mul") == 1
    other = tf.reshape(tf.expand_dims(x, 1) * tf.reshape(y, [-1, 1, 6]), [8, 3])
    assert "Reshape" in ops(text([other], [x, y], *EVERYTHING))
    row = tf.reshape(tf.reshape(x[0], [2, 3])[0] * y[1, :3], [1, 3])
    assert "Reshape" in ops(text([row], [x, y], *EVERYTHING))
    feed = {x: values(4, 6), y: values(4, 6), z: values(4, 1)}
    agree(monkeypatch, [rows, column, other, row], feed, "cancel_transposes", fires=2, tolerance=1e-6)


# ---- sums over counts


@pytest.mark.parametrize("axis", [None, 0, [1, 2], 2])
@pytest.mark.parametrize("divide", [tf.div_no_nan, tf.realdiv])
def test_a_sum_over_the_number_of_its_terms_is_a_mean(monkeypatch, divide, axis) -> None:
    x = tf.placeholder(tf.float32, [2, 3, 4])
    count = 24 if axis is None else np.prod([[2, 3, 4][i] for i in np.atleast_1d(axis)])
    y = divide(tf.reduce_sum(x, axis), float(count))
    assert {"Mean"} == set(ops(text([y], [x], NAME, "remove_unneeded"))) - {"Const", "_Arg"}
    fetches = [y, tf.gradients(y, x)[0]]
    agree(monkeypatch, fetches, {x: values(2, 3, 4)}, NAME, fires=1, tolerance=1e-6)


def test_a_division_by_another_number_stays_a_division(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [2, 3])
    y = tf.div_no_nan(tf.reduce_sum(x), 5.0)
    assert {"Sum", "RealDiv"} == set(ops(text([y], [x], NAME, "remove_unneeded"))) - {"Const", "_Arg"}
    agree(monkeypatch, [y], {x: values(2, 3)}, NAME, fires=1, tolerance=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: tf.div_no_nan(tf.reduce_sum(x, 1), [3.0, 0.0]),
        lambda x: tf.div_no_nan(tf.reduce_sum(x), 0.0),
        lambda x: tf.div_no_nan(tf.reduce_sum(x), tf.reduce_max(x)),
        lambda x: tf.realdiv(tf.reduce_sum(x), 5.0),
        lambda x: tf.realdiv(tf.reduce_sum(tf.cast(x, tf.float16)), np.float16(6)),
    ],
)
def test_other_divisions_stay(monkeypatch, make) -> None:
    x = tf.placeholder(tf.float32, [2, 3])
    y = make(x)
    assert not {"Mean"} & set(ops(text([y], [x], NAME)))
    agree(monkeypatch, [y], {x: values(2, 3)}, NAME, fires=0)


def test_a_sum_that_others_take_is_computed_once() -> None:
    x = tf.placeholder(tf.float32, [2, 3])
    total = tf.reduce_sum(x)
    mean = total / 6.0
    for fetches in ([mean, total], [mean, tf.exp(total)]):
        assert "Mean" not in ops(text(fetches, [x], NAME))


def test_products_with_one_number_are_summed_first(monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [4, 5])
    y = tf.reduce_sum(tf.exp(x) * 0.5, 0)
    lines = ops(text([y], [x], NAME, "remove_unneeded"))
    assert lines[lines.index("Exp") :] == ["Exp", "Const", "Sum", "Const", "Mul"]
    agree(monkeypatch, [y, tf.gradients(y, x)[0]], {x: values(4, 5)}, NAME, fires=1, tolerance=1e-6)


def test_products_that_others_take_or_that_broadcast_stay() -> None:
    x = tf.placeholder(tf.float32, [4, 5])
    scaled, repeated = x * 0.5, x[0] * tf.constant([[2.0]])
    unknown = tf.placeholder(tf.float32)
    of_unknown = tf.reduce_sum(unknown * tf.constant([[2.0]]), [0, 1])
    for fetches in ([tf.reduce_sum(scaled), scaled], [tf.reduce_sum(repeated)], [of_unknown]):
        lines = ops(text(fetches, [x, unknown], NAME))
        assert lines.index("Mul") < lines.index("Sum")


def test_means_of_scaled_losses(monkeypatch) -> None:
    """A sum of products with a number, over the count: all rules together."""
    x = tf.placeholder(tf.float32, [4, 5])
    y = tf.div_no_nan(tf.reduce_sum(tf.reduce_sum(tf.square(x) * 3.0, 1)), 20.0)
    fetches = [y, tf.gradients(y, x)[0]]
    agree(monkeypatch, fetches, {x: values(4, 5)}, NAME, fires=3, tolerance=1e-6)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("axes", [[1], [-2, 0], 1])
def test_a_sum_over_axes_of_size_one_is_a_reshape(monkeypatch, keep, axes) -> None:
    x = tf.placeholder(tf.float32, [1, 1, 5])
    y = tf.reduce_sum(tf.exp(x), axes, keep)
    assert "Sum" not in ops(text([y], [x], *EVERYTHING))
    assert "one element each" in agree(monkeypatch, [y], {x: values(1, 1, 5)}, NAME, fires=1)


def test_sums_of_several_or_no_elements_stay() -> None:
    x = tf.placeholder(tf.float32, [1, 2, 0])
    for axes in ([0, 1], 2):
        assert "Sum" in ops(text([tf.reduce_sum(x, axes)], [x], NAME))
    unknown = tf.placeholder(tf.float32, [None, 2])
    assert "Sum" in ops(text([tf.reduce_sum(unknown, 0)], [unknown], NAME))
