"""Steps end with their session, whenever they begin."""

from __future__ import annotations

import pytest

import flowstone as tf
from flowstone.client.steps import Steps
from flowstone.runtime.code.tracing import Trace, TracedStep


def test_steps_under_way_are_counted_as_long_as_somebody_has_them():
    steps = Steps()
    first, second = steps.new(), steps.new()
    assert len(steps) == 2 and set(steps) == {first, second}
    del first
    assert list(steps) == [second]


def test_the_end_cancels_all_and_what_begins_later():
    steps = Steps()
    before = steps.new()
    assert before.error is None
    steps.end()
    for step in (before, steps.new()):
        with pytest.raises(tf.errors.CancelledError, match="Session has been closed"):
            step.check()


def test_a_step_with_a_trace_is_traced():
    trace = Trace()
    step = Steps().new(trace=trace)
    assert isinstance(step, TracedStep) and step.trace is trace


def test_what_a_configuration_says_of_steps():
    config = tf.ConfigProto(operation_timeout_in_ms=70, intra_op_parallelism_threads=3)
    for threads in (1, 2):
        config.session_inter_op_thread_pool.add(num_threads=threads)
    steps = Steps(config)
    assert (steps.timeout_ms, steps.intra_op_threads, steps.thread_pools) == (70, 3, 2)
    assert (Steps().timeout_ms, Steps().intra_op_threads, Steps().thread_pools) == (0, 0, 1)
    assert Steps(tf.ConfigProto(intra_op_parallelism_threads=-1)).intra_op_threads == 0
