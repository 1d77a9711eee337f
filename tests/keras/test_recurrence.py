"""`K.rnn` of a step that sums up; the numbers are those of TensorFlow 1.15.5."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.keras.recurrence import rnn

pytestmark = pytest.mark.usefixtures("graph")

INPUTS = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
MASK = np.array([[1, 0, 1], [1, 1, 0]], bool)


def add(x: Any, states: Any) -> Any:
    return x + states[0], [x + states[0]]


def run(**options: Any) -> list[Any]:
    time_major = options.get("time_major", False)
    inputs = INPUTS.transpose(1, 0, 2) if time_major else INPUTS
    dims = [None, None, 2] if options.pop("unknown_sizes", False) else list(inputs.shape)
    x = tf.placeholder(tf.float32, dims)
    last, outputs, states = rnn(add, x, [tf.zeros([2, 2])], **options)
    assert last.shape.as_list() == [dims[0] if not time_major else 2, 2] or None in dims
    with tf.Session() as session:
        values = session.run([last, outputs, states[0]], {x: inputs})
    return [value.tolist() for value in values]


FORWARDS = [[[0, 1], [2, 4], [6, 9]], [[6, 7], [14, 16], [24, 27]]]
BACKWARDS = [[[4, 5], [6, 8], [6, 9]], [[10, 11], [18, 20], [24, 27]]]
MASKED = [[[0, 1], [0, 1], [4, 6]], [[6, 7], [14, 16], [14, 16]]]
ZEROS = [[[0, 1], [0, 0], [4, 6]], [[6, 7], [14, 16], [0, 0]]]
MASKED_BACKWARDS = [[[4, 5], [4, 5], [4, 6]], [[0, 0], [8, 9], [14, 16]]]


@pytest.mark.parametrize("unroll", [False, True])
@pytest.mark.parametrize(
    "options, outputs",
    [
        ({}, FORWARDS),
        ({"go_backwards": True}, BACKWARDS),
        ({"mask": MASK}, MASKED),
        ({"mask": MASK[:, :, None]}, MASKED),
        ({"mask": MASK, "zero_output_for_mask": True}, ZEROS),
        ({"mask": MASK, "go_backwards": True}, MASKED_BACKWARDS),
    ],
)
def test_outputs(unroll: bool, options: Any, outputs: Any) -> None:
    last, found, state = run(unroll=unroll, **options)
    assert found == outputs
    assert last == [sample[-1] for sample in outputs]
    assert state == ([[4, 6], [14, 16]] if "mask" in options else [[6, 9], [24, 27]])


def test_sizes_may_be_unknown() -> None:
    assert run(unknown_sizes=True)[1] == FORWARDS
    with pytest.raises(ValueError, match="fixed number"):
        run(unknown_sizes=True, unroll=True)


def test_time_may_come_first_and_end_early() -> None:
    assert run(time_major=True)[1] == np.transpose(FORWARDS, [1, 0, 2]).tolist()
    last, outputs, state = run(input_length=2)
    assert outputs == [[[0, 1], [2, 4], [0, 0]], [[6, 7], [14, 16], [0, 0]]]
    assert (last, state) == ([[0, 0], [0, 0]], [[2, 4], [14, 16]])
