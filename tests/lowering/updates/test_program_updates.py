"""Updates by programs: blocks have the bits of single calls, ATen's steps are the programs' within 4 ulps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from agreement import agree
from flowstone.lowering.updates import program_updates
from flowstone.lowering.updates.program_updates import _ByBlocks
from flowstone.lowering.updates.update_programs import in_places, run, written

RNG = np.random.default_rng(29)
MEAN = ("add", ("mul", "n0", "h0"), ("mul", "n1", "x0"))
RESULTS = {"h0": MEAN, "h1": ("sub", "h1", ("div", MEAN, ("add", ("sqrt", ("abs", "x0")), "n0")))}
NUMBERS = [torch.tensor(0.9), torch.tensor(0.1)]


def tensors(dims: Any, columns: bool = False) -> list[Any]:
    arrays = [torch.from_numpy(RNG.standard_normal(dims).astype("f")) for _ in range(3)]
    return [x.t().contiguous().t() for x in arrays] if columns else arrays


@pytest.mark.parametrize("dims", [(5,), (3, 4), (1000,), (40, 50)])
@pytest.mark.parametrize("columns", [False, True])
def test_blocks_and_joined_parameters_have_the_same_bits(dims: Any, columns: bool) -> None:
    program = in_places(written(RESULTS), 2, 1, 2)
    rows = [tensors(dims, columns and len(dims) == 2), tensors((7,)), tensors((2, 2))]
    rows[1][2] = rows[1][2].double().float()
    if len(dims) == 2:
        rows[0][2] = rows[0][2].t().contiguous().t()  # the gradient lies in another order
    expected = [[x.clone() for x in row] for row in rows]
    for row in expected:
        room = [torch.empty_like(row[0]) for _ in range(program.temporaries)]
        run(program, [*row, *NUMBERS, *room])
    _ByBlocks(program, 10, 60)([row[:2] for row in rows], [row[2:] for row in rows], NUMBERS)
    for row, others in zip(rows, expected):
        assert all(torch.equal(x, y) for x, y in zip(row, others))


def keras(kind: str, p: Any, m: Any, v: Any, g: Any) -> list[Any]:
    """The rules of Keras' optimisers."""
    rate, rho = tf.Variable(0.01, trainable=False), tf.Variable(0.9, trainable=False)
    root = lambda x: tf.sqrt(tf.clip_by_value(x, 0.0, np.inf))  # noqa: E731
    squares = rho * v + (1.0 - rho) * tf.square(g)
    if kind == "adam":
        mean = rho * m + (1.0 - rho) * g
        return [(m, mean), (v, squares), (p, p - rate * mean / (root(squares) + 1e-7))]
    if kind == "rmsprop":
        return [(v, squares), (p, p - rate * g / (root(squares) + 1e-7))]
    if kind == "adagrad":
        return [(v, v + tf.square(g)), (p, p - rate * g / (root(v + tf.square(g)) + 1e-7))]
    step = rho * m - rate * g
    return [(m, step), (p, p + (rho * step - rate * g if kind == "nesterov" else step))]


@pytest.mark.parametrize("size", [3, 70000])
@pytest.mark.parametrize("least", [0.0, -1.0])
@pytest.mark.parametrize("kind", ["adam", "rmsprop", "adagrad", "momentum", "nesterov"])
def test_steps_of_keras_are_within_4_ulps(monkeypatch: Any, kind: str, least: float, size: int) -> None:
    """Squares that are negative, as no step leaves them, are clipped as the program says."""
    used = []
    known_rule = program_updates.known_rule
    monkeypatch.setattr(program_updates, "known_rule", lambda *a: used.append(known_rule(*a)) or used[-1])
    draws = [RNG.uniform(low, 1.0, size).astype("f") for low in (-1.0, -1.0, least, -1.0)]
    p, m, v, source = (tf.Variable(x) for x in draws)
    updates = keras(kind, p, m, v, tf.sin(source))
    with tf.control_dependencies([tf.group(*[tf.assign(x, y) for x, y in updates])]):
        after = [tf.identity(x.read_value()) for x in (p, m, v)]
    setup = tf.global_variables_initializer()
    agree(monkeypatch, after, {}, "join_written_updates", fires=1, setup=setup, tolerance=4 * 2.0**-23)
    assert [use is not None for use in used] == [kind != "nesterov"]


def test_an_uninitialised_variable_is_named() -> None:
    p, m = tf.Variable([1.0, 2.0], name="p"), tf.Variable([1.0, 2.0], name="m")
    new_m = 0.9 * m + tf.sin(tf.constant([1.0, 2.0]))
    train = tf.group(tf.assign(m, new_m), tf.assign(p, p - new_m))
    with tf.Session() as session:
        session.run(p.initializer)
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value"):
            session.run(train)
