"""`tf.contrib.model_pruning`: weights of small magnitude are masked, more and more of them, in training."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.model_pruning.layers": "masked_conv2d masked_convolution"
        " masked_convolution2d masked_fully_connected",
        "flowstone.contrib.model_pruning.learning": "train",
        "flowstone.contrib.model_pruning.pruning": "Pruning apply_mask get_masked_weights get_masks"
        " get_pruning_hparams get_thresholds get_weight_sparsity get_weights",
        "flowstone.contrib.model_pruning.rnn_cells": "MaskedBasicLSTMCell MaskedLSTMCell",
        "flowstone.contrib.model_pruning.strip_pruning_vars_lib": "graph_def_from_checkpoint"
        " strip_pruning_vars_fn",
    },
)
