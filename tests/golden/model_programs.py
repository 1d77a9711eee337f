"""Programs for `node_programs`: gradients and optimisers, input pipelines, estimators, whole models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.golden.node_programs import PROGRAMS, images, labels, program, rows, sequence


def _optimised(name: str, make: Callable[..., Any]) -> None:
    def train(tf: Any) -> None:
        logits = tf.layers.dense(rows(tf), 3)
        loss = tf.losses.sparse_softmax_cross_entropy(labels(tf), logits)
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


@program
def rnn_gradient(tf: Any) -> None:
    outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(4), sequence(tf), dtype=tf.float32)
    tf.train.AdamOptimizer().minimize(tf.reduce_mean(outputs))


@program
def gradients_of_arithmetic(tf: Any) -> None:
    x = rows(tf)
    w = tf.get_variable("w", [10])
    y = tf.exp(x * w + 1.0) / (x - w) - tf.sqrt(tf.abs(x)) ** 2.0 + tf.maximum(x, w)
    tf.gradients(y, [x, w])


@program
def gradients_of_reductions(tf: Any) -> None:
    x = rows(tf)
    tf.gradients([tf.reduce_sum(x), tf.reduce_mean(x, 1), tf.reduce_max(x, 0), tf.reduce_prod(x, 1)], x)


@program
def gradients_of_shapes(tf: Any) -> None:
    x = rows(tf, 4, 6)
    a, b = tf.split(x, 2, 1)
    y = tf.concat([tf.transpose(a), tf.transpose(b)], 1)
    z = tf.reshape(tf.expand_dims(tf.tile(y, [1, 2]), 0), [-1])[1:]
    tf.gradients(tf.stack([z, z * 2.0]), x)


@program
def gradients_given(tf: Any) -> None:
    x = rows(tf)
    tf.gradients(
        tf.matmul(x, tf.get_variable("w", [10, 2])), tf.trainable_variables(), grad_ys=tf.ones([2, 2])
    )
    tf.hessians(tf.reduce_sum(tf.get_variable("v", [3]) ** 2), tf.trainable_variables()[1])


@program
def gradients_of_convolutions(tf: Any) -> None:
    h = tf.layers.conv2d(images(tf), 4, 3, activation=tf.nn.relu)
    h = tf.layers.batch_normalization(tf.layers.max_pooling2d(h, 2, 2), training=True)
    tf.gradients(tf.reduce_mean(tf.layers.dense(tf.layers.flatten(h), 2)), tf.trainable_variables())


@program
def gradients_of_embeddings(tf: Any) -> None:
    e = tf.nn.embedding_lookup(tf.get_variable("e", [9, 4]), labels(tf))
    tf.train.AdamOptimizer().minimize(tf.reduce_sum(e))


@program
def gradients_clipped(tf: Any) -> None:
    optimizer = tf.train.AdamOptimizer()
    loss = tf.losses.mean_squared_error(rows(tf, None, 2), tf.layers.dense(rows(tf), 2))
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    optimizer.apply_gradients(zip(tf.clip_by_global_norm(gradients, 5.0)[0], variables))


@program
def decayed_rates(tf: Any) -> None:
    step = tf.train.get_or_create_global_step()
    tf.train.exponential_decay(0.1, step, 100, 0.9, staircase=True)
    tf.train.polynomial_decay(0.1, step, 100)
    tf.train.piecewise_constant(step, [10, 20], [0.1, 0.2, 0.3])
    tf.train.cosine_decay(0.1, step, 100)


@program
def averages_and_saver(tf: Any) -> None:
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
def slicing(tf: Any) -> None:
    x = images(tf)
    x[0]
    x[:, 1:], x[..., -1]
    x[:, tf.newaxis]
    tf.shape(x)[0]
    tf.split(x, 2, 1)
    tf.split(x, [3, 5], 1)


@program
def joining(tf: Any) -> None:
    x = rows(tf)
    tf.concat([x, x], 1)
    tf.stack([x, x])
    tf.unstack(x, axis=1)
    tf.tile(x, [1, 2])
    tf.pad(x, [[0, 0], [1, 1]])
    tf.one_hot(labels(tf), 5)
    tf.sequence_mask([1, 3], 4)
    tf.sequence_mask(labels(tf))
    tf.boolean_mask(x, x[:, 0] > 0.0)
    tf.where(x > 0.0, x, -x)
    tf.gather(x, [0])
    tf.squeeze(x[:, :1], 1)
    tf.reverse(x, [1])
    tf.cumsum(x, 1)


@program
def tensordot(tf: Any) -> None:
    tf.tensordot(sequence(tf), tf.get_variable("w", [5, 2]), [[2], [0]])
    tf.tensordot(sequence(tf, None, 4, 5), tf.get_variable("v", [5, 2]), 1)
    tf.einsum("abc,cd->abd", sequence(tf), tf.get_variable("u", [5, 2]))


EINSTEIN_SUMS = (
    ("ij,jk->ik", (None, 3), (3, 4)),
    ("ij,kj->ik", (None, None), (None, None)),
    ("ij,j->i", (None, 3), (3,)),
    ("ij,ij->", (None, 3), (None, 3)),
    ("ij,ij->i", (2, 3), (2, None)),
    ("ij,ij->ji", (None, 3), (None, 3)),
    ("ij,k->ijk", (None, 3), (4,)),
    ("jbi,bjk->ibk", (3, 2, 2), (2, 3, None)),
    ("bij,bjk->bik", (None, None, 3), (None, 3, None)),
    ("btd,dhk->bthk", (None, None, 3), (3, 4, 5)),
    ("bthk,bshk->bhts", (None, None, 4, 5), (None, None, 4, 5)),
    ("bthk,hkd->btd", (None, 6, 4, 5), (4, 5, 3)),
    ("ij,jk,kl->il", (None, 3), (3, None), (None, 4)),
    ("ij->ji", (None, 3)),
    ("ij->i", (None, 3)),
)


@program
def norms_and_starts(tf: Any) -> None:
    tf.clip_by_global_norm([rows(tf), rows(tf)], 1.0)
    tf.gradients(tf.identity(rows(tf), "x"), tf.get_default_graph().get_tensor_by_name("x:0"))
    tf.image.per_image_standardization(tf.placeholder(tf.float64, [4, 4, 3]))


@program
def einstein_sums(tf: Any) -> None:
    for equation, *shapes in EINSTEIN_SUMS:
        tf.einsum(equation, *[tf.placeholder(tf.float32, shape) for shape in shapes])
        tf.random_uniform([2])


@program
def reductions(tf: Any) -> None:
    x = rows(tf)
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
def dataset(tf: Any) -> None:
    data = (
        tf.data.Dataset.from_tensor_slices((np.zeros([8, 3], np.float32), np.zeros([8], np.float32)))
        .shuffle(8)
        .repeat()
        .batch(4)
        .prefetch(1)
    )
    data.make_one_shot_iterator().get_next()


@program
def dataset_range_map(tf: Any) -> None:
    tf.data.Dataset.range(10).map(lambda i: i * 2).filter(
        lambda i: i > 3
    ).make_initializable_iterator().get_next()


@program
def dataset_of_records(tf: Any) -> None:
    def parse(text):
        return tf.parse_single_example(text, {"x": tf.FixedLenFeature([3], tf.float32)})["x"]

    tf.data.TFRecordDataset(["a"]).map(parse, 2).shuffle(5).padded_batch(
        2, [3]
    ).make_initializable_iterator().get_next()


@program
def examples(tf: Any) -> None:
    tf.parse_example(
        tf.placeholder(tf.string, [None]),
        {"x": tf.FixedLenFeature([3], tf.float32), "y": tf.VarLenFeature(tf.int64)},
    )


@program
def feature_columns(tf: Any) -> None:
    f = tf.feature_column
    columns = [
        f.numeric_column("x"),
        f.embedding_column(f.categorical_column_with_hash_bucket("w", 9), 3),
        f.indicator_column(f.categorical_column_with_identity("i", 4)),
    ]
    tf.feature_column.input_layer(
        {"x": rows(tf, None, 1), "w": tf.placeholder(tf.string, [None, 1]), "i": labels(tf, None, 1)},
        columns,
    )


@program
def linear_model(tf: Any) -> None:
    f = tf.feature_column
    tf.feature_column.linear_model(
        {"x": rows(tf, None, 1), "w": tf.placeholder(tf.string, [None, 1])},
        [f.numeric_column("x"), f.categorical_column_with_hash_bucket("w", 9)],
    )


def head_in_training(tf: Any, head: Any, outputs: int) -> None:
    head.create_estimator_spec(
        {"x": rows(tf)},
        tf.estimator.ModeKeys.TRAIN,
        tf.layers.dense(rows(tf), outputs),
        labels(tf, None, 1),
        train_op_fn=lambda loss: tf.no_op(),
    )


@program
def head_binary(tf: Any) -> None:
    head_in_training(tf, tf.contrib.estimator.binary_classification_head(), 1)


@program
def head_multi(tf: Any) -> None:
    head_in_training(tf, tf.contrib.estimator.multi_class_head(3), 3)


@program
def model_mlp_by_hand(tf: Any) -> None:
    x = rows(tf)
    w = tf.Variable(tf.random_normal([10, 5]))
    b = tf.Variable(tf.zeros([5]))
    h = tf.nn.dropout(tf.nn.relu(tf.matmul(x, w) + b), 0.5)
    w2 = tf.Variable(tf.truncated_normal([5, 2], stddev=0.1))
    b2 = tf.Variable(tf.constant(0.1, shape=[2]))
    logits = tf.matmul(h, w2) + b2
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=rows(tf, None, 2), logits=logits))
    tf.train.AdamOptimizer().minimize(loss)
    tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), tf.argmax(rows(tf, None, 2), 1)), tf.float32))


@program
def model_cnn(tf: Any) -> None:
    h = tf.layers.conv2d(images(tf), 4, 3, activation=tf.nn.relu)
    h = tf.layers.flatten(tf.layers.max_pooling2d(h, 2, 2))
    h = tf.layers.dropout(tf.layers.dense(h, 10, activation=tf.nn.relu), 0.3, training=True)
    logits = tf.layers.dense(tf.layers.batch_normalization(h, training=True), 3)
    loss = tf.losses.sparse_softmax_cross_entropy(labels(tf), logits)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        tf.train.AdamOptimizer().minimize(loss, tf.train.get_or_create_global_step())
    tf.random_uniform([1])


@program
def model_two_towers(tf: Any) -> None:
    for scope in ("a", "b"):
        with tf.variable_scope(scope):
            h = tf.layers.dense(rows(tf), 4, tf.nn.relu)
            tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.square(h)))
    tf.random_normal([2])


@program
def model_autoencoder(tf: Any) -> None:
    x = rows(tf)
    mean, scale = tf.layers.dense(x, 2), tf.layers.dense(x, 2)
    z = mean + tf.exp(0.5 * scale) * tf.random_normal(tf.shape(scale))
    y = tf.layers.dense(z, 10, tf.nn.sigmoid)
    loss = tf.reduce_mean(
        tf.reduce_sum(tf.square(x - y), 1)
        - 0.5 * tf.reduce_sum(1 + scale - tf.square(mean) - tf.exp(scale), 1)
    )
    tf.train.AdamOptimizer().minimize(loss)


@program
def model_generative(tf: Any) -> None:
    def generate(z):
        with tf.variable_scope("g"):
            return tf.layers.dense(tf.layers.dense(z, 8, tf.nn.leaky_relu), 10, tf.nn.tanh)

    def judge(x):
        with tf.variable_scope("d", reuse=tf.AUTO_REUSE):
            return tf.layers.dense(tf.layers.dense(x, 8, tf.nn.leaky_relu), 1)

    real, made = judge(rows(tf)), judge(generate(tf.random_normal([4, 3])))
    cross = tf.nn.sigmoid_cross_entropy_with_logits
    d = tf.reduce_mean(
        cross(logits=real, labels=tf.ones_like(real)) + cross(logits=made, labels=tf.zeros_like(made))
    )
    g = tf.reduce_mean(cross(logits=made, labels=tf.ones_like(made)))
    for loss, scope in ((d, "d"), (g, "g")):
        tf.train.AdamOptimizer(1e-3, 0.5).minimize(loss, var_list=tf.trainable_variables(scope))


@program
def model_text(tf: Any) -> None:
    words = tf.nn.embedding_lookup(tf.get_variable("e", [9, 5]), labels(tf, None, 4))
    cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(4), output_keep_prob=0.5)
    outputs, state = tf.nn.dynamic_rnn(cell, words, dtype=tf.float32)
    loss = tf.losses.sparse_softmax_cross_entropy(labels(tf), tf.layers.dense(outputs[:, -1], 3))
    tf.train.AdamOptimizer().minimize(loss)
    tf.layers.dense(state.h, 2)


def _diagonal(tf: Any, scale: Any) -> Any:
    return tf.contrib.distributions.MultivariateNormalDiag(tf.layers.dense(rows(tf), 2), scale)


@program
def diagonal_normal_policy(tf: Any) -> None:
    policy = _diagonal(tf, tf.exp(tf.get_variable("log_scale", [2])))
    ratio = tf.exp(policy.log_prob(policy.sample()) - policy.log_prob(rows(tf)[:, :2]))
    tf.train.AdamOptimizer().minimize(-tf.reduce_mean(ratio) - tf.reduce_mean(policy.entropy()))
    tf.layers.dense(policy.mode(), 2)


@program
def diagonal_normal_code(tf: Any) -> None:
    prior = tf.contrib.distributions.MultivariateNormalDiag(tf.zeros([2]), tf.ones([2]))
    code = _diagonal(tf, tf.nn.softplus(tf.layers.dense(rows(tf), 2)))
    tf.layers.dense(code.sample(3), 10)
    tf.layers.dense(tf.contrib.distributions.kl_divergence(code, prior)[:, None], 2)


@program
def affine_normals(tf: Any) -> None:
    d = tf.contrib.distributions
    d.MultivariateNormalTriL(tf.zeros([2]), tf.eye(2)).sample()
    d.TransformedDistribution(d.Normal(0.0, 1.0), d.bijectors.Exp()).log_prob([1.0, 2.0])
    d.Independent(d.Normal(rows(tf), 1.0), 1).log_prob(rows(tf))
    d.bijectors.AffineLinearOperator(None, tf.linalg.LinearOperatorDiag(tf.ones([10]))).inverse(rows(tf))
    tf.random_normal([2])


@program
def pruned_weights(tf: Any) -> None:
    step, kernel = tf.train.get_or_create_global_step(), tf.get_variable("w", [10, 3])
    loss = tf.reduce_sum(rows(tf) @ tf.contrib.model_pruning.apply_mask(kernel, "layer"))
    spec = tf.contrib.model_pruning.get_pruning_hparams().parse("end_pruning_step=9,threshold_decay=0.5")
    pruning = tf.contrib.model_pruning.Pruning(spec, step)
    with tf.control_dependencies([tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)]):
        pruning.conditional_mask_update_op()
    tf.random_normal([2])
    pruning.mask_update_op()
    pruning.add_pruning_summaries()
    tf.random_normal([2])
