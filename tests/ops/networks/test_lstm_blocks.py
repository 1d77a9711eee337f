"""Sequences of LSTM steps in one op: their ends, gradients and sizes; and they are the steps one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

STEPS, ROWS, INPUTS, CELLS = 5, 2, 3, 4
SHAPES = {
    "x": (STEPS, ROWS, INPUTS), "cs_prev": (ROWS, CELLS), "h_prev": (ROWS, CELLS),
    "w": (INPUTS + CELLS, 4 * CELLS), "wci": (CELLS,), "wcf": (CELLS,), "wco": (CELLS,), "b": (4 * CELLS,),
}  # fmt: skip
RANDOM = np.random.RandomState(1)
VALUES = {name: RANDOM.randn(*shape).astype(np.float32) for name, shape in SHAPES.items()}


@pytest.mark.parametrize("streamed", [0, 1 << 30])
def test_a_sequence_is_its_steps(streamed: int, set_profile: Any) -> None:
    set_profile(streamed_copies=streamed)  # zeros beyond the length may go past the caches
    with tf.Graph().as_default(), tf.Session() as session:
        sequence = F.BlockLSTM(3, *VALUES.values(), use_peephole=True, cell_clip=0.7, forget_bias=0.5)
        steps, state, h = [], VALUES["cs_prev"], VALUES["h_prev"]
        rest = list(VALUES.values())[3:]
        for x in VALUES["x"][:3]:
            step = F.LSTMBlockCell(x, state, h, *rest, use_peephole=True, cell_clip=0.7, forget_bias=0.5)
            steps.append(step)
            state, h = step.cs, step.h
        found, parts = session.run([list(sequence), [list(step) for step in steps]])
    for whole, each in zip(found, zip(*parts), strict=True):
        np.testing.assert_allclose(whole[:3], each, rtol=1e-5, atol=1e-6)
        assert not whole[3:].any()


@pytest.mark.parametrize("length", [0, 3, 5])
@pytest.mark.parametrize("version", ["BlockLSTM", "BlockLSTMV2"])
def test_gradients_are_difference_quotients(version: str, length: int) -> None:
    """In float32, whose differences are coarse."""
    with tf.Graph().as_default(), tf.Session():
        inputs = {name: tf.constant(0.5 * value) for name, value in VALUES.items()}
        found = getattr(F, version)(length, *inputs.values(), use_peephole=True, cell_clip=0.0)
        y = tf.concat([found.h, found.cs], 2)
        for name, x in inputs.items():
            shapes = (list(SHAPES[name]), y, [STEPS, ROWS, 2 * CELLS])
            error = tf.test.compute_gradient_error(x, *shapes, x_init_value=0.5 * VALUES[name], delta=1e-2)
            assert error < 2e-3, name


@pytest.mark.parametrize("length", [-1, 6])
def test_more_steps_than_there_are_are_refused(length: int) -> None:
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="from 0 to 5"):
        session.run(F.BlockLSTM(length, *VALUES.values()))


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("name", ["cs_prev", "h_prev", "w", "wcf", "b"])
def test_sizes_that_do_not_fit_are_refused(name: str, is_known: bool) -> None:
    feed: dict[Any, Any] = {}
    for each, value in VALUES.items():
        given = value[:-1] if each == name else value
        feed[tf.placeholder(tf.float32, given.shape if is_known else None)] = given
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="must be"):
        session.run(F.BlockLSTM(STEPS, *feed).h, feed)


def test_the_width_of_a_gradient_follows_from_the_offsets() -> None:
    """Of a GRU whose states are not known."""
    with tf.Graph().as_default():
        inputs = [tf.placeholder(tf.float32, [8] if i == 4 else None) for i in range(10)]
        assert F.GRUBlockCellGrad.several(*inputs)[3].shape.as_list() == [None, 8]


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("wrong", [None, 0, 2, 5, 9])
def test_the_gradient_of_a_gru_step(wrong: int | None, is_known: bool) -> None:
    """By its definition; sizes that do not fit are refused."""
    shapes = [(2, 3), (2, 4), (7, 8), (7, 4), (8,), (4,), *[(2, 4)] * 4]
    random = np.random.RandomState(0)
    _, h, w_ru, w_c, _, _, r, u, c, dh = given = [random.rand(*shape).astype(np.float32) for shape in shapes]
    if wrong is not None:
        given[wrong] = given[wrong][:-1]
    with tf.Graph().as_default(), tf.Session() as session:
        feed = {tf.placeholder(tf.float32, each.shape if is_known else None): each for each in given}
        y = F.GRUBlockCellGrad.several(*feed)
        if wrong is not None:
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"must be|do not fit"):
                session.run(list(y), feed)
            return
        found = session.run(list(y), feed)
    dc, du = dh * (1 - u) * (1 - c * c), dh * (h - c) * u * (1 - u)
    by_new = dc @ w_c.T
    dru = np.concatenate([by_new[:, 3:] * h * r * (1 - r), du], 1)
    by_gates = dru @ w_ru.T
    wanted = [by_new[:, :3] + by_gates[:, :3], by_gates[:, 3:] + by_new[:, 3:] * r + dh * u, dc, dru]
    for each, expected in zip(found, wanted):
        np.testing.assert_allclose(each, expected, rtol=1e-5, atol=1e-6)
