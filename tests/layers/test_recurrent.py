"""Recurrences give TensorFlow's values, gradients, shapes, variables and nodes, and refuse what it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.layers import recurrences

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

GOLDEN = Path(__file__).parents[1] / "golden" / "layers"
VALUES = np.load(GOLDEN / "recurrences.npz")
CELL = tf.nn.rnn_cell


def golden_lines() -> dict[str, list[str]]:
    text = (GOLDEN / "recurrences.txt").read_text(encoding="utf-8")
    sections = [section.strip().split("\n") for section in text.split("# ")[1:]]
    return {lines[0]: lines[1:] for lines in sections}


LINES = golden_lines()


def is_about_shapes(line: str) -> bool:
    return line.startswith(("shapes ", "variable "))


def test_every_program_has_its_goldens() -> None:
    assert list(LINES) == list(VALUES.files) == list(recurrences.PROGRAMS)


@pytest.mark.parametrize("name", recurrences.PROGRAMS)
def test_values_and_gradients(name: str) -> None:
    expected, start = VALUES[name], 0
    found = recurrences.run(tf, name)
    assert sum(value.size for value in found.values()) == expected.size
    for key, value in found.items():
        golden = expected[start : start + value.size].reshape(value.shape)
        start += value.size
        np.testing.assert_allclose(value, golden, rtol=2e-5, atol=2e-5, err_msg=key)


@pytest.mark.parametrize("name", recurrences.PROGRAMS)
def test_static_shapes_and_variables(name: str) -> None:
    assert recurrences.shape_lines(tf, name) == [line for line in LINES[name] if is_about_shapes(line)]


@pytest.mark.parametrize("name", recurrences.NAMED)
def test_nodes(name: str) -> None:
    assert recurrences.node_lines(tf, name) == [line for line in LINES[name] if not is_about_shapes(line)]


def matrix(rows: int | None = 2, columns: int | None = 4, dtype: Any = tf.float32) -> tf.Tensor:
    return tf.placeholder(dtype, [rows, columns])


def sequences(*shape: int | None) -> tf.Tensor:
    return tf.placeholder(tf.float32, shape or (2, 3, 4))


# ---- what lists of inputs must be


def static(inputs: Any, cell: Any = None, **arguments: Any) -> Any:
    return tf.nn.static_rnn(CELL.GRUCell(3) if cell is None else cell, inputs, **arguments)


def test_static_needs_a_cell_and_a_list() -> None:
    with pytest.raises(TypeError, match=r"The argument 'cell' \(3\) is not an RNNCell: 'output_size'"):
        static([matrix()], cell=3, dtype=tf.float32)
    with pytest.raises(TypeError, match="Argument `inputs` must be a sequence"):
        static(matrix(), dtype=tf.float32)
    with pytest.raises(ValueError, match="Argument `inputs` must not be empty"):
        static([], dtype=tf.float32)
    with pytest.raises(ValueError, match="If no initial_state is provided, argument `dtype` must be"):
        static([matrix()])


def test_static_needs_sizes_that_agree() -> None:
    with pytest.raises(ValueError, match=r"Input size \(dimension 0 of input .* must be accessible"):
        static([matrix(2, None)], dtype=tf.float32)
    with pytest.raises(ValueError, match="Dimensions 2 and 3 are not compatible"):
        static([matrix(), matrix(3)], dtype=tf.float32)
    with pytest.raises(ValueError, match=r"Shape \(\) must have rank at least 2"):
        static([tf.placeholder(tf.float32, [])], dtype=tf.float32)
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 8 and 7"):
        static([matrix(), matrix(2, 5)], dtype=tf.float32)


@pytest.mark.parametrize("lengths", [3, [[1, 1]]])
def test_static_lengths_are_a_vector(lengths: Any) -> None:
    with pytest.raises(ValueError, match=r"`sequence_length` must be a vector of length 2. Received"):
        static([matrix()], dtype=tf.float32, sequence_length=lengths)


def test_static_does_not_compute_what_no_sequence_reaches() -> None:
    runs: list[int] = []

    class Counting(CELL.RNNCell):
        state_size = 1
        output_size = 1

        def call(self, inputs, state):
            counted = tf.py_func(lambda x: (runs.append(1), x)[1], [inputs], tf.float32)
            counted.set_shape([2, 1])
            return counted, state + counted

    outputs, state = static(
        [tf.ones([2, 1])] * 4, Counting(), dtype=tf.float32, sequence_length=tf.constant([2, 1])
    )
    values, last = tf.Session().run([outputs, state])
    assert np.ravel(values).tolist() == [1, 1, 1, 0, 0, 0, 0, 0] and last.tolist() == [[2], [1]]
    assert len(runs) == 2


def test_state_names_are_structured_as_the_state() -> None:
    with pytest.raises(ValueError, match=r"`state_name` should be the same type as `cell.state_size`"):
        tf.nn.static_state_saving_rnn(CELL.GRUCell(3), [matrix()], None, ("a", "b"))
    with pytest.raises(ValueError, match=r"`state_name` should be the same type as `cell.state_size`"):
        tf.nn.static_state_saving_rnn(CELL.BasicLSTMCell(3), [matrix()], None, "a")
    with pytest.raises(ValueError, match="Number of elements in argument `state_name`"):
        tf.nn.static_state_saving_rnn(CELL.BasicLSTMCell(3), [matrix()], None, ("a",))


def test_the_last_output_waits_for_the_saved_state() -> None:
    saved: list[float] = []

    class Saver:
        def state(self, name):
            return tf.zeros([2, 3])

        def save_state(self, name, value):
            return tf.py_func(lambda x: (saved.append(name), x)[1], [value], tf.float32)

    outputs, _ = tf.nn.static_state_saving_rnn(CELL.GRUCell(3), [tf.ones([2, 4])] * 2, Saver(), "s")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(outputs[0])
        assert saved == []
        session.run(outputs[1])
        assert saved == ["s"]


@pytest.mark.parametrize("name", ["static_bidirectional_rnn", "bidirectional_dynamic_rnn"])
def test_both_cells_are_checked(name: str) -> None:
    run = getattr(tf.nn, name)
    for cells, wrong in (((3, CELL.GRUCell(3)), "cell_fw"), ((CELL.GRUCell(3), 3), "cell_bw")):
        with pytest.raises(TypeError, match=rf"The argument '{wrong}' \(3\) is not an RNNCell"):
            run(*cells, [matrix()], dtype=tf.float32)


# ---- what tensors of inputs must be


def dynamic(inputs: Any, cell: Any = None, **arguments: Any) -> Any:
    return tf.nn.dynamic_rnn(CELL.GRUCell(3) if cell is None else cell, inputs, **arguments)


def test_dynamic_needs_a_cell_and_a_type() -> None:
    with pytest.raises(TypeError, match=r"The argument 'cell' \(3\) is not an RNNCell"):
        dynamic(sequences(), cell=3, dtype=tf.float32)
    with pytest.raises(ValueError, match="If no initial_state is provided, argument `dtype` must be"):
        dynamic(sequences())


def test_dynamic_needs_a_rank() -> None:
    for time_major, shown in ((False, "(4, 2)"), (True, "(2, 4)")):
        with pytest.raises(ValueError, match=rf"Shape \({shown[1:-1]}\) must have rank at least 3"):
            dynamic(matrix(), dtype=tf.float32, time_major=time_major)
    with pytest.raises(ValueError, match=r"Input tensor should have rank >= 2. Received input=.* of rank 1"):
        dynamic(tf.placeholder(tf.float32, [3]), dtype=tf.float32)


def test_dynamic_needs_sizes_that_agree() -> None:
    with pytest.raises(ValueError, match=r"Input size \(depth of inputs\) must be accessible"):
        dynamic(sequences(2, 3, None), dtype=tf.float32)
    with pytest.raises(ValueError, match=r"Batch_size is not the same for all .* batch size=3"):
        dynamic((sequences(), sequences(3, 3, 4)), dtype=tf.float32)
    with pytest.raises(ValueError, match=r"Time steps is not the same for all .* time steps=4"):
        dynamic((sequences(), sequences(2, 4, 4)), dtype=tf.float32)


@pytest.mark.parametrize("lengths", [3, [[1, 2]]])
def test_dynamic_lengths_are_a_vector(lengths: Any) -> None:
    with pytest.raises(ValueError, match="Argument sequence_length must be a vector of length batch_size"):
        dynamic(sequences(), dtype=tf.float32, sequence_length=lengths)


def test_a_wrong_number_of_lengths_fails_the_step() -> None:
    lengths = tf.placeholder_with_default([1, 2, 3], [None])
    outputs, _ = dynamic(tf.ones([2, 3, 4]), sequence_length=lengths, dtype=tf.float32)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="Expected shape for Tensor rnn/seq"):
            session.run(outputs)
        assert not session.run(outputs, {lengths: [3, 0]})[1].any()


def test_states_of_several_types_leave_the_outputs_type_open() -> None:
    class Cell(CELL.RNNCell):
        state_size = (1, 1)
        output_size = 1

        def call(self, inputs, state):
            return inputs, state

    state = (tf.zeros([2, 1]), tf.zeros([2, 1], tf.float64))
    with pytest.raises(ValueError, match="State has tensors of different inferred dtypes"):
        dynamic(sequences(2, 3, 1), Cell(), initial_state=state)


def test_a_cell_with_another_state_is_refused() -> None:
    class Cell(CELL.RNNCell):
        state_size = 1
        output_size = 1

        def call(self, inputs, state):
            return inputs, (state, state)

    with pytest.raises(ValueError, match="don't have the same nested structure"):
        dynamic(sequences(2, 3, 1), Cell(), dtype=tf.float32, sequence_length=[1, 2])


def test_a_step_runs_as_long_as_the_longest_sequence() -> None:
    x, lengths = tf.placeholder(tf.float32, [None, None, 1]), tf.placeholder(tf.int32, [None])

    class Sum(CELL.RNNCell):
        state_size = 1
        output_size = 1

        def call(self, inputs, state):
            return state + inputs, state + inputs

    outputs, state = dynamic(x, Sum(), sequence_length=lengths, dtype=tf.float32)
    assert outputs.shape.as_list() == [None, None, 1]
    with tf.Session() as session:
        for times in (1, 4, 7):
            feeds = {x: np.ones([3, times, 1]), lengths: [0, 1, times]}
            sums, last = session.run([outputs, state], feeds)
            assert sums[2, :, 0].tolist() == list(range(1, times + 1))
            assert sums[0].sum() == 0 and sums[1].sum() == 1 and last.ravel().tolist() == [0, 1, times]


def test_variables_of_dynamic_and_static_are_the_same() -> None:
    x = tf.constant(np.random.RandomState(0).randn(2, 3, 4).astype("f"))
    loop, _ = dynamic(x, CELL.LSTMCell(5, num_proj=3), dtype=tf.float32, scope="s")
    with tf.variable_scope("s", reuse=True) as scope:
        cell = CELL.LSTMCell(5, num_proj=3)
        unrolled, _ = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32, scope=scope)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        a, b = session.run([loop, tf.stack(unrolled, axis=1)])
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    assert len(tf.global_variables()) == 3


def test_variables_are_read_where_the_recurrence_runs(graph) -> None:
    with tf.device("/cpu:0"):
        dynamic(sequences(), dtype=tf.float32)
    kernel = graph.get_operation_by_name("rnn/gru_cell/gates/kernel/read")
    assert kernel.colocation_groups() == [b"loc:@rnn/gru_cell/gates/kernel/read"] and kernel.device


# ---- raw_rnn


def test_raw_needs_a_cell_and_a_function() -> None:
    with pytest.raises(TypeError, match=r"The argument 'cell' \(3\) is not an RNNCell"):
        tf.nn.raw_rnn(3, lambda *_: None)
    with pytest.raises(TypeError, match=r"Argument `loop_fn` must be a callable. Received: 3"):
        tf.nn.raw_rnn(CELL.GRUCell(3), 3)


def test_raw_checks_the_state_of_the_first_call() -> None:
    def loop_fn(time, output, state, loop_state):
        return tf.constant([True]), tf.zeros([1, 4]), tf.zeros([1, 3]), output, None

    with pytest.raises(ValueError, match="don't have the same nested structure"):
        tf.nn.raw_rnn(CELL.BasicLSTMCell(3), loop_fn)


# ---- losses of variables made in loops and branches


@pytest.mark.parametrize("lengths", [None, [1, 3]])
def test_regularizers_are_outside_the_recurrence(lengths: Any) -> None:
    with tf.variable_scope("s", regularizer=tf.nn.l2_loss, initializer=tf.ones_initializer()):
        dynamic(sequences(), dtype=tf.float32, sequence_length=lengths)
        static([matrix()] * 2, dtype=tf.float32, sequence_length=lengths, scope="other")
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(losses) == [21.0, 3.0, 10.5, 0.0] * 2
