"""Which containers programs have, and of what elements."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.rewriting.simplification.constant_folding import apply_identities, fold_constants
from small_loops import PROGRAMS
from three_ways import assert_equal_three_ways, programs


def test_elements_of_one_array_are_of_one_shape() -> None:
    x = tf.placeholder(tf.float32, [3])
    array = tf.TensorArray(tf.float32, 3, infer_shape=False)
    array = tf.while_loop(
        lambda i, _: i < 1, lambda i, t: (i + 1, t.write(0, x).write(1, x[:2])), [0, array]
    )[1]
    found, _, log = programs([F.TensorArraySizeV3(array.handle, array.flow)], [x])
    assert not found and "elements of a container differ" in str(log)


def test_programs_of_containers_say_so() -> None:
    with tf.Graph().as_default():
        fetches, feed = PROGRAMS["an_array_that_a_loop_fills"]()
        (program,) = programs(fetches, list(feed), [fold_constants, apply_identities])[0]
    assert {each.kind for each in program.containers} >= {"array"}
    assert "container 0: array of float32[2]" in str(program)


def test_gradients_for_rows_whose_shape_the_gradient_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [5, 3])
    rows = tf.gather(tf.square(x), [4, 0, 2])
    sums = tf.scan(lambda a, row: tf.tanh(a + row), rows, initializer=tf.zeros([3]))
    (flow,) = tf.gradients(tf.reduce_logsumexp(sums[-1]), rows)
    assert_equal_three_ways(monkeypatch, [sums, flow], {x: np.random.RandomState(0).rand(5, 3)})
