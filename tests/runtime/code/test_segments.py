"""Segments: the text of generated code, and what it decides about memory and devices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.framework.declarations.kernel import Environment
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.code.segments import compile_segment
from flowstone.runtime.steps.step import UNLIMITED, Step

pytestmark = pytest.mark.usefixtures("graph")


def segment_of(fetches, feeds, watched=False, targets=()):
    environment = Environment(resources=ResourceStore())
    return compile_segment(prune(fetches, list(targets), feeds), environment, watched)


def code(segment):
    return [line.strip() for line in segment.source.strip().splitlines()]


def test_a_line_a_node_and_release_at_last_use():
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.maximum(x, x)
    z = tf.minimum(y, x)
    assert code(segment_of([z], [x])) == [
        "def segment(step, a0):",
        "v1 = maximum(a0, a0)",
        "v2 = minimum(v1, a0); del v1, a0",
        "f0 = v2",
        "return (f0,)",
    ]


def test_a_dead_intermediate_is_overwritten_but_never_a_feed_constant_or_fetch():
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.add(x, x)  # a feed: not overwritten
    z = tf.add(y, x)  # y is dead: overwritten
    assert code(segment_of([z], [x]))[1:3] == ["v1 = add(a0, a0)", "v2 = add_(v1, a0); del v1, a0"]
    assert "add_" not in segment_of([y, z], [x]).source  # y is fetched
    c = tf.constant([1.0, 2.0])
    assert "add_" not in segment_of([tf.add(c, x)], [x]).source
    view = tf.reshape(y, [1, 2])
    assert "add_" not in segment_of([tf.add(y, x), view], [x]).source  # shared with a fetched view


def test_broadcasting_never_overwrites_a_smaller_input():
    x = tf.placeholder(tf.float32, [1, 2])
    y = tf.placeholder(tf.float32, [3, 1])
    wide = tf.add(tf.square(x), y)
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(wide, {x: [[1, 2]], y: [[0], [1], [2]]})[2], [3, 6])
    assert "add_" not in segment_of([wide], [x, y]).source


def test_reference_reads_are_aliases_and_resource_reads_are_values():
    for use_resource, expected in ((False, 5.0), (True, 1.0)):
        v = tf.Variable(1.0, use_resource=use_resource)
        read = tf.identity(v.value())
        with tf.control_dependencies([read]):
            update = v.assign(5.0)
        with tf.Session() as session:
            session.run(v.initializer)
            value, _ = session.run([read, update])
            assert value == expected, use_resource


def test_a_view_of_state_is_copied_when_the_state_changes_under_it():
    v = tf.Variable([1.0, 2.0, 3.0])
    part = v[1:]
    with tf.control_dependencies([part]):
        update = tf.assign(v, [7.0, 8.0, 9.0])
    with tf.control_dependencies([update]):
        late = part * 1.0
    with tf.Session() as session:
        session.run(v.initializer)
        np.testing.assert_array_equal(session.run(late), [2, 3])


def test_watched_code_checks_the_step_before_every_node():
    x = tf.placeholder(tf.float32, [])
    segment = segment_of([x + 1.0], [x], watched=True)
    assert segment.source.count("step.check()") == 1
    expired = Step(timeout_ms=1)
    expired.deadline = 0.0
    with pytest.raises(tf.errors.DeadlineExceededError):
        segment.function(expired, torch.tensor(1.0))
    cancelled = Step()
    cancelled.cancel()
    with pytest.raises(tf.errors.CancelledError):
        segment.function(cancelled, torch.tensor(1.0))
    assert segment.function(UNLIMITED, torch.tensor(1.0))[0] == 2.0


def test_ten_thousand_nodes_in_a_row():
    x = y = tf.placeholder(tf.float32, [])
    for _ in range(10000):
        y = tf.negative(y)
    with tf.Session() as session:
        assert session.run(y, {x: 2.0}) == 2.0
