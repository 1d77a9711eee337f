"""`K.function`; the numbers are those of TensorFlow 1.15.5."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.keras import foundation as K

pytestmark = pytest.mark.usefixtures("graph")


def test_updates_run_after_the_outputs() -> None:
    counter = K.variable(1.0)
    x = K.placeholder(())
    step = K.function([x], [counter * x], [(counter, counter + 1)])
    assert [step([2.0]), step([2.0]), step(3.0)] == [[2], [4], [9]]


def test_outputs_come_in_the_form_of_the_fetches() -> None:
    x = K.placeholder((2,))
    result = K.function([x], {"twice": 2 * x})([np.array([1.0, 2.0])])
    np.testing.assert_array_equal(result["twice"], [2, 4])


def test_tensors_are_computed_before_they_are_fed() -> None:
    x = K.placeholder((2,))
    (value,) = K.function([x], [x + 1])([tf.constant([3.0, 4.0])])
    np.testing.assert_array_equal(value, [4, 5])


def test_further_fetches_feeds_and_options() -> None:
    x, y = K.placeholder(()), K.placeholder(())
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    seen: list[Any] = []
    step = K.function(
        [x], [x * y], feed_dict={y: 5.0}, fetches=[x + y], options=options, run_metadata=metadata
    )
    step.fetch_callbacks[step.fetches[0]] = seen.append
    assert step([2.0]) == [10.0]
    assert seen == [7.0]
    assert len(metadata.step_stats.dev_stats) > 0


def test_bad_arguments() -> None:
    with pytest.raises(TypeError, match="list or tuple"):
        K.function([], [], 3)
    with pytest.raises(ValueError, match="Invalid argument 'feeds'"):
        K.function([], [tf.constant(1)], feeds={})
