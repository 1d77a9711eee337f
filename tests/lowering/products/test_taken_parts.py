"""Products of which one part is taken: that part alone is computed, with equal results, and what stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text

RNG = np.random.default_rng(3)
PASSES = ("merge_common_subexpressions", "remove_unneeded", "compute_taken_parts")


def values(*placeholders: Any) -> dict[Any, Any]:
    return {x: RNG.standard_normal(x.shape.as_list()).astype("f") for x in placeholders}


def fed(*dims: int | None) -> Any:
    return tf.placeholder(tf.float32, dims)


def split(sizes: list[int], axis: int = 1, **transposes: bool) -> tuple[list[Any], list[Any]]:
    x, w = fed(3, 5), fed(9, 5)
    return tf.split(tf.matmul(x, w, **(transposes or {"transpose_b": True})), sizes, axis), [x, w]


@pytest.mark.parametrize("part", [0, 1, 2])
def test_each_part_is_a_product_by_its_rows(monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    parts, feeds = split([2, 4, 3], -1)
    lines = text([parts[part]], feeds, *PASSES)
    assert "SplitV" not in ops(lines) and ops(lines).count("Slice") == 1
    log = agree(monkeypatch, [parts[part]], values(*feeds), "compute_taken_parts", fires=1)
    assert f"{(2, 4, 3)[part]} of 9 columns are taken" in log


def test_products_of_which_more_is_taken_stay() -> None:
    parts, feeds = split([2, 4, 3])
    assert "SplitV" in ops(text([parts[0], parts[2]], feeds, *PASSES))
    x, w = fed(3, 5), fed(9, 5)
    product = tf.matmul(x, w, transpose_b=True)
    assert "SplitV" in ops(text([tf.split(product, [2, 7], 1)[1], product], [x, w], *PASSES))


def test_what_is_split_by_rows_or_has_columns_that_lie_apart_stays() -> None:
    x, w = fed(3, 5), fed(9, 5)
    by_rows = tf.split(tf.matmul(x, w, transpose_b=True), [1, 2], 0)[1]
    assert "SplitV" in ops(text([by_rows], [x, w], *PASSES))
    w = fed(5, 9)
    assert "SplitV" in ops(text([tf.split(tf.matmul(x, w), [2, 7], 1)[1]], [x, w], *PASSES))


def test_complex_numbers_and_sizes_of_the_step_stay() -> None:
    x, w, unknown = tf.placeholder(tf.complex64, [3, 5]), tf.placeholder(tf.complex64, [9, 5]), fed(None, 5)
    part = tf.split(tf.matmul(x, w, transpose_b=True), [2, 7], 1)[1]
    assert "SplitV" in ops(text([part], [x, w], *PASSES))
    part = tf.split(tf.matmul(fed(3, 5), unknown, transpose_b=True), [2, 7], 1)[1]
    assert "SplitV" in ops(text([part], [part.op.inputs[0].op.inputs[0], unknown], *PASSES))


@pytest.mark.by_aten
@pytest.mark.parametrize("is_static", [False, True])
def test_gradients_of_recurrences_leave_out_those_of_their_inputs(
    monkeypatch: pytest.MonkeyPatch, is_static: bool
) -> None:
    x = fed(4, 5, 6)
    tf.set_random_seed(1)
    cell = tf.nn.rnn_cell.GRUCell(7)
    if is_static:
        outputs = tf.stack(tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)[0], 1)
    else:
        outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    gradients = tf.gradients(tf.reduce_sum(tf.square(outputs)), tf.trainable_variables())
    setup = tf.global_variables_initializer()
    fetches = [outputs, *gradients]
    fires = 9 if is_static else 2  # the first state is no variable's
    log = agree(monkeypatch, fetches, values(x), "compute_taken_parts", fires=fires, setup=setup)
    assert "7 of 13 columns are taken" in log


@pytest.mark.by_aten
def test_both_parts_of_a_recurrences_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    x = fed(4, 5, 6)
    tf.set_random_seed(1)
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicRNNCell(7), x, dtype=tf.float32)
    gradients = tf.gradients(tf.reduce_sum(tf.square(outputs)), [x, *tf.trainable_variables()])
    setup = tf.global_variables_initializer()
    agree(monkeypatch, gradients, values(x), "compute_taken_parts", fires=0, setup=setup)


def test_weights_that_change_are_read_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = fed(3, 5), tf.Variable(RNG.standard_normal((9, 5)).astype("f"))
    part = tf.split(tf.matmul(x, w, transpose_b=True), [2, 7], 1)[1]
    with tf.control_dependencies([part]):
        changed = tf.assign_add(w, tf.ones([9, 5]))
    with tf.control_dependencies([changed]):
        later = tf.split(tf.matmul(x, w.read_value(), transpose_b=True), [2, 7], 1)[1]
    setup = tf.global_variables_initializer()
    agree(monkeypatch, [part, later], values(x), "compute_taken_parts", fires=2, setup=setup)
