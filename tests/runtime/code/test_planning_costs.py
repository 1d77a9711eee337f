"""After how many steps a plan of their own is worth to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.native.codegen import host
from flowstone.runtime.code.planning_costs import LEAST_USES, MOST_BY_ATEN, MOST_USES, PlanCosts


def uses(own: PlanCosts, calls: int, size: float = 1.0) -> int:
    return own.worthwhile_uses(PlanCosts(0.0, calls, 0.0), size)


def test_it_is_worth_what_it_takes_to_make():
    own = PlanCosts(planning_us=6000.0, calls=50, work_us=0.0)
    assert uses(own, calls=60) == 100
    assert uses(own, calls=70) == 50
    assert uses(own._replace(planning_us=3000.0), calls=60) == 50


def test_calls_take_as_long_as_the_machine_s():
    own = PlanCosts(planning_us=6000.0, calls=50, work_us=0.0, call_us=2.0)
    assert uses(own, calls=60) == 50


def test_work_counts_by_the_size_of_what_is_fed():
    own = PlanCosts(planning_us=6000.0, calls=1, work_us=1000.0)
    assert uses(own, calls=1, size=4) < uses(own, calls=1) < uses(own, calls=1, size=0.1)


def test_a_step_that_is_recorded_saves_all_calls():
    own = PlanCosts(planning_us=30e3, calls=100, work_us=0.0)
    assert uses(own._replace(is_recorded=True), calls=110) < uses(own, calls=110)


@pytest.mark.parametrize(("planning_us", "wanted"), [(0.0, LEAST_USES), (1e12, MOST_USES)])
def test_no_estimate_is_believed_beyond_its_bounds(planning_us, wanted):
    assert uses(PlanCosts(planning_us, calls=10, work_us=0.0), calls=20) == wanted


def costs(fetch: Any, x: Any, length: int) -> PlanCosts:
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        s.run(fetch, {x: np.ones([4, length])})
        (plans,) = s.planner.plans_by_shape.values()
        return plans.last().plan.costs()


def test_deep_networks_take_longer_to_plan_and_large_ones_to_run():
    x = tf.placeholder(tf.float32, [4, None])
    y = tf.expand_dims(x, 2) * tf.ones([64])
    for _ in range(8):
        y = tf.tensordot(y, tf.get_variable(f"w{_}", [64, 64]), 1)
    shallow = costs(tf.matmul(x, x, transpose_b=True), x, 5)
    deep, long = costs(y, x, 5), costs(y, x, 50)
    assert deep.planning_us > 2 * shallow.planning_us
    assert deep.calls > shallow.calls
    assert 5 * deep.work_us < long.work_us < 20 * deep.work_us


def test_calls_in_a_loop_count_more():
    x = tf.placeholder(tf.float32, [4, None])
    body = tf.strings.as_string(tf.reduce_sum(x))
    loop = tf.while_loop(
        lambda s: tf.less(tf.strings.length(s), 30), lambda s: tf.strings.join([s, "-"]), [body]
    )
    assert costs(loop, x, 3).calls > costs(body, x, 3).calls + 6


def test_steps_meanwhile_take_as_long_as_planning_and_code():
    own, wide = PlanCosts(planning_us=20e3, calls=10, work_us=500.0, code_us=60e3), PlanCosts(0.0, 25, 0.0)
    assert own.steps_meanwhile(wide, 1.0) == 200  # of 600 us
    assert own.steps_meanwhile(wide, 11.0) == 22  # of 5600 us
    assert own._replace(code_us=0.0).steps_meanwhile(wide, 1.0) == 50


@pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
def test_loops_that_lengths_share_are_made_once():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [4, None])
        inputs = tf.expand_dims(x, 2) * tf.ones([8])
        outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(8), inputs, dtype=tf.float32)
        fetch = tf.gradients(tf.reduce_sum(outputs[:, -1]), tf.trainable_variables())
        first, second, other = costs(fetch, x, 5), costs(fetch, x, 9), costs(tf.tanh(x) + 1.0, x, 9)
    assert first.code_us == second.code_us
    assert 0 < second.after(first).code_us < second.code_us / 2
    assert second.after(other).code_us == second.code_us


@pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
def test_much_machine_code_takes_long_to_make():
    x = tf.placeholder(tf.float32, [4, None])
    y = tf.tanh(x) * tf.sigmoid(x) + 1.0
    few, many = costs(y, x, 5), costs(tf.tanh(tf.exp(y) - tf.sqrt(y)) / (y * y + 3.0), x, 5)
    assert many.code_us > few.code_us > 0


def test_steps_by_aten_take_as_long_as_making_code():
    costs = PlanCosts(planning_us=0.0, calls=25, work_us=900.0)  # a step of 1000 us
    assert costs.steps_by_aten(10, much=0) == 105
    assert costs.steps_by_aten(0, much=10) > 2 * 105
    assert costs.steps_by_aten(10_000, much=0) == MOST_BY_ATEN
    assert costs._replace(work_us=1e6).steps_by_aten(10, much=0) == 1


def test_updates_of_rows_cost_what_the_rows_do():
    def work_us(words: int) -> float:
        with tf.Graph().as_default():
            table, x = tf.Variable(tf.zeros([words, 16])), tf.placeholder(tf.int32, [4, None])
            loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, x)))
            return costs(tf.train.AdagradOptimizer(0.1).minimize(loss), x, 3).work_us

    assert work_us(50_000) == work_us(10)
