"""The cells of `tf.contrib.rnn` against TensorFlow 1.15's variables and values, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from tests.contrib import recurrent_programs
from tests.contrib.rnn.cell_programs import PROGRAMS

import flowstone as tf

rnn = tf.contrib.rnn


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_tensorflow(name: str) -> None:
    recurrent_programs.check(tf, "rnn", name, PROGRAMS[name])


# As TensorFlow 1.15.5 starts the last of these cells' matrices and vectors in a graph with the seed 6.
STARTS = {
    "attention": ("attn_output_projection/kernel", [0.828497, 0.781255, 0.344966]),
    "coupled": ("W_O_diag", [0.860894, 0.022076]),
    "indy_lstm": ("kernel_u", [0.791985, -0.509254, 0.522367]),
    "indy_gru": ("candidate/kernel_u", [0.010456, -0.218173]),
    "ind_rnn": ("kernel_u", [0.67336, -0.753946]),
}


@pytest.mark.parametrize("name", STARTS)
def test_variables_start_as_in_tensorflow(name: str) -> None:
    ending, values = STARTS[name]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(6)
        cell = {
            "attention": lambda: rnn.AttentionCellWrapper(rnn.GRUCell(2), 2),
            "coupled": lambda: rnn.CoupledInputForgetGateLSTMCell(2, use_peepholes=True),
            "indy_lstm": lambda: rnn.IndyLSTMCell(2),
            "indy_gru": lambda: rnn.IndyGRUCell(2),
            "ind_rnn": lambda: rnn.IndRNNCell(2),
        }[name]()
        cell(tf.ones([1, 3]), cell.zero_state(1, tf.float32))
        (variable,) = (each for each in tf.trainable_variables() if each.op.name.endswith(ending))
        session.run(tf.global_variables_initializer())
        found = session.run(variable).ravel()[:3]
    np.testing.assert_allclose(found, values, atol=2e-6)


def test_a_skip_connection_puts_inputs_behind_the_outputs() -> None:
    cell = rnn.Conv2DLSTMCell(
        input_shape=[5, 4, 2], output_channels=3, kernel_shape=[3, 3], skip_connection=True, use_bias=False
    )
    x = tf.random_normal([2, 5, 4, 2], seed=1)
    output, state = cell(x, cell.zero_state(2, tf.float32))
    assert cell.output_size.as_list() == [5, 4, 5]
    assert [variable.shape.as_list() for variable in cell.variables] == [[3, 3, 5, 12]]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        got, inputs, h = session.run([output, x, state.h])
    assert (got[..., 3:] == inputs).all()
    assert (got[..., :3] == h).all()


def test_dropout_of_new_content_keeps_its_mean() -> None:
    cell = rnn.LayerNormBasicLSTMCell(200, layer_norm=False, dropout_keep_prob=0.5, dropout_prob_seed=3)
    _, state = cell(tf.ones([1, 3]), cell.zero_state(1, tf.float32))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        share = np.mean(session.run(state.c) == 0)
    assert 0.35 < share < 0.65


def test_periods_begin_between_their_bounds() -> None:
    cell = rnn.PhasedLSTMCell(100, period_init_min=2.0, period_init_max=8.0)
    cell((tf.zeros([1, 1]), tf.ones([1, 2])), cell.zero_state(1, tf.float32))
    period, phase = (variable for variable in cell.variables if "p" in variable.op.name.split("/")[-1][:1])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        periods, phases = session.run([period, phase])
    assert ((periods >= 2) & (periods <= 8)).all()
    assert (phases >= 0).all()


def test_the_base_of_fused_layers_is_abstract() -> None:
    with pytest.raises(TypeError):
        rnn.FusedRNNCell()
    assert issubclass(rnn.LSTMBlockFusedCell, rnn.LSTMBlockWrapper)
    assert issubclass(rnn.LSTMBlockCell, rnn.LayerRNNCell)


def test_the_internal_modules_have_the_cells() -> None:
    ops = rnn.python.ops
    assert ops.core_rnn_cell.RNNCell is rnn.RNNCell
    assert ops.rnn_cell.UGRNNCell is rnn.UGRNNCell
    assert ops.lstm_ops.LSTMBlockCell is rnn.LSTMBlockCell
    assert ops.core_rnn.static_rnn is tf.nn.static_rnn
    assert ops.rnn_cell._Linear is ops.core_rnn_cell._Linear
    x = tf.ones([2, 3])
    assert ops.core_rnn_cell._linear([x, x], 4, True).shape.as_list() == [2, 4]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: rnn.GRUBlockCell(), ValueError, "Exactly one"),
        (lambda: rnn.GLSTMCell(3, number_of_groups=2), ValueError, "divisible"),
        (lambda: rnn.AttentionCellWrapper(rnn.GRUCell(2), 0), ValueError, "greater than zero"),
        (
            lambda: rnn.AttentionCellWrapper(rnn.BasicLSTMCell(2), 2, state_is_tuple=False),
            ValueError,
            "state_is_tuple",
        ),
        (lambda: rnn.EmbeddingWrapper(rnn.GRUCell(2), 0, 2), ValueError, "must be > 0"),
        (lambda: rnn.OutputProjectionWrapper(rnn.GRUCell(2), 0), ValueError, "must be > 0"),
        (lambda: rnn.InputProjectionWrapper("cell", 2), TypeError, "RNNCell"),
        (lambda: rnn.IntersectionRNNCell(3)(tf.ones([1, 2]), tf.ones([1, 3])), ValueError, "num_in_proj"),
        (
            lambda: rnn.Conv1DLSTMCell(input_shape=[2], output_channels=1, kernel_shape=[1]),
            ValueError,
            "input_shape",
        ),
        (lambda: rnn.stack_bidirectional_rnn([], [], []), ValueError, "at least one fw cell"),
        (lambda: rnn.transpose_batch_time(tf.ones([2])), ValueError, "rank"),
        (lambda: rnn.LSTMBlockFusedCell(2)(tf.ones([2, 1, 3])), ValueError, "dtype"),
    ],
)
def test_refuses(make, error: type[Exception], words: str) -> None:
    with tf.Graph().as_default(), pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize("name", ["CoupledInputForgetGateLSTMCell", "TimeFreqLSTMCell", "GridLSTMCell"])
def test_initializers_that_tensorflow_does_not_use(name: str) -> None:
    """TensorFlow 1.4.1 and 1.15.5 take them and start all variables as the scope says."""
    bands = {} if name.startswith("Coupled") else {"feature_size": 4, "frequency_skip": 4}
    bands |= {"num_frequency_blocks": [2]} if name.startswith("Grid") else {}
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("scope", initializer=tf.constant_initializer(3.0)):
            cell = getattr(tf.contrib.rnn, name)(
                4, use_peepholes=True, initializer=tf.constant_initializer(2.0), **bands
            )
            cell(tf.ones([2, 8]), cell.zero_state(2, tf.float32))
        session.run(tf.global_variables_initializer())
        values = session.run(tf.global_variables())
    assert {float(value.flat[0]) for value in values} == {0.0, 3.0}
    assert not any((value == 2).any() for value in values)
