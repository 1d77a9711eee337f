"""Programs that step the cells of `tf.contrib.rnn` that run along frequency."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.contrib.recurrent_programs import flat

B, U = 3, 2
X = np.random.RandomState(4).randn(2, B, 6).astype("f")


def steps(make: Callable[[Any], Any], state_size: int | None = None) -> Callable[[Any], Any]:
    def program(tf: Any) -> Any:
        cell, outputs = make(tf.contrib.rnn), []
        state = cell.zero_state(B, tf.float32) if state_size is None else tf.zeros([B, state_size])
        for step in range(2):
            if step == 1:
                tf.get_variable_scope().reuse_variables()
            output, state = cell(tf.constant(X[step]), state)
            outputs.append(output)
        fetches = [outputs, state]
        return "gradients", (tf.add_n([tf.reduce_sum(each * each) for each in flat(fetches)]), fetches)

    return program


def grid(**arguments: Any) -> Callable[[Any], Any]:
    return steps(lambda rnn: rnn.GridLSTMCell(U, frequency_skip=2, feature_size=2, **arguments))


def both(**arguments: Any) -> Callable[[Any], Any]:
    return steps(lambda rnn: rnn.BidirectionalGridLSTMCell(U, frequency_skip=2, feature_size=2, **arguments))


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "time": steps(lambda rnn: rnn.TimeFreqLSTMCell(U, feature_size=2, frequency_skip=2), 12),
    "time2": steps(
        lambda rnn: rnn.TimeFreqLSTMCell(
            U, use_peepholes=True, cell_clip=0.3, feature_size=4, num_unit_shards=3, forget_bias=0.5
        ),
        12,
    ),
    "grid": grid(num_frequency_blocks=[3]),
    "grid2": grid(num_frequency_blocks=[3], use_peepholes=True, cell_clip=0.3, state_is_tuple=False),
    "grid3": grid(
        num_frequency_blocks=[1, 2],
        start_freqindex_list=[0, 2],
        end_freqindex_list=[2, 6],
        use_peepholes=True,
        share_time_frequency_weights=True,
        num_unit_shards=2,
    ),
    "grid4": grid(num_frequency_blocks=[3], use_peepholes=True, couple_input_forget_gates=True),
    "both": both(num_frequency_blocks=[3], use_peepholes=True),
    "both2": both(num_frequency_blocks=[3], share_time_frequency_weights=True, backward_slice_offset=1),
    "both3": both(num_frequency_blocks=[3], backward_slice_offset=-1, couple_input_forget_gates=True),
}
