"""Programs that run the cells of `tf.contrib.rnn` over sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.contrib.recurrent_programs import flat

B, D, U = 3, 5, 4
X = np.random.RandomState(0).randn(B, 6, D).astype("f")
LENGTHS = [6, 4, 2]
Program = Any  # a function of the module `tf`


def plain(tf: Any) -> Any:
    return tf.constant(X)


def timed(tf: Any) -> Any:
    return tf.constant(np.arange(18).reshape(3, 6, 1) * 0.1, tf.float32), tf.constant(X)


def image(*shape: int) -> Program:
    return lambda tf: tf.constant(np.random.RandomState(1).randn(*shape).astype("f"))


def first_step(depth: int) -> Program:
    return lambda tf: tf.constant(X[:, 0, :depth])


def hidden(tf: Any) -> Any:
    return tf.contrib.rnn.python.ops.rnn_cell


def of_squares(tf: Any, values: Any) -> Any:
    return tf.add_n([tf.reduce_sum(each * each) for each in flat(values)])


def over_time(make: Callable[[Any, Any], Any], inputs: Program = plain) -> Program:
    def program(tf: Any) -> Any:
        cell = make(tf, tf.contrib.rnn)
        outputs, state = tf.nn.dynamic_rnn(cell, inputs(tf), dtype=tf.float32, sequence_length=LENGTHS)
        return "gradients", (of_squares(tf, outputs), [outputs, state])

    return program


def steps(make: Callable[[Any, Any], Any], inputs: Program) -> Program:
    def program(tf: Any) -> Any:
        cell, x, outputs = make(tf, tf.contrib.rnn), inputs(tf), []
        state = cell.zero_state(B, tf.float32)
        for step in range(2):
            if step == 1:
                tf.get_variable_scope().reuse_variables()
            output, state = cell(x, state)
            outputs.append(output)
        return "gradients", (of_squares(tf, outputs), [outputs, state])

    return program


def fused(tf: Any) -> Any:
    rnn, found, x = tf.contrib.rnn, [], tf.constant(X.transpose(1, 0, 2))
    cells = [
        (lambda: rnn.LSTMBlockFusedCell(U), False),
        (lambda: rnn.LSTMBlockFusedCell(U, use_peephole=True, cell_clip=0.3), True),
        (lambda: rnn.FusedRNNCellAdaptor(rnn.BasicLSTMCell(U)), False),
        (lambda: rnn.FusedRNNCellAdaptor(rnn.GRUCell(U), use_dynamic_rnn=True), True),
        (lambda: rnn.TimeReversedFusedRNN(rnn.LSTMBlockFusedCell(U)), True),
        (
            lambda: rnn.TimeReversedFusedRNN(rnn.FusedRNNCellAdaptor(rnn.GRUCell(U), use_dynamic_rnn=True)),
            False,
        ),
    ]
    for i, (make, is_limited) in enumerate(cells):
        with tf.variable_scope(f"v{i}"):
            lengths = tf.constant(LENGTHS) if is_limited else None
            found.append(make()(x, dtype=tf.float32, sequence_length=lengths))
    first = tf.ones([B, U]), tf.zeros([B, U])
    found.append(rnn.LSTMBlockFusedCell(U)(x, initial_state=first, sequence_length=LENGTHS))
    return "gradients", (of_squares(tf, found), found)


def stacked(tf: Any) -> Any:
    rnn = tf.contrib.rnn

    def cells() -> Any:
        return [rnn.GRUCell(U), rnn.BasicLSTMCell(3)]

    lengths = tf.constant(LENGTHS)
    found = [
        rnn.stack_bidirectional_dynamic_rnn(
            cells(), cells(), tf.constant(X), dtype=tf.float32, sequence_length=lengths
        ),
        rnn.stack_bidirectional_rnn(
            cells(), cells(), tf.unstack(tf.constant(X), axis=1), dtype=tf.float32, scope="st"
        ),
    ]
    size = tf.constant(rnn.best_effort_input_batch_size([tf.constant(X)]))
    return [found, rnn.transpose_batch_time(tf.constant(X)), size]


PROGRAMS: dict[str, Program] = {
    "coupled": over_time(lambda tf, rnn: rnn.CoupledInputForgetGateLSTMCell(U)),
    "coupled2": over_time(
        lambda tf, rnn: rnn.CoupledInputForgetGateLSTMCell(
            U, use_peepholes=True, num_proj=3, proj_clip=0.5, forget_bias=0.5, activation=tf.nn.relu
        )
    ),
    "coupled3": over_time(
        lambda tf, rnn: rnn.CoupledInputForgetGateLSTMCell(
            U, layer_norm=True, norm_gain=0.5, norm_shift=0.1, use_peepholes=True
        )
    ),
    "coupled4": over_time(
        lambda tf, rnn: rnn.CoupledInputForgetGateLSTMCell(U, state_is_tuple=False, num_unit_shards=2)
    ),
    "attncell": over_time(lambda tf, rnn: rnn.AttentionCellWrapper(rnn.GRUCell(U), 3)),
    "attncell2": over_time(
        lambda tf, rnn: rnn.AttentionCellWrapper(
            rnn.BasicLSTMCell(U), 2, attn_size=3, attn_vec_size=2, input_size=6
        )
    ),
    "attncell3": over_time(lambda tf, rnn: rnn.AttentionCellWrapper(rnn.GRUCell(U), 3, state_is_tuple=False)),
    "highway": over_time(lambda tf, rnn: rnn.HighwayWrapper(rnn.GRUCell(D))),
    "highway2": over_time(
        lambda tf, rnn: rnn.HighwayWrapper(
            rnn.GRUCell(D), couple_carry_transform_gates=False, carry_bias_init=0.5
        )
    ),
    "ln": over_time(lambda tf, rnn: rnn.LayerNormBasicLSTMCell(U)),
    "ln2": over_time(
        lambda tf, rnn: rnn.LayerNormBasicLSTMCell(
            U, layer_norm=False, forget_bias=0.3, activation=tf.nn.relu
        )
    ),
    "ln3": over_time(lambda tf, rnn: rnn.LayerNormBasicLSTMCell(U, norm_gain=0.5, norm_shift=0.2)),
    "nas": over_time(lambda tf, rnn: rnn.NASCell(U)),
    "nas2": over_time(lambda tf, rnn: rnn.NASCell(U, num_proj=3, use_bias=True)),
    "ugrnn": over_time(lambda tf, rnn: rnn.UGRNNCell(U)),
    "inter": over_time(lambda tf, rnn: rnn.IntersectionRNNCell(D)),
    "inter2": over_time(lambda tf, rnn: rnn.IntersectionRNNCell(U, num_in_proj=U)),
    "phased": over_time(lambda tf, rnn: rnn.PhasedLSTMCell(U), timed),
    "phased2": over_time(
        lambda tf, rnn: rnn.PhasedLSTMCell(U, use_peepholes=True, trainable_ratio_on=False, leak=0.1), timed
    ),
    "conv1": steps(
        lambda tf, rnn: rnn.Conv1DLSTMCell(input_shape=[5, 2], output_channels=3, kernel_shape=[3]),
        image(B, 5, 2),
    ),
    "conv3": steps(
        lambda tf, rnn: rnn.Conv3DLSTMCell(
            input_shape=[3, 4, 2, 1], output_channels=2, kernel_shape=[1, 3, 2]
        ),
        image(B, 3, 4, 2, 1),
    ),
    "convn": steps(
        lambda tf, rnn: rnn.ConvLSTMCell(
            1, input_shape=[5, 2], output_channels=3, kernel_shape=[3], forget_bias=0.2
        ),
        image(B, 5, 2),
    ),
    "glstm": steps(lambda tf, rnn: rnn.GLSTMCell(U, number_of_groups=2), first_step(4)),
    "glstm2": steps(
        lambda tf, rnn: rnn.GLSTMCell(U, num_proj=2, number_of_groups=2, forget_bias=0.4), first_step(2)
    ),
    "glstm3": steps(lambda tf, rnn: rnn.GLSTMCell(U), first_step(5)),
    "sru": over_time(lambda tf, rnn: rnn.SRUCell(D)),
    "sru2": over_time(lambda tf, rnn: rnn.SRUCell(U)),
    "indrnn": over_time(lambda tf, rnn: rnn.IndRNNCell(U)),
    "indygru": over_time(lambda tf, rnn: rnn.IndyGRUCell(U)),
    "indylstm": over_time(lambda tf, rnn: rnn.IndyLSTMCell(U)),
    "lnlstm": over_time(lambda tf, rnn: hidden(tf).LayerNormLSTMCell(U)),
    "lnlstm2": over_time(
        lambda tf, rnn: hidden(tf).LayerNormLSTMCell(
            U,
            use_peepholes=True,
            cell_clip=0.5,
            num_proj=3,
            proj_clip=0.4,
            layer_norm=True,
            norm_gain=0.7,
            norm_shift=0.1,
        )
    ),
    "wn": over_time(lambda tf, rnn: hidden(tf).WeightNormLSTMCell(U)),
    "wn2": over_time(
        lambda tf, rnn: hidden(tf).WeightNormLSTMCell(
            U, norm=False, use_peepholes=True, cell_clip=0.5, num_proj=3, proj_clip=0.4
        )
    ),
    "wn3": over_time(lambda tf, rnn: hidden(tf).WeightNormLSTMCell(U, use_peepholes=True, num_proj=3)),
    "minimal": over_time(lambda tf, rnn: hidden(tf).MinimalRNNCell(U)),
    "cfn": over_time(lambda tf, rnn: hidden(tf).CFNCell(U)),
    "compiled": over_time(lambda tf, rnn: rnn.CompiledWrapper(rnn.GRUCell(U))),
    "block": over_time(lambda tf, rnn: rnn.LSTMBlockCell(U)),
    "block2": over_time(
        lambda tf, rnn: rnn.LSTMBlockCell(U, use_peephole=True, cell_clip=0.4, forget_bias=0.3)
    ),
    "gblock": over_time(lambda tf, rnn: rnn.GRUBlockCell(U)),
    "gblock2": over_time(lambda tf, rnn: rnn.GRUBlockCellV2(U)),
    "fused": fused,
    "stacked": stacked,
}
