"""Metrics of `tf.contrib.metrics` on small batches, run by flowstone and TensorFlow 1.15 alike."""

from __future__ import annotations

from typing import Any

import numpy as np


def cases(tf: Any) -> dict[str, Any]:
    """name -> a function that builds the metric and returns its value, or its values, and the update."""
    m = tf.contrib.metrics
    floats = [0.1, 0.9, 0.6, 0.4, 0.5]
    p, others = (lambda: tf.constant(floats)), (lambda: tf.constant([0.2, 0.8, 0.6, 0.1, 0.5]))
    labels, classes = (lambda: tf.constant([0, 1, 0, 1, 0])), (lambda: tf.constant([0, 1, 2, 1, 0]))
    b, w = (lambda: tf.constant([False, True, False, True, False])), [1.0, 2.0, 1.0, 0.5, 1.0]
    pb = lambda: tf.constant([True, True, False, True, False])  # noqa: E731
    scores = lambda: tf.constant([[0.1, 0.5, 0.4], [0.2, 0.7, 0.1]])  # noqa: E731
    dense = lambda: tf.constant([[1], [0]], tf.int64)  # noqa: E731
    top = lambda: tf.constant([[1, 2], [1, 0]], tf.int64)  # noqa: E731
    rows = lambda: tf.constant([[1.0, 2.0], [3.0, 4.0]])  # noqa: E731
    found: dict[str, Any] = {}
    for name in (
        "accuracy", "precision", "recall", "true_positives", "true_negatives", "false_positives",
        "false_negatives", "false_positive_rate", "false_negative_rate",
    ):  # fmt: skip
        found[name] = lambda name=name: getattr(m, f"streaming_{name}")(pb(), b(), w)
        if name != "accuracy":
            at = f"{name}_at_thresholds"
            found[at] = lambda at=at: getattr(m, f"streaming_{at}")(p(), b(), [0.2, 0.5], w)
    for name in (
        "mean_absolute_error", "mean_squared_error", "root_mean_squared_error", "covariance",
        "pearson_correlation",
    ):  # fmt: skip
        found[name] = lambda name=name: getattr(m, f"streaming_{name}")(p(), others(), w)
    found.update(
        mean=lambda: m.streaming_mean(p(), w),
        mean_tensor=lambda: m.streaming_mean_tensor(p()),
        covariance_unweighted=lambda: m.streaming_covariance(p(), others()),
        pearson_named=lambda: m.streaming_pearson_correlation(p(), others(), name="pc"),
        relative=lambda: m.streaming_mean_relative_error(p(), others(), others(), w),
        cosine=lambda: m.streaming_mean_cosine_distance(rows(), rows()[::-1] / 5.0, 1),
        less=lambda: m.streaming_percentage_less(p(), 0.5, w),
        iou=lambda: m.streaming_mean_iou(classes(), labels(), 3),
        auc=lambda: m.streaming_auc(p(), b(), w),
        auc_pr=lambda: m.streaming_auc(p(), b(), curve="PR", num_thresholds=50),
        specificity=lambda: m.streaming_specificity_at_sensitivity(p(), b(), 0.6),
        sensitivity=lambda: m.streaming_sensitivity_at_specificity(p(), b(), 0.6, w),
        curve=lambda: m.streaming_curve_points(b(), p(), num_thresholds=4),
        curve_pr=lambda: m.streaming_curve_points(b(), p(), w, num_thresholds=4, curve="PR"),
        recall_at_1=lambda: m.streaming_recall_at_k(scores(), tf.constant([1, 2]), 1),
        recall_at_2=lambda: m.streaming_recall_at_k(scores(), tf.constant([1, 2]), 2, [1.0, 2.0]),
        sparse_recall=lambda: m.streaming_sparse_recall_at_k(scores(), dense(), 1),
        sparse_recall_top=lambda: m.sparse_recall_at_top_k(dense(), top()),
        sparse_precision=lambda: m.streaming_sparse_precision_at_k(scores(), dense(), 2, class_id=1),
        sparse_precision_top=lambda: m.streaming_sparse_precision_at_top_k(top(), dense()),
        average_precision=lambda: m.streaming_sparse_average_precision_at_k(scores(), dense(), 2),
        average_precision_top=lambda: m.streaming_sparse_average_precision_at_top_k(top(), dense()),
        concat=lambda: m.streaming_concat(rows()),
        concat_some=lambda: m.streaming_concat(rows(), max_size=3),
        concat_columns=lambda: m.streaming_concat(rows(), axis=-1),
        count=lambda: m.count(p()),
        count_weighted=lambda: m.count(p(), w),
        kappa=lambda: m.cohen_kappa(classes(), labels(), 3),
        kappa_weighted=lambda: m.cohen_kappa(classes(), labels(), 3, w),
        f1=lambda: m.f1_score(b(), p()),
        f1_weighted=lambda: m.f1_score(b(), p(), w, num_thresholds=10),
        recall_at_precision=lambda: m.recall_at_precision(b(), p(), 0.7),
        precision_at_recall=lambda: m.precision_at_recall(b(), p(), 0.6),
        histogram=lambda: m.auc_using_histogram(b(), p(), [0.0, 1.0], nbins=10),
        histogram_coarse=lambda: m.auc_using_histogram(b(), p(), [0.0, 1.0], nbins=2, name="coarse"),
        equal_thresholds=lambda: m.precision_recall_at_equal_thresholds(b(), p(), num_thresholds=5),
        equal_thresholds_weighted=lambda: m.precision_recall_at_equal_thresholds(
            b(), p(), w, num_thresholds=3
        ),
    )
    return found


def answers(tf: Any) -> dict[str, Any]:
    """For each case names of the value and the update, the variables, and the value after two updates."""
    found = {}
    for name, build in cases(tf).items():
        with tf.Graph().as_default(), tf.Session() as session:
            value, update = build()
            session.run(tf.local_variables_initializer())
            session.run(update)
            session.run(update)
            several = isinstance(value, tuple)
            numbers = session.run(list(value) if several else [value])
            found[name] = {
                "names": ["" if several else value.name, update.name],
                "variables": [variable.op.name for variable in tf.local_variables()],
                "values": [np.asarray(each, np.float64).round(6).tolist() for each in numbers],
            }
    return found
