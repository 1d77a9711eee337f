"""Which runs are measured."""

from __future__ import annotations

import flowstone as tf
from flowstone.runtime.plans.measured_runs import MeasuredRuns


def config(every: int, after: int) -> tf.ConfigProto:
    made = tf.ConfigProto()
    made.graph_options.build_cost_model, made.graph_options.build_cost_model_after = every, after
    return made


def test_nothing_is_measured_unless_asked_for() -> None:
    assert MeasuredRuns.wanted(None) is None
    assert MeasuredRuns.wanted(config(0, 5)) is None


def test_every_so_many_after_so_many_of_each_key() -> None:
    runs = MeasuredRuns.wanted(config(3, 2))
    assert runs is not None
    assert [runs.is_due("a") for _ in range(8)] == [False] * 4 + [True, False, False, True]
    assert not runs.is_due("b")


def test_the_first_measurement_of_a_key_is_told() -> None:
    runs = MeasuredRuns(1, 0)
    assert [runs.is_first(key) for key in "aab"] == [True, False, True]
