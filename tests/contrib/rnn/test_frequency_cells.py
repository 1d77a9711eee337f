"""The cells of `tf.contrib.rnn` that run along frequency against TensorFlow 1.15's variables and values."""

from __future__ import annotations

import pytest
from tests.contrib import recurrent_programs
from tests.contrib.rnn.frequency_programs import PROGRAMS

import flowstone as tf

rnn = tf.contrib.rnn


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_tensorflow(name: str) -> None:
    recurrent_programs.check(tf, "frequency", name, PROGRAMS[name])


def test_states_are_named_by_band_and_block() -> None:
    cell = rnn.GridLSTMCell(2, num_frequency_blocks=[1, 2])
    assert cell.state_tuple_type._fields[:4] == (
        "state_f00_b00_c",
        "state_f00_b00_m",
        "state_f00_b01_c",
        "state_f00_b01_m",
    )
    assert cell.output_size == 12
    both = rnn.BidirectionalGridLSTMCell(2, num_frequency_blocks=[1])
    assert both.state_size._fields[2] == "bwd_state_f00_b00_c"
    assert both.output_size == 8


def test_blocks_must_fit_the_inputs() -> None:
    with pytest.raises(ValueError, match="Must specify num_frequency_blocks"):
        rnn.GridLSTMCell(2)
    cell = rnn.GridLSTMCell(2, num_frequency_blocks=[3], feature_size=2, frequency_skip=2)
    with pytest.raises(ValueError, match="requires 3 but gets 2"):
        cell(tf.ones([3, 4]), cell.zero_state(3, tf.float32))
    cell = rnn.GridLSTMCell(2, num_frequency_blocks=[1, 1], feature_size=2, frequency_skip=2)
    with pytest.raises(ValueError, match="Length of num_frequency_blocks"):
        cell(tf.ones([3, 4]), cell.zero_state(3, tf.float32))
