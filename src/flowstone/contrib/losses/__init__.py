"""`tf.contrib.losses`: losses with predictions before labels, weighted by example; see `tf.losses`."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.losses.loss_ops": "absolute_difference add_loss compute_weighted_loss"
        " cosine_distance get_losses get_regularization_losses get_total_loss hinge_loss log_loss"
        " mean_pairwise_squared_error mean_squared_error sigmoid_cross_entropy softmax_cross_entropy"
        " sparse_softmax_cross_entropy",
    },
    "metric_learning",
)
