"""The cells of `tf.contrib.grid_rnn` against TensorFlow 1.15's variables and values."""

from __future__ import annotations

import pytest
from tests.contrib import recurrent_programs
from tests.contrib.grid_rnn.grid_programs import PROGRAMS

import flowstone as tf

grid_rnn = tf.contrib.grid_rnn


@pytest.fixture(autouse=True)
def _new_graph() -> None:
    tf.reset_default_graph()


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_tensorflow(name: str) -> None:
    recurrent_programs.check(tf, "grid_rnn", name, PROGRAMS[name])


def test_a_dimension_without_a_state_is_a_layer() -> None:
    cell = grid_rnn.Grid2LSTMCell(2, non_recurrent_fn=tf.nn.relu)
    output, state = cell(tf.ones([3, 4]), cell.zero_state(3, tf.float32))
    assert cell.state_size == (tf.nn.rnn_cell.LSTMStateTuple(2, 2),)
    assert len(state) == len(output) == 1
    assert output[0].op.type == "Relu"
    names = [variable.op.name for variable in tf.global_variables()]
    assert "Grid2LSTMCell/non_recurrent/fully_connected/weights" in names
    assert "Grid2LSTMCell/recurrent/cell_1/lstm_cell/kernel" in names


def test_states_of_any_cell_can_be_one_tensor() -> None:
    cell = grid_rnn.GridRNNCell(2, 2, input_dims=0, output_dims=1, state_is_tuple=False)
    output, state = tf.nn.dynamic_rnn(cell, tf.ones([3, 5, 4]), dtype=tf.float32)
    assert cell.state_size == 8
    assert state.shape.as_list() == [3, 8]
    assert [each.shape.as_list() for each in output] == [[3, 5, 2]]


def test_the_modules_within_have_their_neighbours() -> None:
    cells = grid_rnn.python.ops.grid_rnn_cell
    assert cells.rnn is tf.contrib.rnn
    assert cells.GridRNNCell is grid_rnn.GridRNNCell
    assert grid_rnn.layers.feature_column.lookup is tf.contrib.lookup
    assert grid_rnn.layers.feature_column.layers.conv2d is tf.contrib.layers.conv2d


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: grid_rnn.GridRNNCell(2, 0), "dims must be >= 1"),
        (lambda: grid_rnn.GridRNNCell(2, 2, input_dims=[2]), "Invalid dims"),
        (lambda: grid_rnn.Grid1LSTMCell(2)(tf.ones([3, 2]), ()), "Expected state"),
        (
            lambda: grid_rnn.Grid1BasicRNNCell(2)(tf.placeholder(tf.float32, [3, None]), (tf.zeros([3, 2]),)),
            "Could not infer",
        ),
    ],
)
def test_what_is_refused(make: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()  # type: ignore[operator]
