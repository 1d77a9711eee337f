"""`tf.contrib.training`: parameters, batches by length, loops of training and evaluation."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {"flowstone.training.device_setter": "GreedyLoadBalancingStrategy RandomStrategy byte_size_load_fn"},
)
