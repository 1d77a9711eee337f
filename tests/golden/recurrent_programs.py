"""Programs for `node_programs`: recurrent networks, decoders, control flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.golden.node_programs import PROGRAMS, labels, program, sequence


def _recurrent(name: str, make: Callable[..., Any]) -> None:
    def run(tf: Any) -> None:
        tf.nn.dynamic_rnn(make(tf.nn.rnn_cell, tf), sequence(tf), dtype=tf.float32)

    PROGRAMS[name] = run


for _name, _make in {
    "rnn_basic": lambda cells, tf: cells.BasicRNNCell(4),
    "rnn_gru": lambda cells, tf: cells.GRUCell(4),
    "rnn_basic_lstm": lambda cells, tf: cells.BasicLSTMCell(4),
    "rnn_lstm": lambda cells, tf: cells.LSTMCell(4),
    "rnn_lstm_peepholes": lambda cells, tf: cells.LSTMCell(4, use_peepholes=True, num_proj=3, cell_clip=2.0),
    "rnn_multi": lambda cells, tf: cells.MultiRNNCell([cells.LSTMCell(4), cells.GRUCell(3)]),
    "rnn_dropout": lambda cells, tf: cells.DropoutWrapper(cells.GRUCell(4), output_keep_prob=0.5),
    "rnn_dropout_all": lambda cells, tf: cells.DropoutWrapper(cells.BasicLSTMCell(4), 0.5, 0.6, 0.7),
    "rnn_variational": lambda cells, tf: cells.DropoutWrapper(
        cells.BasicLSTMCell(4), 0.5, 0.6, 0.7, variational_recurrent=True, dtype=tf.float32, input_size=5
    ),
    "rnn_residual": lambda cells, tf: cells.ResidualWrapper(cells.GRUCell(5)),
    "rnn_layer_norm": lambda cells, tf: tf.contrib.rnn.LayerNormBasicLSTMCell(4),
    "rnn_block_cell": lambda cells, tf: tf.contrib.rnn.LSTMBlockCell(4),
    "rnn_attention_cell": lambda cells, tf: tf.contrib.rnn.AttentionCellWrapper(cells.GRUCell(4), 2),
}.items():
    _recurrent(_name, _make)


@program
def rnn_lengths(tf: Any) -> None:
    tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(4),
        sequence(tf, None, None, 5),
        tf.placeholder(tf.int32, [None]),
        dtype=tf.float32,
    )


@program
def rnn_time_major_state(tf: Any) -> None:
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    tf.nn.dynamic_rnn(cell, sequence(tf), initial_state=cell.zero_state(4, tf.float32), time_major=True)


@program
def rnn_bidirectional(tf: Any) -> None:
    cells = [tf.nn.rnn_cell.LSTMCell(4) for _ in range(2)]
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(
        *cells, sequence(tf), tf.placeholder(tf.int32, [3]), dtype=tf.float32
    )
    tf.concat(outputs, 2)


@program
def rnn_static(tf: Any) -> None:
    steps = tf.unstack(sequence(tf), axis=1)
    tf.nn.static_rnn(tf.nn.rnn_cell.BasicLSTMCell(4), steps, dtype=tf.float32)


@program
def rnn_static_bidirectional(tf: Any) -> None:
    steps = tf.unstack(sequence(tf, None, 4, 5), axis=1)
    cells = [tf.nn.rnn_cell.GRUCell(4) for _ in range(2)]
    tf.nn.static_bidirectional_rnn(*cells, steps, dtype=tf.float32)


@program
def rnn_by_hand(tf: Any) -> None:
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    state = cell.zero_state(3, tf.float32)
    with tf.variable_scope("rnn"):
        for i in range(2):
            if i:
                tf.get_variable_scope().reuse_variables()
            _, state = cell(sequence(tf)[:, i, :], state)


@program
def zero_states(tf: Any) -> None:
    cells = tf.nn.rnn_cell
    cells.BasicLSTMCell(4).zero_state(3, tf.float32)
    cells.GRUCell(4).zero_state(tf.placeholder(tf.int32, []), tf.float32)
    cells.MultiRNNCell([cells.BasicLSTMCell(4)] * 2).zero_state(3, tf.float32)


@program
def rnn_raw(tf: Any) -> None:
    cell = tf.nn.rnn_cell.GRUCell(4)
    x = tf.TensorArray(tf.float32, 4).unstack(tf.transpose(sequence(tf), [1, 0, 2]))

    def loop(time, output, state, extra):
        ends = time >= 4
        state = cell.zero_state(3, tf.float32) if output is None else state
        return ends, tf.cond(ends, lambda: tf.zeros([3, 5]), lambda: x.read(time)), state, output, None

    tf.nn.raw_rnn(cell, loop)


@program
def seq2seq_training(tf: Any) -> None:
    seq = tf.contrib.seq2seq
    cell = tf.nn.rnn_cell.GRUCell(4)
    helper = seq.TrainingHelper(sequence(tf), [4, 3, 2])
    decoder = seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32), tf.layers.Dense(9))
    outputs, _, _ = seq.dynamic_decode(decoder)
    seq.sequence_loss(outputs.rnn_output, labels(tf, 3, 4), tf.ones([3, 4]))


@program
def seq2seq_greedy(tf: Any) -> None:
    seq = tf.contrib.seq2seq
    cell = tf.nn.rnn_cell.GRUCell(4)
    helper = seq.GreedyEmbeddingHelper(tf.get_variable("e", [9, 5]), [0, 0, 0], 1)
    decoder = seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32), tf.layers.Dense(9))
    seq.dynamic_decode(decoder, maximum_iterations=5)


def _attention(name: str, make: Callable[..., Any]) -> None:
    def run(tf: Any) -> None:
        memory = tf.placeholder(tf.float32, [3, 6, 8], "memory")
        mechanism = make(tf.contrib.seq2seq, memory)
        cell = tf.contrib.seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), mechanism, 4)
        tf.nn.dynamic_rnn(cell, sequence(tf), dtype=tf.float32)

    PROGRAMS[name] = run


_attention("attention_bahdanau", lambda seq, memory: seq.BahdanauAttention(4, memory, [6, 5, 4]))
_attention("attention_luong", lambda seq, memory: seq.LuongAttention(4, memory))


@program
def beam_search(tf: Any) -> None:
    seq = tf.contrib.seq2seq
    cell = tf.nn.rnn_cell.GRUCell(4)
    state = seq.tile_batch(cell.zero_state(3, tf.float32), 2)
    decoder = seq.BeamSearchDecoder(
        cell, tf.get_variable("e", [9, 5]), [0, 0, 0], 1, state, 2, tf.layers.Dense(9)
    )
    seq.dynamic_decode(decoder, maximum_iterations=5)


@program
def crf(tf: Any) -> None:
    tf.contrib.crf.crf_log_likelihood(sequence(tf), tf.placeholder(tf.int32, [3, 4]), tf.constant([4, 3, 2]))


# control flow


@program
def cond(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [], "x")
    w = tf.get_variable("w", [])
    tf.cond(x > 0.0, lambda: x * w, lambda: tf.negative(x))


@program
def cond_gradient(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [], "x")
    w = tf.get_variable("w", [])
    tf.gradients(tf.cond(x > 0.0, lambda: x * w + x, lambda: tf.negative(x)), [x, w])


@program
def cond_nested(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [], "x")
    tf.cond(x > 0.0, lambda: tf.cond(x > 1.0, lambda: x * 2.0, lambda: x + 1.0), lambda: tf.negative(x))


@program
def case(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [], "x")
    tf.case([(x > 0.0, lambda: x * 2.0), (x < -1.0, lambda: x - 1.0)], default=lambda: x, exclusive=True)


@program
def while_loop(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [3], "x")
    w = tf.get_variable("w", [3])
    tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * w + x), [0, x])


@program
def while_gradient(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [3], "x")
    w = tf.get_variable("w", [3])
    _, y = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, tf.tanh(a * w) + x), [0, x])
    tf.gradients(tf.reduce_sum(y), [x, w])


@program
def while_arrays(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [5, 3], "x")
    taken = tf.TensorArray(tf.float32, 5).unstack(x)
    given = tf.TensorArray(tf.float32, 5)
    _, given = tf.while_loop(
        lambda i, a: i < 5, lambda i, a: (i + 1, a.write(i, taken.read(i) * 2.0)), [0, given]
    )
    given.stack()


@program
def map_and_scan(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [5, 3], "x")
    tf.map_fn(lambda row: row * 2.0, x)
    tf.scan(lambda a, row: a + row, x)
    tf.foldl(lambda a, row: a + row, x)


@program
def attention_begins_with_an_encoder(tf: Any) -> None:
    seq, size = tf.contrib.seq2seq, tf.placeholder(tf.int32, [], "size")
    memory = tf.placeholder(tf.float32, [None, 6, 8], "memory")
    state = tf.placeholder(tf.float32, [None, 4], "state")
    cell = seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), seq.LuongAttention(4, memory), 4)
    cell.zero_state(size, tf.float32).clone(cell_state=state)


@program
def checked_shapes(tf: Any) -> None:
    framework, x = tf.contrib.framework, tf.placeholder(tf.float32, [None, 3], "x")
    framework.with_same_shape(x, tf.placeholder(tf.float32, [None, None], "y"))
    framework.with_shape([2, 3], tf.placeholder(tf.float32, None, "z"))
    framework.with_shape(tf.placeholder(tf.int32, [2], "sizes"), x)


@program
def legacy_attention(tf: Any) -> None:
    words = [tf.placeholder(tf.int32, [None], f"w{i}") for i in range(3)]
    tf.contrib.legacy_seq2seq.embedding_attention_seq2seq(
        words, words, tf.nn.rnn_cell.GRUCell(4), 9, 9, 4, initial_state_attention=True, feed_previous=True
    )
