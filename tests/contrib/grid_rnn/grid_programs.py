"""Programs that step the cells of `tf.contrib.grid_rnn`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.contrib.recurrent_programs import flat

B, U = 3, 2
X = np.random.RandomState(3).randn(2, B, 4).astype("f")


def steps(make: Callable[[Any], Any], inputs: bool = True) -> Callable[[Any], Any]:
    def program(tf: Any) -> Any:
        cell, outputs = make(tf), []
        state = cell.zero_state(B, tf.float32)
        for step in range(2):
            if step == 1:
                tf.get_variable_scope().reuse_variables()
            output, state = cell(tf.constant(X[step]) if inputs else None, state)
            outputs.append(output)
        fetches = [outputs, state]
        return "gradients", (tf.add_n([tf.reduce_sum(each * each) for each in flat(fetches)]), fetches)

    return program


def grid(name: str, **arguments: Any) -> Callable[[Any], Any]:
    return steps(lambda tf: getattr(tf.contrib.grid_rnn, name)(U, **arguments))


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "one": grid("Grid1BasicRNNCell"),
    "one_lstm": grid("Grid1LSTMCell", use_peepholes=True, forget_bias=0.5),
    "one_basic_lstm": grid("Grid1BasicLSTMCell", state_is_tuple=False),
    "two": grid("Grid2BasicRNNCell"),
    "two_tied": grid("Grid2BasicRNNCell", tied=True, output_is_tuple=False),
    "two_basic_lstm": grid("Grid2BasicLSTMCell", forget_bias=2.0),
    "two_lstm": grid("Grid2LSTMCell", tied=True),
    "two_gru": grid("Grid2GRUCell"),
    "three_lstm": grid("Grid3LSTMCell", tied=True, use_peepholes=True),
    "three_lstm2": grid("Grid3LSTMCell"),
    "any": grid("GridRNNCell", num_dims=3, input_dims=[0, 1], output_dims=[1, 2], priority_dims=[2]),
    "any2": steps(
        lambda tf: tf.contrib.grid_rnn.GridRNNCell(
            U, 2, input_dims=1, output_dims=[0, 1], cell_fn=tf.nn.rnn_cell.GRUCell, output_is_tuple=False
        )
    ),
}
