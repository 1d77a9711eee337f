"""More programs for `node_programs`: recurrence, control flow, gradients, input pipelines, whole models."""

from __future__ import annotations

from typing import Any

from node_programs import PROGRAMS, _images, _labels, _rows, _sequence, program


def _optimised(name, make):
    def train(tf: Any) -> None:
        logits = tf.layers.dense(_rows(tf), 3)
        loss = tf.losses.sparse_softmax_cross_entropy(_labels(tf), logits)
        make(tf).minimize(loss, tf.train.get_or_create_global_step())

    PROGRAMS[name] = train


for _name, _make in {
    "minimize_descent": lambda tf: tf.train.GradientDescentOptimizer(0.1),
    "minimize_momentum": lambda tf: tf.train.MomentumOptimizer(0.1, 0.9),
    "minimize_adam": lambda tf: tf.train.AdamOptimizer(),
    "minimize_adagrad": lambda tf: tf.train.AdagradOptimizer(0.1),
    "minimize_adadelta": lambda tf: tf.train.AdadeltaOptimizer(),
    "minimize_rmsprop": lambda tf: tf.train.RMSPropOptimizer(0.1),
    "minimize_ftrl": lambda tf: tf.train.FtrlOptimizer(0.1),
}.items():
    _optimised(_name, _make)


def _recurrent(name, make):
    def run(tf: Any) -> None:
        tf.nn.dynamic_rnn(make(tf.nn.rnn_cell, tf), _sequence(tf), dtype=tf.float32)

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
def rnn_lengths(tf):
    tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(4),
        _sequence(tf, None, None, 5),
        tf.placeholder(tf.int32, [None]),
        dtype=tf.float32,
    )


@program
def rnn_time_major_state(tf):
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    tf.nn.dynamic_rnn(cell, _sequence(tf), initial_state=cell.zero_state(4, tf.float32), time_major=True)


@program
def rnn_bidirectional(tf):
    cells = [tf.nn.rnn_cell.LSTMCell(4) for _ in range(2)]
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(
        *cells, _sequence(tf), tf.placeholder(tf.int32, [3]), dtype=tf.float32
    )
    tf.concat(outputs, 2)


@program
def rnn_static(tf):
    steps = tf.unstack(_sequence(tf), axis=1)
    tf.nn.static_rnn(tf.nn.rnn_cell.BasicLSTMCell(4), steps, dtype=tf.float32)


@program
def rnn_static_bidirectional(tf):
    steps = tf.unstack(_sequence(tf, None, 4, 5), axis=1)
    cells = [tf.nn.rnn_cell.GRUCell(4) for _ in range(2)]
    tf.nn.static_bidirectional_rnn(*cells, steps, dtype=tf.float32)


@program
def rnn_by_hand(tf):
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    state = cell.zero_state(3, tf.float32)
    with tf.variable_scope("rnn"):
        for i in range(2):
            if i:
                tf.get_variable_scope().reuse_variables()
            output, state = cell(_sequence(tf)[:, i, :], state)


@program
def zero_states(tf):
    cells = tf.nn.rnn_cell
    cells.BasicLSTMCell(4).zero_state(3, tf.float32)
    cells.GRUCell(4).zero_state(tf.placeholder(tf.int32, []), tf.float32)
    cells.MultiRNNCell([cells.BasicLSTMCell(4)] * 2).zero_state(3, tf.float32)


@program
def rnn_raw(tf):
    cell = tf.nn.rnn_cell.GRUCell(4)
    x = tf.TensorArray(tf.float32, 4).unstack(tf.transpose(_sequence(tf), [1, 0, 2]))

    def loop(time, output, state, extra):
        ends = time >= 4
        state = cell.zero_state(3, tf.float32) if output is None else state
        return ends, tf.cond(ends, lambda: tf.zeros([3, 5]), lambda: x.read(time)), state, output, None

    tf.nn.raw_rnn(cell, loop)


@program
def seq2seq_training(tf):
    seq = tf.contrib.seq2seq
    cell = tf.nn.rnn_cell.GRUCell(4)
    helper = seq.TrainingHelper(_sequence(tf), [4, 3, 2])
    decoder = seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32), tf.layers.Dense(9))
    outputs, _, _ = seq.dynamic_decode(decoder)
    seq.sequence_loss(outputs.rnn_output, _labels(tf, 3, 4), tf.ones([3, 4]))


@program
def seq2seq_greedy(tf):
    seq = tf.contrib.seq2seq
    cell = tf.nn.rnn_cell.GRUCell(4)
    helper = seq.GreedyEmbeddingHelper(tf.get_variable("e", [9, 5]), [0, 0, 0], 1)
    decoder = seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32), tf.layers.Dense(9))
    seq.dynamic_decode(decoder, maximum_iterations=5)


def _attention(name, make):
    def run(tf):
        memory = tf.placeholder(tf.float32, [3, 6, 8], "memory")
        mechanism = make(tf.contrib.seq2seq, memory)
        cell = tf.contrib.seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), mechanism, 4)
        tf.nn.dynamic_rnn(cell, _sequence(tf), dtype=tf.float32)

    PROGRAMS[name] = run


_attention("attention_bahdanau", lambda seq, memory: seq.BahdanauAttention(4, memory, [6, 5, 4]))
_attention("attention_luong", lambda seq, memory: seq.LuongAttention(4, memory))


@program
def beam_search(tf):
    seq = tf.contrib.seq2seq
    cell = tf.nn.rnn_cell.GRUCell(4)
    state = seq.tile_batch(cell.zero_state(3, tf.float32), 2)
    decoder = seq.BeamSearchDecoder(
        cell, tf.get_variable("e", [9, 5]), [0, 0, 0], 1, state, 2, tf.layers.Dense(9)
    )
    seq.dynamic_decode(decoder, maximum_iterations=5)


@program
def crf(tf):
    tf.contrib.crf.crf_log_likelihood(_sequence(tf), tf.placeholder(tf.int32, [3, 4]), [4, 3, 2])


# control flow


@program
def cond(tf):
    x = tf.placeholder(tf.float32, [], "x")
    w = tf.get_variable("w", [])
    tf.cond(x > 0.0, lambda: x * w, lambda: tf.negative(x))


@program
def cond_gradient(tf):
    x = tf.placeholder(tf.float32, [], "x")
    w = tf.get_variable("w", [])
    tf.gradients(tf.cond(x > 0.0, lambda: x * w + x, lambda: tf.negative(x)), [x, w])


@program
def cond_nested(tf):
    x = tf.placeholder(tf.float32, [], "x")
    tf.cond(x > 0.0, lambda: tf.cond(x > 1.0, lambda: x * 2.0, lambda: x + 1.0), lambda: tf.negative(x))


@program
def case(tf):
    x = tf.placeholder(tf.float32, [], "x")
    tf.case([(x > 0.0, lambda: x * 2.0), (x < -1.0, lambda: x - 1.0)], default=lambda: x, exclusive=True)


@program
def while_loop(tf):
    x = tf.placeholder(tf.float32, [3], "x")
    w = tf.get_variable("w", [3])
    tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * w + x), [0, x])


@program
def while_gradient(tf):
    x = tf.placeholder(tf.float32, [3], "x")
    w = tf.get_variable("w", [3])
    _, y = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, tf.tanh(a * w) + x), [0, x])
    tf.gradients(tf.reduce_sum(y), [x, w])


@program
def while_arrays(tf):
    x = tf.placeholder(tf.float32, [5, 3], "x")
    taken = tf.TensorArray(tf.float32, 5).unstack(x)
    given = tf.TensorArray(tf.float32, 5)
    _, given = tf.while_loop(
        lambda i, a: i < 5, lambda i, a: (i + 1, a.write(i, taken.read(i) * 2.0)), [0, given]
    )
    given.stack()


@program
def map_and_scan(tf):
    x = tf.placeholder(tf.float32, [5, 3], "x")
    tf.map_fn(lambda row: row * 2.0, x)
    tf.scan(lambda a, row: a + row, x)
    tf.foldl(lambda a, row: a + row, x)


@program
def rnn_gradient(tf):
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(4), _sequence(tf), dtype=tf.float32)
    tf.train.AdamOptimizer().minimize(tf.reduce_mean(outputs))


@program
def gradients_of_arithmetic(tf):
    x = _rows(tf)
    w = tf.get_variable("w", [10])
    y = tf.exp(x * w + 1.0) / (x - w) - tf.sqrt(tf.abs(x)) ** 2.0 + tf.maximum(x, w)
    tf.gradients(y, [x, w])


@program
def gradients_of_reductions(tf):
    x = _rows(tf)
    tf.gradients([tf.reduce_sum(x), tf.reduce_mean(x, 1), tf.reduce_max(x, 0), tf.reduce_prod(x, 1)], x)


@program
def gradients_of_shapes(tf):
    x = _rows(tf, 4, 6)
    a, b = tf.split(x, 2, 1)
    y = tf.concat([tf.transpose(a), tf.transpose(b)], 1)
    z = tf.reshape(tf.expand_dims(tf.tile(y, [1, 2]), 0), [-1])[1:]
    tf.gradients(tf.stack([z, z * 2.0]), x)


@program
def gradients_given(tf):
    x = _rows(tf)
    tf.gradients(
        tf.matmul(x, tf.get_variable("w", [10, 2])), tf.trainable_variables(), grad_ys=tf.ones([2, 2])
    )
    tf.hessians(tf.reduce_sum(tf.get_variable("v", [3]) ** 2), tf.trainable_variables()[1])


@program
def gradients_of_convolutions(tf):
    h = tf.layers.conv2d(_images(tf), 4, 3, activation=tf.nn.relu)
    h = tf.layers.batch_normalization(tf.layers.max_pooling2d(h, 2, 2), training=True)
    tf.gradients(tf.reduce_mean(tf.layers.dense(tf.layers.flatten(h), 2)), tf.trainable_variables())


@program
def gradients_of_embeddings(tf):
    e = tf.nn.embedding_lookup(tf.get_variable("e", [9, 4]), _labels(tf))
    tf.train.AdamOptimizer().minimize(tf.reduce_sum(e))


@program
def gradients_clipped(tf):
    optimizer = tf.train.AdamOptimizer()
    loss = tf.losses.mean_squared_error(_rows(tf, None, 2), tf.layers.dense(_rows(tf), 2))
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    optimizer.apply_gradients(zip(tf.clip_by_global_norm(gradients, 5.0)[0], variables))


@program
def decayed_rates(tf):
    step = tf.train.get_or_create_global_step()
    tf.train.exponential_decay(0.1, step, 100, 0.9, staircase=True)
    tf.train.polynomial_decay(0.1, step, 100)
    tf.train.piecewise_constant(step, [10, 20], [0.1, 0.2, 0.3])
    tf.train.cosine_decay(0.1, step, 100)


@program
def averages_and_saver(tf):
    w = tf.get_variable("w", [3])
    average = tf.train.ExponentialMovingAverage(0.9)
    average.apply([w])
    tf.train.Saver()
    tf.global_variables_initializer()
    tf.summary.scalar("s", tf.reduce_sum(w))
    tf.summary.histogram("h", w)
    tf.summary.merge_all()


# arrays


@program
def slicing(tf):
    x = _images(tf)
    x[0]
    x[:, 1:], x[..., -1]
    x[:, tf.newaxis]
    tf.shape(x)[0]
    tf.split(x, 2, 1)
    tf.split(x, [3, 5], 1)


@program
def joining(tf):
    x = _rows(tf)
    tf.concat([x, x], 1)
    tf.stack([x, x])
    tf.unstack(x, axis=1)
    tf.tile(x, [1, 2])
    tf.pad(x, [[0, 0], [1, 1]])
    tf.one_hot(_labels(tf), 5)
    tf.sequence_mask([1, 3], 4)
    tf.sequence_mask(_labels(tf))
    tf.boolean_mask(x, x[:, 0] > 0.0)
    tf.where(x > 0.0, x, -x)
    tf.gather(x, [0])
    tf.squeeze(x[:, :1], 1)
    tf.reverse(x, [1])
    tf.cumsum(x, 1)


@program
def tensordot(tf):
    tf.tensordot(_sequence(tf), tf.get_variable("w", [5, 2]), [[2], [0]])
    tf.tensordot(_sequence(tf, None, 4, 5), tf.get_variable("v", [5, 2]), 1)
    tf.einsum("abc,cd->abd", _sequence(tf), tf.get_variable("u", [5, 2]))


@program
def reductions(tf):
    x = _rows(tf)
    for f in (tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_logsumexp):
        f(x)
        f(x, 1)
        f(x, [1], keepdims=True)
    tf.norm(x)
    tf.global_norm([x, x])
    tf.clip_by_norm(x, 2.0)
    tf.count_nonzero(x)
    tf.nn.zero_fraction(x)
    tf.argmax(x, 1)


# pipelines


@program
def dataset(tf):
    data = (
        tf.data.Dataset.from_tensor_slices((np_zeros(8, 3), np_zeros(8)))
        .shuffle(8)
        .repeat()
        .batch(4)
        .prefetch(1)
    )
    data.make_one_shot_iterator().get_next()


@program
def dataset_range_map(tf):
    tf.data.Dataset.range(10).map(lambda i: i * 2).filter(
        lambda i: i > 3
    ).make_initializable_iterator().get_next()


@program
def dataset_of_records(tf):
    def parse(text):
        return tf.parse_single_example(text, {"x": tf.FixedLenFeature([3], tf.float32)})["x"]

    tf.data.TFRecordDataset(["a"]).map(parse, 2).shuffle(5).padded_batch(
        2, [3]
    ).make_initializable_iterator().get_next()


@program
def examples(tf):
    tf.parse_example(
        tf.placeholder(tf.string, [None]),
        {"x": tf.FixedLenFeature([3], tf.float32), "y": tf.VarLenFeature(tf.int64)},
    )


@program
def feature_columns(tf):
    f = tf.feature_column
    columns = [
        f.numeric_column("x"),
        f.embedding_column(f.categorical_column_with_hash_bucket("w", 9), 3),
        f.indicator_column(f.categorical_column_with_identity("i", 4)),
    ]
    tf.feature_column.input_layer(
        {"x": _rows(tf, None, 1), "w": tf.placeholder(tf.string, [None, 1]), "i": _labels(tf, None, 1)},
        columns,
    )


@program
def linear_model(tf):
    f = tf.feature_column
    tf.feature_column.linear_model(
        {"x": _rows(tf, None, 1), "w": tf.placeholder(tf.string, [None, 1])},
        [f.numeric_column("x"), f.categorical_column_with_hash_bucket("w", 9)],
    )


@program
def head_binary(tf):
    head = tf.contrib.estimator.binary_classification_head()
    head.create_estimator_spec(
        {"x": _rows(tf)},
        tf.estimator.ModeKeys.TRAIN,
        tf.layers.dense(_rows(tf), 1),
        _labels(tf, None, 1),
        train_op_fn=lambda loss: tf.no_op(),
    )


@program
def head_multi(tf):
    head = tf.contrib.estimator.multi_class_head(3)
    head.create_estimator_spec(
        {"x": _rows(tf)},
        tf.estimator.ModeKeys.TRAIN,
        tf.layers.dense(_rows(tf), 3),
        _labels(tf, None, 1),
        train_op_fn=lambda loss: tf.no_op(),
    )


@program
def dnn_model(tf):
    f = tf.feature_column
    classifier = tf.estimator.DNNClassifier([4, 3], [f.numeric_column("x", 10)], n_classes=3)
    tf.train.get_or_create_global_step()
    classifier._call_model_fn(
        {"x": _rows(tf)}, _labels(tf, None, 1), tf.estimator.ModeKeys.TRAIN, classifier.config
    )


# whole models


@program
def model_mlp_by_hand(tf):
    x = _rows(tf)
    w = tf.Variable(tf.random_normal([10, 5]))
    b = tf.Variable(tf.zeros([5]))
    h = tf.nn.dropout(tf.nn.relu(tf.matmul(x, w) + b), 0.5)
    w2 = tf.Variable(tf.truncated_normal([5, 2], stddev=0.1))
    b2 = tf.Variable(tf.constant(0.1, shape=[2]))
    logits = tf.matmul(h, w2) + b2
    loss = tf.reduce_mean(
        tf.nn.softmax_cross_entropy_with_logits_v2(labels=_rows(tf, None, 2), logits=logits)
    )
    tf.train.AdamOptimizer().minimize(loss)
    tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), tf.argmax(_rows(tf, None, 2), 1)), tf.float32))


@program
def model_cnn(tf):
    h = tf.layers.conv2d(_images(tf), 4, 3, activation=tf.nn.relu)
    h = tf.layers.flatten(tf.layers.max_pooling2d(h, 2, 2))
    h = tf.layers.dropout(tf.layers.dense(h, 10, activation=tf.nn.relu), 0.3, training=True)
    logits = tf.layers.dense(tf.layers.batch_normalization(h, training=True), 3)
    loss = tf.losses.sparse_softmax_cross_entropy(_labels(tf), logits)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        tf.train.AdamOptimizer().minimize(loss, tf.train.get_or_create_global_step())
    tf.random_uniform([1])


@program
def model_two_towers(tf):
    for scope in ("a", "b"):
        with tf.variable_scope(scope):
            h = tf.layers.dense(_rows(tf), 4, tf.nn.relu)
            tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.square(h)))
    tf.random_normal([2])


@program
def model_autoencoder(tf):
    x = _rows(tf)
    mean, scale = tf.layers.dense(x, 2), tf.layers.dense(x, 2)
    z = mean + tf.exp(0.5 * scale) * tf.random_normal(tf.shape(scale))
    y = tf.layers.dense(z, 10, tf.nn.sigmoid)
    loss = tf.reduce_mean(
        tf.reduce_sum(tf.square(x - y), 1)
        - 0.5 * tf.reduce_sum(1 + scale - tf.square(mean) - tf.exp(scale), 1)
    )
    tf.train.AdamOptimizer().minimize(loss)


@program
def model_generative(tf):
    def generate(z):
        with tf.variable_scope("g"):
            return tf.layers.dense(tf.layers.dense(z, 8, tf.nn.leaky_relu), 10, tf.nn.tanh)

    def judge(x):
        with tf.variable_scope("d", reuse=tf.AUTO_REUSE):
            return tf.layers.dense(tf.layers.dense(x, 8, tf.nn.leaky_relu), 1)

    real, made = judge(_rows(tf)), judge(generate(tf.random_normal([4, 3])))
    cross = tf.nn.sigmoid_cross_entropy_with_logits
    d = tf.reduce_mean(
        cross(logits=real, labels=tf.ones_like(real)) + cross(logits=made, labels=tf.zeros_like(made))
    )
    g = tf.reduce_mean(cross(logits=made, labels=tf.ones_like(made)))
    for loss, scope in ((d, "d"), (g, "g")):
        tf.train.AdamOptimizer(1e-3, 0.5).minimize(loss, var_list=tf.trainable_variables(scope))


@program
def model_text(tf):
    words = tf.nn.embedding_lookup(tf.get_variable("e", [9, 5]), _labels(tf, None, 4))
    cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(4), output_keep_prob=0.5)
    outputs, state = tf.nn.dynamic_rnn(cell, words, dtype=tf.float32)
    loss = tf.losses.sparse_softmax_cross_entropy(_labels(tf), tf.layers.dense(outputs[:, -1], 3))
    tf.train.AdamOptimizer().minimize(loss)
    tf.layers.dense(state.h, 2)


def np_zeros(*shape):
    import numpy as np

    return np.zeros(shape, np.float32)
