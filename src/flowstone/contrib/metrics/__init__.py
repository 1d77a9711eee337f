"""`tf.contrib.metrics`: metrics of batches and of streams; see `tf.metrics`."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.metrics.classification": "accuracy f1_score",
        "flowstone.contrib.metrics.confusion_matrix_ops": "confusion_matrix",
        "flowstone.contrib.metrics.correlations": "streaming_covariance streaming_pearson_correlation",
        "flowstone.contrib.metrics.exact_areas": "auc_with_confidence_intervals streaming_dynamic_auc",
        "flowstone.contrib.metrics.histogram_ops": "auc_using_histogram",
        "flowstone.contrib.metrics.metric_ops": "aggregate_metric_map aggregate_metrics cohen_kappa count"
        " streaming_concat",
        "flowstone.contrib.metrics.ranking_metrics": "sparse_recall_at_top_k streaming_recall_at_k"
        " streaming_sparse_average_precision_at_k streaming_sparse_average_precision_at_top_k"
        " streaming_sparse_precision_at_k streaming_sparse_precision_at_top_k streaming_sparse_recall_at_k",
        "flowstone.contrib.metrics.simple_metrics": "streaming_accuracy streaming_auc"
        " streaming_false_negatives streaming_false_negatives_at_thresholds streaming_false_positives"
        " streaming_false_positives_at_thresholds streaming_mean streaming_mean_absolute_error"
        " streaming_mean_cosine_distance streaming_mean_iou streaming_mean_relative_error"
        " streaming_mean_squared_error streaming_mean_tensor streaming_percentage_less"
        " streaming_precision streaming_precision_at_thresholds streaming_recall"
        " streaming_recall_at_thresholds streaming_root_mean_squared_error"
        " streaming_sensitivity_at_specificity streaming_specificity_at_sensitivity"
        " streaming_true_negatives streaming_true_negatives_at_thresholds streaming_true_positives"
        " streaming_true_positives_at_thresholds",
        "flowstone.contrib.metrics.threshold_metrics": "precision_at_recall"
        " precision_recall_at_equal_thresholds recall_at_precision streaming_curve_points"
        " streaming_false_negative_rate streaming_false_negative_rate_at_thresholds"
        " streaming_false_positive_rate streaming_false_positive_rate_at_thresholds",
        "flowstone.sets": "set_difference set_intersection set_size set_union",
    },
)
