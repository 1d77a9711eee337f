"""Several steps of a strategy in one run: TensorFlow 1.15.5's values for one replica, the same of two."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf
from flowstone.contrib.distribute import core

SUM = core.ReduceOp.SUM
CONFIG = tf.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=True)


@pytest.mark.parametrize("devices", [["/cpu:0"], ["/cpu:0", "/cpu:1"]], ids=len)
def test_steps_take_elements_and_give_the_last_outputs(devices: list[str]) -> None:
    strategy = core.MirroredStrategy(devices)
    with tf.Graph().as_default(), strategy.scope():
        count = tf.get_variable("count", initializer=0.0)
        iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(12).batch(2, drop_remainder=True))

        def replica(context: Any, x: Any) -> Any:
            total = tf.reduce_sum(x)
            context.set_last_step_output("sum", total, SUM)
            context.set_last_step_output("own", total)
            context.set_non_tensor_output("kind", "replica")
            return total

        def step(context: Any, x: Any) -> Any:
            totals = strategy.experimental_run_v2(replica, args=(context, x))
            context.set_last_step_output("again", strategy.reduce(SUM, totals, axis=None), SUM)
            context.set_non_tensor_output("name", "step")
            return count.assign_add(1.0)

        zero = tf.constant(0, tf.int64)
        first = {"sum": zero, "again": zero, "own": [zero] * len(devices)}
        steps = strategy.extended.experimental_run_steps_on_iterator(step, iterator, 3, first)
        assert steps.non_tensor_outputs == {"kind": ["replica"], "name": "step"}
        with tf.Session(config=CONFIG) as session:
            session.run([iterator.initialize(), tf.global_variables_initializer()])
            for total in (9, 21):
                _, found = session.run([steps.run_op, steps.last_step_outputs])
                assert (found["sum"], found["again"]) == (total, total)
                assert sum(found["own"] if len(devices) > 1 else [found["own"]]) == total
            assert session.run(strategy.experimental_local_results(count)[0]) == 6
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(steps.run_op)
