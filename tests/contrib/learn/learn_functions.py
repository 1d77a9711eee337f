"""Functions of `tf.contrib.learn.ops` and `models`, for TensorFlow and for flowstone: each takes the module.

It keeps to Python 3.7, on which TensorFlow 1.15 runs.
"""

import numpy as np

X = np.arange(6, dtype=np.float32).reshape(3, 2)
WEIGHTS = np.array([[0.1, 0.2], [0.3, 0.4]], np.float32)
CLASSES = np.array([[1, 0], [0, 1], [1, 0]], np.float32)
STEPS = np.arange(12, dtype=np.float32).reshape(3, 2, 2) * 0.1


def flat(value):
    """The tensors of nested lists and tuples."""
    if isinstance(value, (list, tuple)):
        return [tensor for each in value for tensor in flat(each)]
    return [value]


def operations(tf):
    ops = tf.contrib.learn.ops
    x, one, bias = tf.constant(X), tf.constant([1.0, 2.0, 3.0]), tf.constant([0.5, 0.1])
    steps, labels = [tf.constant(X), tf.constant(X + 1)], [tf.constant(CLASSES)] * 2
    sequence = tf.constant(np.arange(12, dtype=np.float32).reshape(2, 3, 2))
    targets = tf.constant(np.arange(8, dtype=np.float32).reshape(2, 2, 2))

    def gru():
        return tf.nn.rnn_cell.GRUCell(2)

    return {
        "embedding": lambda: ops.embedding_lookup(x, tf.constant([[0, 1], [2, 2]])),
        "embedding_of_arrays": lambda: ops.embedding_lookup(X, np.array([0, 1])),
        "categorical": lambda: ops.categorical_variable(tf.constant([[0, 1], [2, 2]]), 3, 4, "cc"),
        "regressor": lambda: ops.mean_squared_error_regressor(
            x, one, tf.constant(WEIGHTS[:, :1]), tf.constant([0.5])
        ),
        "regressor_of_rows": lambda: ops.mean_squared_error_regressor(x, x, tf.constant(WEIGHTS), bias),
        "softmax": lambda: ops.softmax_classifier(x, tf.constant(CLASSES), tf.constant(WEIGHTS), bias),
        "softmax_weighted": lambda: ops.softmax_classifier(
            x, tf.constant(CLASSES), tf.constant(WEIGHTS), bias, tf.constant([1.0, 2.0])
        ),
        "sequence": lambda: ops.sequence_classifier(steps, labels),
        "sequence_sampled": lambda: ops.sequence_classifier(steps, labels, [x * 2, x]),
        "sequence_inputs": lambda: ops.seq2seq_inputs(sequence, targets, 3, 2),
        "decoder": lambda: ops.rnn_decoder(steps, tf.constant(X * 0.1), gru()),
        "seq2seq": lambda: ops.rnn_seq2seq(steps, steps, gru()),
        "seq2seq_of_two": lambda: ops.rnn_seq2seq(steps, steps, gru(), gru()),
    }


def models(tf):
    models = tf.contrib.learn.models
    x, one, classes = tf.constant(X), tf.constant([1.0, 2.0, 3.0]), tf.constant(CLASSES)

    def bidirectional(**options):
        cells = [tf.nn.rnn_cell.GRUCell(2) for _ in range(2)]
        return models.bidirectional_rnn(*cells, inputs=[x, tf.constant(X + 1)], dtype=tf.float32, **options)

    def weighted():
        tf.constant([1.0, 2.0], name="class_weight")
        return models.logistic_regression(x, classes)

    def recurrent(cell="gru", layers=2, bidirectional=False, lengths=None, attention=None):
        model = models.get_rnn_model(
            2, cell, layers, lambda each: tf.unstack(each, axis=1), bidirectional, models.linear_regression,
            lengths, None, attention, None, None,
        )  # fmt: skip
        return model(tf.constant(STEPS), one)

    return {
        "linear_zero": lambda: models.linear_regression_zero_init(x, one),
        "linear": lambda: models.linear_regression(x, one),
        "linear_of_rows": lambda: models.linear_regression(x, x, init_mean=0.1),
        "logistic_zero": lambda: models.logistic_regression_zero_init(x, classes),
        "logistic": lambda: models.logistic_regression(x, classes, init_mean=1.0),
        "logistic_weighted": weighted,
        "bidirectional": bidirectional,
        "bidirectional_named": lambda: bidirectional(scope="zz"),
        "bidirectional_state": lambda: bidirectional(initial_state_fw=x, initial_state_bw=x),
        "gru": recurrent,
        "rnn": lambda: recurrent("rnn"),
        "lstm": lambda: recurrent("lstm"),
        "one_layer": lambda: recurrent(layers=1),
        "both_ways": lambda: recurrent(layers=1, bidirectional=True),
        "lengths": lambda: recurrent(lengths=tf.constant([1, 2, 1])),
        "attention": lambda: recurrent(attention=2),
        "attention_both_ways": lambda: recurrent("lstm", layers=1, bidirectional=True, attention=2),
    }


def filled(tf):
    """Assignments of small numbers to all variables."""
    for i, variable in enumerate(tf.global_variables()):
        shape = variable.shape.as_list()
        values = np.arange(np.prod(shape, dtype=int)).reshape(shape) * 0.03 - 0.2 + i * 0.05
        yield tf.assign(variable, tf.constant(values.astype(np.float32)))


def answers(tf, kind, name):
    """Variables, summaries, and what the function gives with small numbers in the variables."""
    with tf.Graph().as_default():
        outputs = flat(kind(tf)[name]())
        variables = [[each.name, each.shape.as_list()] for each in tf.global_variables()]
        summaries = [each.name for each in tf.get_collection("summaries")]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(list(filled(tf)))
            return [variables, summaries, [np.asarray(each).tolist() for each in session.run(outputs)]]


def all_answers(tf):
    with tf.Graph().as_default():
        names = [(kind, sorted(kind(tf))) for kind in (operations, models)]
    return {name: answers(tf, kind, name) for kind, of_kind in names for name in of_kind}
