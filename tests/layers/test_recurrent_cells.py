"""Recurrent cells: names, sizes and zero states, dropout, wrappers, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

CELL = tf.nn.rnn_cell


def matrix(rows: int | None = 2, columns: int | None = 4, dtype: Any = tf.float32) -> tf.Tensor:
    return tf.placeholder(dtype, [rows, columns])


def called(cell: Any, inputs: Any = None, state: Any = None, **arguments: Any) -> Any:
    """The cell's step, from its zero state."""
    inputs = matrix() if inputs is None else inputs
    return cell(inputs, cell.zero_state(2, tf.float32) if state is None else state, **arguments)


def names(variables: Any) -> list[str]:
    return [variable.op.name for variable in variables]


# ---- names and variables


def test_a_cell_knows_its_names_and_variables() -> None:
    cell = CELL.BasicLSTMCell(5)
    assert (cell.name, cell.built, cell.variables, cell.dtype) == ("basic_lstm_cell_1", False, [], None)
    called(cell)
    assert (cell.name, cell.scope_name, cell.built) == ("basic_lstm_cell_1", "basic_lstm_cell", True)
    assert cell.dtype == "float32" and cell.count_params() == 9 * 20 + 20
    assert names(cell.trainable_weights) == ["basic_lstm_cell/kernel", "basic_lstm_cell/bias"]
    second = CELL.BasicLSTMCell(5)
    with tf.variable_scope("out"):
        called(second)
    assert (second.name, second.scope_name) == ("basic_lstm_cell_2", "out/basic_lstm_cell")


def test_a_name_is_taken_as_it_is() -> None:
    cell = CELL.GRUCell(3, name="mine")
    called(cell)
    assert cell.name == cell.scope_name == "mine" and names(cell.variables)[0] == "mine/gates/kernel"


def test_a_stack_has_the_variables_of_its_cells() -> None:
    cell = CELL.MultiRNNCell([CELL.GRUCell(3), CELL.BasicRNNCell(2)])
    called(cell)
    called(cell)
    assert names(cell.variables) == [
        f"multi_rnn_cell/cell_{part}"
        for part in (
            "0/gru_cell/gates/kernel",
            "0/gru_cell/gates/bias",
            "0/gru_cell/candidate/kernel",
            "0/gru_cell/candidate/bias",
            "1/basic_rnn_cell/kernel",
            "1/basic_rnn_cell/bias",
        )
    ]


def test_a_users_cell_has_the_variables_that_it_gets() -> None:
    class Cell(CELL.RNNCell):
        state_size = 3
        output_size = 3

        def call(self, inputs, state):
            kept = tf.get_variable("kept", [3], trainable=False)
            output = tf.matmul(inputs, tf.get_variable("w", [4, 3])) + kept
            return output, output

    cell = Cell()
    called(cell)
    called(cell)
    assert cell.scope_name == "cell"
    assert names(cell.trainable_variables) == ["cell/w"]
    assert names(cell.non_trainable_variables) == ["cell/kept"]


def test_reuse() -> None:
    with pytest.raises(ValueError, match="gru_cell/gates/kernel does not exist"):
        called(CELL.GRUCell(3, reuse=True))
    with tf.variable_scope("a"):
        first = CELL.GRUCell(3)
        called(first)
    with tf.variable_scope("a"), pytest.raises(ValueError, match="a/gru_cell/gates/kernel already exists"):
        called(CELL.GRUCell(3))
    with tf.variable_scope("a"):
        second = CELL.GRUCell(3, reuse=tf.AUTO_REUSE)
        called(second)
    assert second.variables == first.variables and len(tf.global_variables()) == 4


def test_variables_that_are_not_trainable() -> None:
    cell = CELL.GRUCell(3)
    cell.trainable = False
    called(cell)
    assert (cell.trainable_variables, len(cell.non_trainable_variables)) == ([], 4)
    assert tf.trainable_variables() == []


def test_the_scopes_regularizer_applies() -> None:
    with tf.variable_scope("s", regularizer=tf.nn.l2_loss):
        called(CELL.BasicRNNCell(3))
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 2


# ---- sizes and states


@pytest.mark.parametrize(
    ("cell", "state_size", "output_size"),
    [
        (lambda: CELL.BasicRNNCell(3), 3, 3),
        (lambda: CELL.GRUCell(3), 3, 3),
        (lambda: CELL.BasicLSTMCell(3), (3, 3), 3),
        (lambda: CELL.BasicLSTMCell(3, state_is_tuple=False), 6, 3),
        (lambda: CELL.LSTMCell(3, num_proj=2), (3, 2), 2),
        (lambda: CELL.LSTMCell(3, num_proj=2, state_is_tuple=False), 5, 2),
        (lambda: CELL.MultiRNNCell([CELL.GRUCell(2), CELL.LSTMCell(4)]), (2, (4, 4)), 4),
        (lambda: CELL.MultiRNNCell([CELL.GRUCell(2), CELL.GRUCell(4)], state_is_tuple=False), 6, 4),
        (lambda: CELL.DropoutWrapper(CELL.LSTMCell(3)), (3, 3), 3),
        (lambda: CELL.ResidualWrapper(CELL.GRUCell(3)), 3, 3),
        (lambda: CELL.DeviceWrapper(CELL.GRUCell(3), "/cpu:0"), 3, 3),
    ],
)
def test_sizes_and_zero_states(cell: Any, state_size: Any, output_size: int) -> None:
    made = cell()
    assert (made.state_size, made.output_size) == (state_size, output_size)

    def sizes(state):
        return tuple(map(sizes, state)) if isinstance(state, tuple) else state.shape.as_list()

    def with_batch(size, batch):
        return tuple(with_batch(s, batch) for s in size) if isinstance(size, tuple) else [batch, size]

    assert sizes(made.zero_state(2, tf.float64)) == with_batch(state_size, 2)
    assert sizes(made.zero_state(tf.placeholder(tf.int32, []), tf.float32)) == with_batch(state_size, None)


def test_zero_states_of_lists_of_sizes() -> None:
    class Cell(CELL.RNNCell):
        state_size = [tf.TensorShape([2, 3]), {"a": 1}]
        output_size = 1

    state = Cell().zero_state(tf.constant(5), tf.float32)
    first, second = tf.Session().run([state[0], state[1]["a"]])
    assert first.shape == (5, 2, 3) and second.shape == (5, 1) and not first.any()


def test_a_zero_state_needs_a_batch_size() -> None:
    with pytest.raises(ValueError, match=r"Prefix or suffix can't be None. Received prefix = None"):
        CELL.GRUCell(3).zero_state(None, tf.float32)


def test_initial_states() -> None:
    cell = CELL.GRUCell(3)
    assert cell.get_initial_state(batch_size=4, dtype=tf.float64).shape.as_list() == [4, 3]
    state = cell.get_initial_state(inputs=tf.zeros([2, 4], tf.float64))
    assert state.shape.as_list() == [2, 3] and state.dtype == tf.float64
    assert cell.get_initial_state(inputs=matrix(None)).shape.as_list() == [None, 3]
    with pytest.raises(ValueError, match="batch_size and dtype cannot be None while constructing"):
        cell.get_initial_state()
    with pytest.raises(ValueError, match="batch size from input tensor is different"):
        cell.get_initial_state(inputs=matrix(), batch_size=3)
    with pytest.raises(ValueError, match="dtype from input tensor doesn't match"):
        cell.get_initial_state(inputs=matrix(), dtype=tf.float64)


def test_state_tuples() -> None:
    state = CELL.LSTMStateTuple(tf.zeros([1]), tf.ones([1]))
    assert state.dtype == tf.float32 and (state.c, state.h) == tuple(state)
    with pytest.raises(TypeError, match="Inconsistent dtypes for internal state"):
        CELL.LSTMStateTuple(tf.zeros([1]), tf.zeros([1], tf.float64)).dtype  # noqa: B018


def test_the_base_has_no_sizes() -> None:
    for name in ("state_size", "output_size"):
        with pytest.raises(NotImplementedError, match="Abstract method"):
            getattr(CELL.RNNCell(), name)


# ---- what cells refuse

CELLS = [CELL.BasicRNNCell, CELL.GRUCell, CELL.BasicLSTMCell, CELL.LSTMCell]


@pytest.mark.parametrize("kind", CELLS)
def test_inputs_are_matrices_of_floats_with_a_known_depth(kind: Any) -> None:
    with pytest.raises(ValueError, match=r"Expected inputs.shape\[-1\] to be known, .* \(2, None\)"):
        called(kind(3), matrix(2, None))
    with pytest.raises(ValueError, match=r"expected ndim=2, found ndim=3. Full shape received:"):
        called(kind(3), tf.zeros([2, 3, 4]))
    with pytest.raises(ValueError, match=r"expected ndim=2, found ndim=1. Full shape received:"):
        called(kind(3), tf.zeros([4]))
    with pytest.raises(ValueError, match=r"only supports floating point inputs, .* <dtype: 'int32'>"):
        called(kind(3), tf.zeros([2, 4], tf.int32))


def test_states_must_fit() -> None:
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 8 and 7"):
        called(CELL.GRUCell(3), state=tf.zeros([2, 4]))
    with pytest.raises(TypeError):
        called(CELL.BasicLSTMCell(3), state=tf.zeros([2, 3]))
    with pytest.raises(TypeError, match=r"have types \[float32, float64\] that don't all match"):
        called(CELL.GRUCell(3), state=tf.zeros([2, 3], tf.float64))


def test_activations() -> None:
    for activation in ("relu", tf.nn.relu):
        assert called(CELL.BasicRNNCell(3, activation=activation))[0].op.type == "Relu"
    assert called(CELL.BasicRNNCell(3, activation="linear"))[0].op.type == "BiasAdd"
    with pytest.raises(ValueError, match="Unknown activation function: 'nope'"):
        CELL.GRUCell(3, activation="nope")
    with pytest.raises(TypeError, match="Could not interpret activation function identifier: 3"):
        CELL.LSTMCell(3, activation=3)


def test_unknown_keywords() -> None:
    with pytest.raises(TypeError, match=r"Keyword argument not understood:.*nonsense"):
        CELL.GRUCell(3, nonsense=3)


def test_what_a_stack_refuses() -> None:
    with pytest.raises(ValueError, match="Must specify at least one cell"):
        CELL.MultiRNNCell([])
    with pytest.raises(TypeError, match="cells must be a list or tuple, but received"):
        CELL.MultiRNNCell(CELL.GRUCell(3))
    with pytest.raises(ValueError, match=r"State sizes are: \[LSTMStateTuple\(c=3, h=3\)\]"):
        CELL.MultiRNNCell([CELL.BasicLSTMCell(3)], state_is_tuple=False)
    two = CELL.MultiRNNCell([CELL.GRUCell(3), CELL.GRUCell(3)])
    with pytest.raises(ValueError, match="Expected state to be a tuple of length 2, but received"):
        called(two, state=tf.zeros([2, 3]))
    with pytest.raises(IndexError, match="tuple index out of range"):
        called(two, state=(tf.zeros([2, 3]),))


@pytest.mark.parametrize(
    "wrap",
    [CELL.DropoutWrapper, CELL.ResidualWrapper, lambda cell: CELL.DeviceWrapper(cell, "/cpu:0")],
    ids=["dropout", "residual", "device"],
)
def test_wrappers_want_cells(wrap: Any) -> None:
    with pytest.raises(TypeError, match=r"The argument 'cell' \(3\) is not an RNNCell"):
        wrap(3)


# ---- wrappers


def test_residuals_must_have_the_inputs_shapes() -> None:
    with pytest.raises(ValueError, match=r"Shapes \(2, 4\) and \(2, 3\) are incompatible"):
        called(CELL.ResidualWrapper(CELL.GRUCell(3)))


def test_a_wrapper_leaves_the_variables_names_alone() -> None:
    cell = CELL.DeviceWrapper(CELL.ResidualWrapper(CELL.DropoutWrapper(CELL.GRUCell(4), 0.5)), "/cpu:0")
    output, _ = called(cell)
    assert names(tf.global_variables())[0] == "gru_cell/gates/kernel"
    assert output.device == "/device:CPU:0" and cell.variables == []
    assert isinstance(cell.wrapped_cell, CELL.ResidualWrapper)
    assert cell.zero_state(2, tf.float32).device == "/device:CPU:0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input_keep_prob": -0.1}, "input_keep_prob must be between 0 and 1. Received -0.10000000149011612"),
        ({"output_keep_prob": 1.1}, "output_keep_prob must be between 0 and 1. Received 1.1"),
        ({"state_keep_prob": 2}, "state_keep_prob must be between 0 and 1. Received 2"),
        ({"variational_recurrent": True}, "When variational_recurrent=True, dtype must be provided"),
        (
            {"variational_recurrent": True, "dtype": tf.float32, "input_keep_prob": 0.5},
            "input_size must be provided",
        ),
    ],
)
def test_what_dropout_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CELL.DropoutWrapper(CELL.GRUCell(3), **arguments)


def test_a_dropout_filter_is_a_function() -> None:
    with pytest.raises(TypeError, match=r"dropout_state_filter_visitor must be callable. Received: 3"):
        CELL.DropoutWrapper(CELL.GRUCell(3), dropout_state_filter_visitor=3)


class Echo(CELL.RNNCell):
    """Puts out its inputs; the new state is ones, in an LSTM's structure."""

    state_size = CELL.LSTMStateTuple(400, 400)
    output_size = 400

    def call(self, inputs, state):
        ones = tf.ones([2, 400])
        return inputs, CELL.LSTMStateTuple(ones, ones)


def echoed(**arguments: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    cell = CELL.DropoutWrapper(Echo(), seed=1, **arguments)
    output, state = cell(tf.ones([2, 400]), cell.zero_state(2, tf.float32))
    return tuple(tf.Session().run([output, state.c, state.h]))


@pytest.mark.parametrize("part", ["input", "output", "state"])
@pytest.mark.parametrize("keep_prob", [0.25, lambda: tf.placeholder_with_default(0.25, [])])
def test_dropout_scales_what_it_keeps(part: str, keep_prob: Any) -> None:
    output, c, h = echoed(**{f"{part}_keep_prob": keep_prob() if callable(keep_prob) else keep_prob})
    dropped, others = (h, [output, c]) if part == "state" else (output, [c, h])
    assert set(np.unique(dropped)) == {0.0, 4.0} and 0.15 < (dropped > 0).mean() < 0.35
    assert all((other == 1).all() for other in others), "the rest stays, also an LSTM's memory"


def test_a_filter_says_what_may_be_dropped() -> None:
    _, c, h = echoed(state_keep_prob=0.5, dropout_state_filter_visitor=lambda part: True)
    assert (c == 0).any() and (h == 0).any() and (c != h).any()
    _, c, h = echoed(
        state_keep_prob=0.5,
        dropout_state_filter_visitor=lambda part: (True, False) if isinstance(part, tuple) else True,
    )
    assert (c == 0).any() and not (h == 0).any()


def test_inputs_and_outputs_are_dropped_apart() -> None:
    output, _, _ = echoed(input_keep_prob=0.5, output_keep_prob=0.5)
    assert set(np.unique(output)) == {0.0, 4.0} and 0.15 < (output > 0).mean() < 0.35


def test_seeds_differ_by_place_and_are_tensorflows(graph) -> None:
    cell = CELL.DropoutWrapper(CELL.BasicLSTMCell(4), 0.5, 0.5, 0.5, seed=3)
    called(cell)
    found = {
        op.name.partition("/")[0]: op.get_attr("seed2")
        for op in graph.get_operations()
        if op.name.startswith("dropout") and op.type == "RandomUniform"
    }
    assert found == {"dropout": 371649270, "dropout_1": 602375191, "dropout_2": 787469663}


def test_variational_dropout_drops_the_same_at_every_step() -> None:
    cell = CELL.DropoutWrapper(
        Echo(),
        input_keep_prob=0.5,
        state_keep_prob=0.5,
        variational_recurrent=True,
        input_size=400,
        dtype=tf.float32,
    )
    inputs = tf.ones([2, 3, 400])
    (outputs, state), (again, _) = (
        tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32, scope=name) for name in "ab"
    )
    with tf.Session() as session:
        first, second, h, c = session.run([outputs, again, state.h, state.c])
        third = session.run(outputs)
    mask = first[0, 0]
    assert set(np.unique(mask)) == {0.0, 2.0} and 0.35 < (mask > 0).mean() < 0.65
    for values in (first, second):
        assert (values == mask).all(), "over steps, sequences of the batch and calls"
    assert (h[0] == h[1]).all() and (h[0] != mask).any() and (c == 1).all()
    assert (third != first).any(), "but not over runs"


def test_a_cell_of_a_program_needs_no_constructor() -> None:
    """`LayerRNNCell` takes what layers take."""

    class Sum(tf.nn.rnn_cell.LSTMCell.__mro__[2]):  # LayerRNNCell, which has no public name
        state_size = output_size = 2

        def call(self, inputs: Any, state: Any) -> Any:
            return inputs + state, inputs + state

    cell = Sum(name="sum")
    assert type(cell).__mro__[1].__name__ == "LayerRNNCell"
    output, _ = cell(tf.ones([1, 2]), tf.ones([1, 2]))
    with tf.Session() as session:
        assert session.run(output).tolist() == [[2.0, 2.0]]
