"""More small programs for `node_programs`: functions of numbers, images, metrics and optimisers."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.golden.node_programs import PROGRAMS, images, labels, rows, sequence

for _name, _build in {
    "confusion_matrix": lambda tf: (
        tf.confusion_matrix(labels(tf), labels(tf)),
        tf.confusion_matrix([0, 1], [1, 1], 3, weights=[0.5, 2.0]),
        tf.confusion_matrix(labels(tf), labels(tf), 3, tf.float64, weights=tf.placeholder(tf.float32)),
    ),
    "metric_weighted_counts": lambda tf: (
        tf.metrics.true_positives([0, 1], [1, 1], [0.5, 0.5]),
        tf.metrics.precision(labels(tf, 3), labels(tf, 3), weights=[0.1, 0.2, 0.3]),
    ),
    "rank_checks": lambda tf: (
        tf.assert_rank(rows(tf), 2),
        tf.assert_rank_at_least(rows(tf), 1),
        tf.assert_rank_in(rows(tf), [1, 2]),
        tf.assert_rank(tf.placeholder(tf.float32), 2),
    ),
    "spreads": lambda tf: (
        tf.math.reduce_variance(rows(tf)),
        tf.math.reduce_std(rows(tf), 1, keepdims=True),
    ),
    "clipping": lambda tf: (
        tf.clip_by_average_norm(rows(tf, 3, 4), 1.0),
        tf.clip_by_average_norm(rows(tf), 1.0),
        tf.clip_by_global_norm([rows(tf), None, rows(tf)], 1.0, name="shorter"),
        tf.saturate_cast(rows(tf), tf.uint8),
        tf.saturate_cast(tf.placeholder(tf.uint8, [3]), tf.int16),
        tf.saturate_cast(tf.placeholder(tf.int32, [3]), tf.uint8),
    ),
    "small_functions": lambda tf: (
        tf.meshgrid([1, 2], [1]),
        tf.meshgrid(labels(tf), labels(tf), indexing="ij"),
        tf.searchsorted([1.0, 2.0], [1.5]),
        tf.searchsorted(rows(tf), rows(tf), "right", name="places"),
        tf.where([True, False]),
        tf.where(tf.placeholder(tf.bool, [None])),
        tf.math.xdivy(rows(tf), rows(tf)),
        tf.linalg.logdet(tf.placeholder(tf.float32, [3, 3])),
        tf.random.stateless_uniform([2], [1, 2]),
        tf.random.stateless_normal([2], [1, 2]),
    ),
    "nn_functions": lambda tf: (
        tf.nn.relu_layer(rows(tf), tf.ones([10, 2]), [1.0, 2.0]),
        tf.nn.xw_plus_b(rows(tf), tf.ones([10, 2]), [1.0, 2.0]),
        tf.nn.log_poisson_loss(rows(tf), rows(tf), compute_full_loss=True),
        tf.nn.log_poisson_loss(rows(tf, 3, 4), rows(tf, 3, 4), compute_full_loss=True),
    ),
    "image_comparisons": lambda tf: (
        tf.image.psnr(images(tf), images(tf), 1.0),
        tf.image.psnr(images(tf, 8, 8, 3), images(tf, 8, 8, 3), 1.0),
        tf.image.sobel_edges(images(tf, 2, 8, 8, 3)),
        tf.image.image_gradients(images(tf)),
        tf.image.image_gradients(images(tf, 2, 8, 8, 3)),
    ),
    "image_colours": lambda tf: (
        tf.image.grayscale_to_rgb(images(tf, None, 8, 8, 1)),
        tf.image.convert_image_dtype(tf.placeholder(tf.uint8, [4, 4, 3]), tf.int16, saturate=True),
        tf.image.random_jpeg_quality(images(tf, 8, 8, 3), 70, 90),
    ),
    "image_turned": lambda tf: (
        tf.image.rot90(images(tf, 8, 8, 3)),
        tf.image.rot90(images(tf), 3),
        tf.image.rot90(images(tf), tf.placeholder(tf.int32, [])),
    ),
    "group_norm": lambda tf: (
        tf.contrib.layers.group_norm(images(tf, 2, 8, 8, 4), 2),
        tf.contrib.layers.group_norm(images(tf, None, 8, 8, 4), 2, center=False),
    ),
    "optimize_loss_clipped": lambda tf: tf.contrib.layers.optimize_loss(
        tf.reduce_sum(tf.get_variable("w", [3])),
        tf.train.get_or_create_global_step(),
        0.1,
        "SGD",
        clip_gradients=1.0,
    ),
    "moving_average_optimizer": lambda tf: tf.contrib.opt.MovingAverageOptimizer(
        tf.train.GradientDescentOptimizer(0.1)
    ).minimize(tf.reduce_sum(tf.get_variable("w", [3]))),
}.items():
    PROGRAMS[_name] = _build


def _decoded(tf: Any, helper: Any) -> None:
    cell = tf.nn.rnn_cell.GRUCell(4)
    decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32))
    tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=3)


def _gathered(tf: Any) -> None:
    for x in (sequence(tf), sequence(tf, 3, None, 5)):
        tf.gradients(tf.gather(x, tf.placeholder(tf.int32, [3, 2]), batch_dims=1), x)
        tf.random_uniform([])


def _with_values(tf: Any) -> None:
    """Variables of given values, whose type is said or not."""
    for i, value in enumerate((0.5, [1.0, 2.0], np.zeros([2, 3], np.float32), tf.constant(1.0))):
        with tf.variable_scope("values"):
            tf.get_variable(f"a{i}", initializer=value)
            tf.get_variable(f"b{i}", dtype=tf.float32, initializer=value)
            tf.get_variable(f"c{i}", dtype=tf.float32, initializer=value, use_resource=True)
    tf.get_variable("random", [2])


def _drawn(tf: Any) -> None:
    x, table = rows(tf, 3, 4), tf.contrib.distributions
    for distribution in (
        table.Poisson(x),
        table.HalfNormal(x),
        table.Chi2(x),
        table.InverseGamma(x, x),
        table.OneHotCategorical(logits=x),
        table.OneHotCategorical(logits=rows(tf, None, 3, 4)),
        table.ExpRelaxedOneHotCategorical(0.5, logits=x),
    ):
        distribution.sample()


def _dilated(tf: Any, size: int | None) -> None:
    images = tf.placeholder(tf.float32, [None, size, size, 3])
    first = tf.placeholder(tf.float32, [2, 3, size, 9])
    filters = tf.ones([3, 3, 3, 2])
    for padding in ("SAME", "VALID"):
        tf.nn.convolution(images, filters, padding, dilation_rate=[2, 3])
        tf.nn.convolution(first, filters, padding, dilation_rate=[1, 2], data_format="NCHW")
        tf.nn.atrous_conv2d(images, filters, 2, padding)
        tf.nn.depthwise_conv2d(images, filters, [1, 1, 1, 1], padding, rate=[2, 2])
        tf.nn.atrous_conv2d_transpose(images, tf.ones([3, 3, 2, 3]), [1, 12, 12, 2], 2, padding)
    tf.nn.atrous_conv2d_transpose(images, tf.ones([2, 2, 3, 3]), tf.shape(images), 3, "SAME")
    tf.nn.convolution(tf.placeholder(tf.float32, [2, size, 3]), tf.ones([3, 3, 2]), "SAME", dilation_rate=[4])
    tf.nn.pool(images, [2, 2], "AVG", "VALID", [2, 3])
    tf.nn.with_space_to_batch(images, [2], "VALID", lambda x, *rest: x, spatial_dims=[2])


def _dilated_layers(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [None, None, None, 3])
    for _ in range(2):
        x = tf.layers.conv2d(x, 4, 3, dilation_rate=(2, 3), padding="same", activation=tf.nn.relu)
    x = tf.layers.dropout(tf.layers.separable_conv2d(x, 4, 3, dilation_rate=2), training=True)
    x = tf.contrib.layers.conv2d(x, 5, 3, rate=2, normalizer_fn=tf.contrib.layers.batch_norm)
    x = tf.contrib.layers.separable_conv2d(x, 5, 3, 1, rate=2)
    sequences = tf.layers.conv1d(sequence(tf, None, 7, 3), 4, 3, dilation_rate=2)
    _descended(tf, tf.layers.dense(tf.reduce_mean(x, [1, 2]), 4) + tf.reduce_sum(sequences))


def _descended(tf: Any, values: Any) -> None:
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.nn.dropout(values, 0.5)))


for _name, _build in {
    "decoding_sampled": lambda tf: _decoded(
        tf, tf.contrib.seq2seq.SampleEmbeddingHelper(rows(tf, 5, 4), tf.constant([0, 1]), 1)
    ),
    "decoding_scheduled": lambda tf: _decoded(
        tf,
        tf.contrib.seq2seq.ScheduledEmbeddingTrainingHelper(
            sequence(tf, 2, 3, 4), [2, 1], rows(tf, 5, 4), 0.5
        ),
    ),
    "decoding_scheduled_outputs": lambda tf: _decoded(
        tf, tf.contrib.seq2seq.ScheduledOutputTrainingHelper(sequence(tf, 2, 3, 4), [2, 1], 0.5)
    ),
    "contrib_draws": _drawn,
    "variables_of_values": _with_values,
    "segment_means": lambda tf: (
        tf.unsorted_segment_mean(rows(tf), labels(tf), 3),
        tf.unsorted_segment_sqrt_n(rows(tf, 2, 3), [1, 0], 3),
        tf.bincount(tf.placeholder(tf.int32, [None]), minlength=2),
        tf.bincount(tf.placeholder(tf.int32, [None]), rows(tf, None)),
    ),
    "gradients_of_gathers_in_batches": _gathered,
    "dilated_functions": lambda tf: _dilated(tf, None),
    "dilated_functions_of_known": lambda tf: _dilated(tf, 12),
    "dilated_layers": _dilated_layers,
    "gradients_of_swish": lambda tf: _descended(tf, tf.nn.swish(tf.layers.dense(rows(tf, None, 4), 3))),
}.items():
    PROGRAMS[_name] = _build
