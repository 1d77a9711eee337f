"""The largest numbers of rows, and checks, in a loop: machine code gives what the kernels do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.declarations.operation import F
from flowstone.lowering.programs.ranking_statements import RANKINGS
from three_ways import assert_equal_three_ways, programs, repeated


def checked(x: Any) -> list[Any]:
    with tf.control_dependencies([F.Assert(tf.reduce_all(x < 9.0), ["too large:", x])]):
        return [x * 2.0]


NUMBERS = np.random.default_rng(2).integers(-9, 9, [2, 40])
CASES: dict[str, Callable[[Any], list[Any]]] = {
    "Assert": checked,
    "CheckNumerics": lambda x: [tf.check_numerics(x, "x") * 2.0, tf.check_numerics(x[0, 0, 0], "x")],
    "TopKV2": lambda x: [
        *tf.nn.top_k(x, 1),
        *tf.nn.top_k(x[0, 0], 7),
        *F.TopKV2(tf.round(x), 5, index_type=tf.int64),  # with many equal ones
        *tf.nn.top_k(NUMBERS, 4),
        tf.nn.top_k(tf.sqrt(x), 7)[0],  # with many NaN
        *tf.nn.top_k(tf.where(x <= tf.reduce_min(x, 2, keepdims=True), x / 0.0 * 0.0, x), 3),
    ],
}


def test_every_operation_has_a_case() -> None:
    assert set(CASES) == set(RANKINGS)


@pytest.mark.parametrize("name", CASES)
def test_rankings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [4, 3, 7])
    value = np.random.default_rng(0).normal(size=[4, 3, 7])
    assert_equal_three_ways(monkeypatch, repeated(CASES[name], x), {x: value})


def test_many_numbers_stay_outside() -> None:
    x = tf.placeholder(tf.float32, [100])
    found, _, log = programs(repeated(lambda x: list(tf.nn.top_k(x, 65)), x), [x])
    assert not found and any("it finds many numbers" in text for _, _, text in log)


def test_numbers_that_are_none_are_reported() -> None:
    x = tf.placeholder(tf.float32, [2])
    results = repeated(lambda x: [tf.check_numerics(x, "mine") * 2.0], x)
    with tf.Session() as session:
        assert "_Program(" in session.explain(results, {x: [1.0, 2.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="mine : Tensor had NaN"):
            session.run(results, {x: [1.0, np.nan]})


def test_what_does_not_hold_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [2])
    results = repeated(checked, x)
    monkeypatch.setattr(flags, "NATIVE", 2)
    with tf.Session() as session:
        assert "_Program(" in session.explain(results, {x: [1.0, 2.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
            session.run(results, {x: [1.0, 12.0]})
