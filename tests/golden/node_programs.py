"""Small programs whose lists of nodes are compared with TensorFlow 1.15's, in the order of their making.

With a seed of the graph alone, a random operation's second seed is the number of nodes made before it. So a
program draws TensorFlow's numbers if each function that it calls makes as many nodes as TensorFlow's does.
Each program is a function of the module ``tf`` that builds nodes in the default graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.golden.name_programs import initializers_without_arguments

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Adds the program to the table."""
    PROGRAMS[function.__name__.strip("_")] = function
    return function


def node_lines(tf: Any, build: Callable[[Any], Any]) -> list[str]:
    """A line for each node: its name, its type, its inputs; for a random one its second seed."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(7)
        build(tf)
        lines = []
        for op in graph.get_operations():
            inputs = [_tensor_name(tensor) for tensor in op.inputs]
            inputs += sorted("^" + before.name for before in op.control_inputs)
            seed = [f"seed2={op.get_attr('seed2')}"] if "seed2" in op.node_def.attr else []
            lines.append(" ".join([op.name, op.type, *inputs, *seed]))
    return lines


def _tensor_name(tensor: Any) -> str:
    name, index = tensor.name.rsplit(":", 1)
    return name if index == "0" else f"{name}:{index}"


def images(tf: Any, *shape: Any) -> Any:
    return tf.placeholder(tf.float32, list(shape) or [None, 8, 8, 3], "images")


def rows(tf: Any, *shape: Any) -> Any:
    return tf.placeholder(tf.float32, list(shape) or [None, 10], "rows")


def labels(tf: Any, *shape: Any) -> Any:
    return tf.placeholder(tf.int64, list(shape) or [None], "labels")


def sequence(tf: Any, *shape: Any) -> Any:
    return tf.placeholder(tf.float32, list(shape) or [3, 4, 5], "sequence")


for _name, _build in {
    # layers
    "dense": lambda tf: tf.layers.dense(rows(tf), 3),
    "dense_relu": lambda tf: tf.layers.dense(rows(tf), 3, activation=tf.nn.relu, name="hidden"),
    "dense_regularised": lambda tf: tf.layers.dense(
        rows(tf), 3, kernel_regularizer=tf.contrib.layers.l2_regularizer(0.1)
    ),
    "dense_on_sequences": lambda tf: tf.layers.dense(sequence(tf), 3),
    "dense_on_unknown_batch_of_sequences": lambda tf: tf.layers.dense(sequence(tf, None, None, 5), 3),
    "conv2d": lambda tf: tf.layers.conv2d(images(tf), 4, 3, activation=tf.nn.relu),
    "conv2d_same_strides": lambda tf: tf.layers.conv2d(images(tf), 4, 3, 2, padding="same", use_bias=False),
    "conv2d_dilated": lambda tf: tf.layers.conv2d(images(tf), 4, 3, dilation_rate=2),
    "conv2d_channels_first": lambda tf: tf.layers.conv2d(
        images(tf, 2, 3, 8, 8), 4, 3, data_format="channels_first"
    ),
    "conv1d": lambda tf: tf.layers.conv1d(sequence(tf), 4, 3),
    "conv3d": lambda tf: tf.layers.conv3d(images(tf, 2, 8, 8, 8, 3), 4, 3),
    "conv2d_transpose": lambda tf: tf.layers.conv2d_transpose(images(tf), 4, 3, 2, padding="same"),
    "conv3d_transpose": lambda tf: tf.layers.conv3d_transpose(images(tf, 2, 4, 4, 4, 3), 4, 3),
    "separable_conv2d": lambda tf: tf.layers.separable_conv2d(images(tf), 4, 3),
    "separable_conv1d": lambda tf: tf.layers.separable_conv1d(sequence(tf), 4, 3),
    "max_pooling2d": lambda tf: tf.layers.max_pooling2d(images(tf), 2, 2),
    "pooling": lambda tf: (
        tf.layers.average_pooling2d(images(tf), 2, 2),
        tf.layers.max_pooling1d(sequence(tf), 2, 2),
        tf.layers.average_pooling1d(sequence(tf), 2, 2),
        tf.layers.max_pooling3d(images(tf, 2, 8, 8, 8, 3), 2, 2),
    ),
    "flatten": lambda tf: (tf.layers.flatten(images(tf)), tf.layers.flatten(images(tf, None, None, 3))),
    "dropout": lambda tf: tf.layers.dropout(rows(tf), 0.3, training=True),
    "dropout_switched": lambda tf: tf.layers.dropout(rows(tf), 0.3, training=tf.placeholder(tf.bool, [])),
    "dropout_off": lambda tf: tf.layers.dropout(rows(tf), 0.3),
    "dropout_noise_shape": lambda tf: tf.layers.dropout(sequence(tf), 0.3, [3, 1, 5], training=True),
    "batch_normalization": lambda tf: tf.layers.batch_normalization(images(tf), training=True),
    "batch_normalization_rows": lambda tf: tf.layers.batch_normalization(rows(tf), training=True),
    "batch_normalization_off": lambda tf: tf.layers.batch_normalization(images(tf)),
    "batch_normalization_switched": lambda tf: tf.layers.batch_normalization(
        images(tf), training=tf.placeholder(tf.bool, [])
    ),
    "batch_normalization_rows_switched": lambda tf: tf.layers.batch_normalization(
        rows(tf), training=tf.placeholder(tf.bool, [])
    ),
    # nn
    "nn_dropout": lambda tf: tf.nn.dropout(rows(tf), tf.placeholder(tf.float32, [], "keep")),
    "nn_dropout_rate": lambda tf: tf.nn.dropout(rows(tf), rate=0.4),
    "nn_alpha_dropout": lambda tf: tf.contrib.nn.alpha_dropout(rows(tf), 0.4),
    "nn_convolution": lambda tf: tf.nn.conv2d(
        images(tf), tf.Variable(tf.truncated_normal([3, 3, 3, 4], stddev=0.1)), [1, 1, 1, 1], "SAME"
    ),
    "nn_convolution_nd": lambda tf: tf.nn.convolution(
        images(tf), tf.get_variable("w", [3, 3, 3, 4]), "SAME", dilation_rate=[2, 2]
    ),
    "nn_atrous": lambda tf: tf.nn.atrous_conv2d(images(tf), tf.get_variable("w", [3, 3, 3, 4]), 2, "SAME"),
    "nn_conv2d_transpose": lambda tf: tf.nn.conv2d_transpose(
        images(tf, 2, 8, 8, 3), tf.get_variable("w", [3, 3, 4, 3]), [2, 16, 16, 4], [1, 2, 2, 1]
    ),
    "nn_conv1d": lambda tf: tf.nn.conv1d(sequence(tf), tf.get_variable("w", [3, 5, 4]), 1, "SAME"),
    "nn_moments": lambda tf: tf.nn.moments(images(tf), [0, 1, 2]),
    "nn_moments_kept": lambda tf: tf.nn.moments(rows(tf), [1], keep_dims=True),
    "nn_batch_normalization": lambda tf: tf.nn.batch_normalization(
        rows(tf), *tf.nn.moments(rows(tf), [0]), offset=tf.zeros([10]), scale=None, variance_epsilon=1e-3
    ),
    "nn_fused_batch_norm": lambda tf: tf.nn.fused_batch_norm(images(tf), tf.ones([3]), tf.zeros([3])),
    "nn_l2_normalize": lambda tf: tf.nn.l2_normalize(rows(tf), 1),
    "nn_activations": lambda tf: [
        f(rows(tf))
        for f in (
            tf.nn.relu,
            tf.nn.relu6,
            tf.nn.elu,
            tf.nn.selu,
            tf.nn.leaky_relu,
            tf.nn.crelu,
            tf.nn.softplus,
            tf.nn.softsign,
            tf.nn.sigmoid,
            tf.nn.tanh,
            tf.nn.softmax,
            tf.nn.log_softmax,
            tf.nn.swish,
            tf.nn.l2_loss,
            tf.log_sigmoid,
        )
    ],
    "nn_softmax_of_sequences": lambda tf: (
        tf.nn.softmax(sequence(tf)),
        tf.nn.softmax(sequence(tf), axis=1),
        tf.nn.log_softmax(sequence(tf), 0),
    ),
    "nn_top_k": lambda tf: (tf.nn.top_k(rows(tf), 2), tf.nn.in_top_k(rows(tf), labels(tf), 2)),
    "nn_lrn_pool": lambda tf: (
        tf.nn.lrn(images(tf)),
        tf.nn.max_pool(images(tf), [1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
        tf.nn.pool(images(tf), [2, 2], "AVG", "SAME"),
    ),
    "softmax_cross_entropy": lambda tf: tf.nn.softmax_cross_entropy_with_logits(
        labels=rows(tf), logits=rows(tf)
    ),
    "softmax_cross_entropy_v2": lambda tf: tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=rows(tf), logits=rows(tf)
    ),
    "softmax_cross_entropy_sequences": lambda tf: tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=sequence(tf), logits=sequence(tf, None, 4, 5)
    ),
    "sparse_cross_entropy": lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels(tf), logits=rows(tf)
    ),
    "sparse_cross_entropy_sequences": lambda tf: tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels(tf, 3, 4), logits=sequence(tf)
    ),
    "sigmoid_cross_entropy": lambda tf: tf.nn.sigmoid_cross_entropy_with_logits(
        labels=rows(tf), logits=rows(tf)
    ),
    "weighted_cross_entropy": lambda tf: tf.nn.weighted_cross_entropy_with_logits(
        targets=rows(tf), logits=rows(tf), pos_weight=2.0
    ),
    "embedding_lookup": lambda tf: tf.nn.embedding_lookup(tf.get_variable("e", [9, 4]), labels(tf)),
    "embedding_lookup_normed": lambda tf: tf.nn.embedding_lookup(
        tf.get_variable("e", [9, 4]), labels(tf), max_norm=1.0
    ),
    "embedding_lookup_partitioned": lambda tf: tf.nn.embedding_lookup(
        tf.get_variable("e", [9, 4], partitioner=tf.fixed_size_partitioner(2)), labels(tf), "div"
    ),
    "embedding_lookup_resource": lambda tf: tf.nn.embedding_lookup(
        tf.get_variable("e", [9, 4], use_resource=True), labels(tf)
    ),
    "embedding_lookup_sparse": lambda tf: tf.nn.embedding_lookup_sparse(
        tf.get_variable("e", [9, 4]), tf.sparse_placeholder(tf.int64, [3, 5]), None, combiner="mean"
    ),
    "nce_loss": lambda tf: tf.nn.nce_loss(
        tf.get_variable("w", [20, 4]), tf.get_variable("b", [20]), labels(tf, 3, 1), rows(tf, 3, 4), 5, 20
    ),
    "sampled_softmax_loss": lambda tf: tf.nn.sampled_softmax_loss(
        tf.get_variable("w", [20, 4]), tf.get_variable("b", [20]), labels(tf, 3, 1), rows(tf, 3, 4), 5, 20
    ),
    # losses and metrics
    "loss_mean_squared": lambda tf: tf.losses.mean_squared_error(rows(tf), rows(tf)),
    "loss_mean_squared_known": lambda tf: tf.losses.mean_squared_error(rows(tf, 4, 2), rows(tf, 4, 2)),
    "loss_weighted": lambda tf: tf.losses.mean_squared_error(
        rows(tf), rows(tf), weights=tf.placeholder(tf.float32, [None, 1])
    ),
    "loss_absolute": lambda tf: tf.losses.absolute_difference(rows(tf), rows(tf)),
    "loss_huber": lambda tf: tf.losses.huber_loss(rows(tf), rows(tf)),
    "loss_hinge": lambda tf: tf.losses.hinge_loss(rows(tf), rows(tf)),
    "loss_log": lambda tf: tf.losses.log_loss(rows(tf), rows(tf)),
    "loss_cosine": lambda tf: tf.losses.cosine_distance(rows(tf), rows(tf), axis=1),
    "loss_softmax": lambda tf: tf.losses.softmax_cross_entropy(rows(tf), rows(tf)),
    "loss_softmax_smoothed": lambda tf: tf.losses.softmax_cross_entropy(
        rows(tf), rows(tf), label_smoothing=0.1
    ),
    "loss_sparse_softmax": lambda tf: tf.losses.sparse_softmax_cross_entropy(labels(tf), rows(tf)),
    "loss_sigmoid": lambda tf: tf.losses.sigmoid_cross_entropy(rows(tf), rows(tf)),
    "loss_pairwise": lambda tf: tf.losses.mean_pairwise_squared_error(rows(tf, 4, 2), rows(tf, 4, 2)),
    "losses_total": lambda tf: (
        tf.losses.add_loss(tf.constant(1.0)),
        tf.losses.add_loss(tf.constant(2.0)),
        tf.losses.get_total_loss(),
    ),
    "metric_accuracy": lambda tf: tf.metrics.accuracy(labels(tf), tf.argmax(rows(tf), 1)),
    "metric_mean": lambda tf: tf.metrics.mean(rows(tf)),
    "metric_auc": lambda tf: tf.metrics.auc(tf.placeholder(tf.bool, [None]), rows(tf, None)),
    "metric_precision_recall": lambda tf: (
        tf.metrics.precision(labels(tf), labels(tf)),
        tf.metrics.recall(labels(tf), labels(tf)),
    ),
    "metric_errors": lambda tf: (
        tf.metrics.mean_squared_error(rows(tf), rows(tf)),
        tf.metrics.root_mean_squared_error(rows(tf), rows(tf)),
        tf.metrics.mean_absolute_error(rows(tf), rows(tf)),
    ),
    "metric_mean_iou": lambda tf: tf.metrics.mean_iou(labels(tf), labels(tf), 3),
    # contrib.layers and slim
    "fully_connected": lambda tf: tf.contrib.layers.fully_connected(rows(tf), 4),
    "fully_connected_normed": lambda tf: tf.contrib.layers.fully_connected(
        rows(tf), 4, normalizer_fn=tf.contrib.layers.batch_norm
    ),
    "fully_connected_regularised": lambda tf: tf.contrib.layers.fully_connected(
        rows(tf), 4, weights_regularizer=tf.contrib.layers.l2_regularizer(1e-3)
    ),
    "contrib_convolution2d": lambda tf: tf.contrib.layers.conv2d(images(tf), 4, 3),
    "contrib_convolution2d_normed": lambda tf: tf.contrib.layers.conv2d(
        images(tf), 4, 3, rate=2, normalizer_fn=tf.contrib.layers.batch_norm
    ),
    "contrib_convolution2d_transpose": lambda tf: tf.contrib.layers.conv2d_transpose(images(tf), 4, 3, 2),
    "contrib_separable": lambda tf: tf.contrib.layers.separable_conv2d(images(tf), 4, 3, 1),
    "contrib_depthwise": lambda tf: tf.contrib.layers.separable_conv2d(images(tf), None, 3, 1),
    "contrib_pooling": lambda tf: (
        tf.contrib.layers.max_pool2d(images(tf), 2),
        tf.contrib.layers.avg_pool2d(images(tf), 2),
    ),
    "contrib_dropout": lambda tf: tf.contrib.layers.dropout(rows(tf), 0.6),
    "contrib_dropout_switched": lambda tf: tf.contrib.layers.dropout(
        rows(tf), 0.6, is_training=tf.placeholder(tf.bool, [])
    ),
    "contrib_flatten": lambda tf: tf.contrib.layers.flatten(images(tf)),
    "contrib_batch_norm": lambda tf: tf.contrib.layers.batch_norm(images(tf), is_training=True, scale=True),
    "contrib_batch_norm_unfused": lambda tf: tf.contrib.layers.batch_norm(rows(tf), fused=False),
    "contrib_batch_norm_switched": lambda tf: tf.contrib.layers.batch_norm(
        images(tf), is_training=tf.placeholder(tf.bool, [])
    ),
    "contrib_layer_norm": lambda tf: tf.contrib.layers.layer_norm(rows(tf)),
    "contrib_instance_norm": lambda tf: tf.contrib.layers.instance_norm(images(tf)),
    "contrib_embed_sequence": lambda tf: tf.contrib.layers.embed_sequence(labels(tf, 3, 4), 9, 5),
    "contrib_optimize_loss": lambda tf: tf.contrib.layers.optimize_loss(
        tf.reduce_sum(tf.get_variable("w", [3])), tf.train.get_or_create_global_step(), 0.1, "Adam"
    ),
    "slim_net": lambda tf: tf.contrib.slim.fully_connected(
        tf.contrib.slim.dropout(
            tf.contrib.slim.flatten(
                tf.contrib.slim.max_pool2d(tf.contrib.slim.conv2d(images(tf), 4, [3, 3]), 2)
            )
        ),
        10,
        activation_fn=None,
    ),
    # random numbers and initialisers
    "random_values": lambda tf: (
        tf.random_normal([2]),
        tf.random_uniform([2], 1, 9, tf.int32),
        tf.random_uniform([2], -1.0, 1.0),
        tf.truncated_normal([2]),
        tf.random_shuffle(tf.range(4)),
        tf.multinomial([[0.0, 1.0]], 3),
        tf.random_poisson([1.0], [2]),
    ),
    "random_gamma": lambda tf: tf.random_gamma([2], [1.0, 2.0], 3.0),
    "random_crop": lambda tf: tf.random_crop(images(tf, 8, 8, 3), [4, 4, 3]),
    "image_random": lambda tf: [
        f(images(tf, 8, 8, 3))
        for f in (
            tf.image.random_flip_left_right,
            tf.image.random_flip_up_down,
            lambda image: tf.image.random_brightness(image, 0.2),
            lambda image: tf.image.random_contrast(image, 0.2, 0.5),
            lambda image: tf.image.random_hue(image, 0.2),
            lambda image: tf.image.random_saturation(image, 0.2, 0.5),
        )
    ],
    "image_random_batch": lambda tf: (
        tf.image.random_flip_left_right(images(tf)),
        tf.image.random_flip_up_down(images(tf)),
    ),
    "image_changes": lambda tf: (
        tf.image.resize_images(images(tf), [4, 4]),
        tf.image.resize_image_with_crop_or_pad(images(tf), 6, 12),
        tf.image.per_image_standardization(images(tf, 8, 8, 3)),
        tf.image.rgb_to_grayscale(images(tf)),
        tf.image.flip_left_right(images(tf, 8, 8, 3)),
        tf.image.rot90(images(tf, 8, 8, 3)),
        tf.image.adjust_brightness(images(tf), 0.1),
        tf.image.adjust_contrast(images(tf), 0.1),
        tf.image.central_crop(images(tf, 8, 8, 3), 0.5),
        tf.image.convert_image_dtype(tf.placeholder(tf.uint8, [4, 4, 3]), tf.float32),
    ),
    "image_decoding": lambda tf: (
        tf.image.decode_jpeg(tf.placeholder(tf.string, []), 3),
        tf.image.decode_image(tf.placeholder(tf.string, [])),
    ),
    "initializers": lambda tf: [
        tf.get_variable(f"v{i}", [3, 4], initializer=make())
        for i, make in enumerate(
            [
                *initializers_without_arguments(tf),
                tf.contrib.layers.xavier_initializer,
                tf.contrib.layers.variance_scaling_initializer,
            ]
        )
    ],
    "constant_initializers": lambda tf: (
        tf.get_variable("c", [3], initializer=tf.constant_initializer(0.1)),
        tf.get_variable("d", [2, 2], initializer=tf.initializers.identity()),
        tf.Variable(tf.zeros([3, 4])),
        tf.Variable(tf.constant(0.1, shape=[3])),
        tf.Variable(0, trainable=False),
        tf.Variable(tf.random_uniform([3, 4], -1.0, 1.0)),
    ),
    "distributions": lambda tf: [
        make().sample([2])
        for make in (
            lambda: tf.distributions.Normal(0.0, 1.0),
            lambda: tf.distributions.Uniform(0.0, 1.0),
            lambda: tf.distributions.Bernoulli(0.5),
            lambda: tf.distributions.Categorical([0.1, 0.2]),
            lambda: tf.distributions.Exponential(1.0),
            lambda: tf.distributions.Laplace(0.0, 1.0),
        )
    ],
    "distributions_gamma": lambda tf: [
        make().sample()
        for make in (
            lambda: tf.distributions.Gamma(1.0, 2.0),
            lambda: tf.distributions.Beta(1.0, 2.0),
            lambda: tf.distributions.Dirichlet([1.0, 2.0]),
            lambda: tf.distributions.StudentT(1.0, 2.0, 3.0),
        )
    ],
    "normal_log_prob": lambda tf: (
        tf.distributions.Normal(rows(tf), 1.0).log_prob(0.0),
        tf.distributions.Normal(0.0, 1.0).entropy(),
        tf.distributions.kl_divergence(tf.distributions.Normal(0.0, 1.0), tf.distributions.Normal(1.0, 2.0)),
    ),
    "logistic": lambda tf: tf.contrib.distributions.Logistic(0.0, 1.0).sample([2]),
    "diagonal_normal": lambda tf: tf.contrib.distributions.MultivariateNormalDiag(
        [0.0, 1.0], [1.0, 2.0]
    ).sample(),
}.items():
    PROGRAMS[_name] = _build
