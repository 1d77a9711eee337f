"""Which containers programs have, and of what elements."""

from __future__ import annotations

from typing import Any

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


def nested(x: Any) -> dict[str, Any]:
    """Results of loops that make arrays in each iteration."""

    def of_growing_size(i: Any, a: Any) -> Any:
        array = tf.TensorArray(tf.float32, i + 1)
        write = tf.while_loop(
            lambda j, _: j <= i, lambda j, t: (j + 1, t.write(j, a / (a[0] + 1.0))), [0, array]
        )
        return i + 1, a + write[1].read(i)

    def of_every_other(i: Any, a: Any) -> Any:
        return i + 1, tf.cond(i % 2 > 0, lambda: tf.map_fn(lambda e: e * a[0], a), lambda: a * 0.5)

    return {
        "map": tf.map_fn(lambda row: tf.map_fn(lambda e: tf.sin(e) * row[1], row), x),
        "scan": tf.scan(lambda a, row: tf.foldl(lambda s, e: s * 0.5 + e, a) * row, x),
        "three": tf.map_fn(lambda r: tf.map_fn(lambda e: tf.foldr(lambda s, f: s * e + f, r), r), x),
        "cond": tf.while_loop(lambda i, _: i < 5, of_every_other, [0, x[0]])[1],
        "growing": tf.while_loop(lambda i, _: i < 4, of_growing_size, [0, x[0]])[1],
        "sizes": tf.map_fn(
            lambda r: r * tf.cast(tf.TensorArray(tf.float32, 3).unstack(r).size(), tf.float32), x
        ),
    }


@pytest.mark.parametrize("name", ["map", "scan", "three", "cond", "growing", "sizes"])
def test_arrays_that_each_iteration_makes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [4, 3])
    y = nested(x)[name]
    gradients = [] if name == "growing" else tf.gradients(y, x)
    assert_equal_three_ways(monkeypatch, [y, *gradients], {x: np.random.RandomState(0).rand(4, 3)})


def test_gradients_by_arrays_of_different_sizes_stay_outside() -> None:
    x = tf.placeholder(tf.float32, [4, 3])
    found, _, log = programs(tf.gradients(nested(x)["growing"], x), [x])
    assert not found and "not compiled" in str(log)


def test_rows_that_are_taken_twice_are_added_to_in_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [4, 3])
    array = tf.TensorArray(tf.float32, 4, clear_after_read=False).unstack(x)
    y = tf.while_loop(
        lambda i, _: i < 5, lambda i, a: (i + 1, a + tf.reduce_sum(array.gather([i % 4, 1, 1]), 0)), [0, x[0]]
    )[1]
    assert_equal_three_ways(monkeypatch, [y, tf.gradients(y, x)[0]], {x: np.random.RandomState(0).rand(4, 3)})
