"""`flowstone.metrics`: metrics over many batches, as pairs of a value and the operation that adds a batch."""

from flowstone.layers.metrics.average_precisions import average_precision_at_k, sparse_average_precision_at_k
from flowstone.layers.metrics.classes import mean_iou, mean_per_class_accuracy
from flowstone.layers.metrics.counts import (
    false_negatives,
    false_positives,
    precision,
    recall,
    true_negatives,
    true_positives,
)
from flowstone.layers.metrics.curves import auc, sensitivity_at_specificity, specificity_at_sensitivity
from flowstone.layers.metrics.means import (
    accuracy,
    mean,
    mean_absolute_error,
    mean_cosine_distance,
    mean_relative_error,
    mean_squared_error,
    mean_tensor,
    percentage_below,
    root_mean_squared_error,
)
from flowstone.layers.metrics.rankings import (
    precision_at_k,
    precision_at_top_k,
    recall_at_k,
    recall_at_top_k,
    sparse_precision_at_k,
)
from flowstone.layers.metrics.thresholds import (
    false_negatives_at_thresholds,
    false_positives_at_thresholds,
    precision_at_thresholds,
    recall_at_thresholds,
    true_negatives_at_thresholds,
    true_positives_at_thresholds,
)
