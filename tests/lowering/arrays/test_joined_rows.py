"""Rows of several tables side by side: graph text, values with and without the pass, errors, what stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags

NAME = "join_rows"


@pytest.fixture(autouse=True)
def machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)


def tables(count: int, rows: int = 7, columns: int = 3, dtype: Any = "float32") -> list[Any]:
    random = np.random.default_rng(count)
    return [
        tf.get_variable(f"t{i}", initializer=(9 * random.random((rows + i, columns + i))).astype(dtype))
        for i in range(count)
    ]


def test_columns_of_indices_are_read_where_they_are() -> None:
    ids, x = tf.placeholder(tf.int64, [5, 3]), tf.placeholder(tf.float32, [5, 2])
    held = tables(3)
    rows = [tf.gather(table, ids[:, i]) for i, table in enumerate(held)]
    lines = text([tf.concat([*rows, x], 1)], [ids, x], NAME)
    found = ops(lines)
    assert "_JoinedRows" in found
    assert not {"GatherV2", "StridedSlice", "ConcatV2"} & set(found)
    (line,) = [line for line in lines if "_JoinedRows" in line]
    assert "width=14" in line and "float32[5,14]" in line


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "bool"])
@pytest.mark.parametrize("rows", [1, 2, 33])
def test_values(monkeypatch: pytest.MonkeyPatch, rows: int, dtype: str, index: str) -> None:
    first, second, third = tables(3, dtype=dtype)
    ids, more = tf.placeholder(index, [rows, 4]), tf.placeholder(index, [rows])
    x = tf.placeholder(dtype, [rows, 5])
    several = tf.reshape(tf.gather(second, ids), [rows, -1])
    parts = [tf.gather(first, ids[:, 2]), x, several, tf.gather(third, more), tf.gather(first, ids[:, -1]), x]
    random = np.random.default_rng(rows)
    feed = {
        ids: random.integers(0, 7, (rows, 4)),
        more: random.integers(0, 9, rows),
        x: (9 * random.random((rows, 5))).astype(dtype),
    }
    setup = tf.global_variables_initializer()
    agree(monkeypatch, [tf.concat(parts, 1)], feed, NAME, fires=1, setup=setup, tolerance=0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_small_parts_that_lie_apart(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    for rows in (1, 2, 17):
        x, y = tf.placeholder(dtype, [rows, 3, 5]), tf.placeholder(dtype, [2, rows])
        random = np.random.default_rng(rows)
        feed = {each: (9 * random.random(each.shape.as_list())).astype(dtype) for each in (x, y)}
        parts = [x[:, 1], x[:, 0, 2:], tf.transpose(y), x[:, :, 3], x[:, 2, 4:], tf.transpose(y)[:, :1]]
        agree(monkeypatch, [tf.concat(parts, 1)], feed, NAME, fires=1, tolerance=0)


def test_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    x, lengths = tf.placeholder(tf.float32, [4, 6, 5]), tf.placeholder(tf.int32, [4])
    cell = tf.nn.rnn_cell.GRUCell(300, kernel_initializer=tf.orthogonal_initializer(seed=1))
    _, state = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)
    gradient = tf.gradients(tf.reduce_sum(tf.square(state)), [x])[0]
    random = np.random.default_rng(1)
    feed = {x: random.random((4, 6, 5)), lengths: [6, 0, 3, 1]}
    setup = tf.global_variables_initializer()
    others = {"join_programs", "join_straight_programs"}
    monkeypatch.setattr(flags, "DISABLED_PASSES", flags.DISABLED_PASSES | others)
    explained = agree(monkeypatch, [state, gradient], feed, NAME, fires=3, setup=setup, tolerance=1e-5)
    assert "joined_rows(" in explained


def test_tables_that_the_step_changes_are_read_before(monkeypatch: pytest.MonkeyPatch) -> None:
    held, ids = tables(2), tf.placeholder(tf.int32, [4, 2])
    rows = tf.concat([tf.nn.embedding_lookup(table, ids[:, i]) for i, table in enumerate(held)], 1)
    loss = tf.reduce_sum(tf.square(rows))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    feed = {ids: [[0, 1], [2, 1], [2, 3], [6, 7]]}
    agree(monkeypatch, [loss, train, rows], feed, NAME, fires=1, setup=tf.global_variables_initializer())


@pytest.mark.parametrize("bad", [-1, 7, 2**31 - 1])
@pytest.mark.parametrize("native", [1, 2])
def test_an_index_out_of_bounds_is_the_gathers_error(
    monkeypatch: pytest.MonkeyPatch, bad: int, native: int
) -> None:
    monkeypatch.setattr(flags, "NATIVE", native)
    first, second = tables(2)
    ids, more = tf.placeholder(tf.int64, [3, 2]), tf.placeholder(tf.int64, [3, 2])
    several = tf.reshape(tf.gather(first, more), [3, 6])
    joined = tf.concat([tf.gather(first, ids[:, 1]), tf.gather(second, ids[:, 0]), several], 1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        good = np.zeros([3, 2], np.int64)
        session.run(joined, {ids: good, more: good})
        for place, words in (((2, 1), r"indices\[2\]"), ((1, 0), r"indices\[1\]")):
            wrong = good.copy()
            wrong[place] = max(bad, 8) if bad > 0 else bad
            with pytest.raises(tf.errors.InvalidArgumentError, match=rf"{words} = {wrong[place]} is not in"):
                session.run(joined, {ids: wrong, more: good})
        wrong = good.copy()
        wrong[2, 1] = bad
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=rf"indices\[2,1\] = {bad} is not in \[0, 7\)"
        ):
            session.run(joined, {ids: good, more: wrong})
        session.run(joined, {ids: good, more: good})


def test_random_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(6):
        random = np.random.default_rng(seed)
        with tf.Graph().as_default():
            rows, columns = (int(each) for each in random.integers(1, 9, 2))
            held, feed, parts = tables(4, columns=int(random.integers(1, 20))), {}, []
            ids = tf.placeholder(tf.int64, [rows, columns])
            feed[ids] = random.integers(0, 7, (rows, columns))
            for _ in range(int(random.integers(2, 9))):
                table = held[int(random.integers(4))]
                kind = int(random.integers(4))
                if kind == 0:
                    parts.append(tf.reshape(tf.gather(table, ids), [rows, columns * table.shape[1].value]))
                elif kind == 1:
                    x = tf.placeholder(tf.float32, [rows, int(random.integers(1, 5))])
                    feed[x] = random.random(x.shape.as_list())
                    parts.append(x)
                else:
                    parts.append(tf.gather(table, ids[:, int(random.integers(columns))]))
            parts += [tf.gather(held[0], ids[:, 0]), tf.gather(held[1], ids[:, -1])]
            joined = tf.concat(parts, -1)
            setup = tf.global_variables_initializer()
            agree(monkeypatch, [joined], feed, NAME, fires=1, setup=setup, tolerance=0)


def test_what_stays() -> None:
    first, second = tables(2)
    ids, few = tf.placeholder(tf.int64, [5, 3]), tf.placeholder(tf.int32, [5])
    open_ids = tf.placeholder(tf.int64, [None, 3])
    once = tf.gather(first, ids[:, 0])
    texts = tf.constant(["a", "b"])[:, None]
    many = tf.zeros([10, 1 << 18])
    stays: list[Any] = [
        tf.concat([once, tf.zeros([5, 1 << 14])], 1),  # neither several gathers nor small
        tf.concat([tf.zeros([1, 5, 3]), tf.ones([1, 5, 2])], 2),
        tf.concat([tf.zeros([0, 3]), tf.ones([0, 2])], 1),
        tf.concat([tf.gather(first, ids[:, 0]), tf.gather(first, ids[:, 1])], 0),
        tf.concat([tf.gather(first, open_ids[:, 0]), tf.gather(first, open_ids[:, 1])], 1),
        tf.concat([tf.gather(texts, ids[:, 0]), tf.gather(texts, ids[:, 1])], 1),
        tf.concat([tf.gather(many, ids[:, 0]), tf.gather(many, ids[:, 1])], 1),
        tf.concat([tf.gather(first, ids, axis=0), tf.gather(first, ids, axis=0)], 1),
        tf.concat([tf.gather(first, ids[:3, 0]), tf.gather(second, ids[:3, 1])], 1),
    ]
    for each in stays[:-1]:
        assert "_JoinedRows" not in ops(text([each], [ids, few, open_ids], NAME))
    part = ops(text([stays[-1]], [ids], NAME))
    assert "_JoinedRows" in part and "StridedSlice" in part  # some rows of indices are made as before
    both = tf.gather(first, ids[:, 0]), tf.gather(second, ids[:, 1])
    found = ops(text([tf.concat(both, 1), *both], [ids], NAME))
    assert found.count("GatherV2") == 2  # others take the rows, too
