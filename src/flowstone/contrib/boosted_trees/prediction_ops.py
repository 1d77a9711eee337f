"""`tf.contrib.boosted_trees.python.ops.prediction_ops`: what ensembles say."""

from __future__ import annotations

from flowstone.framework.declarations.op_functions import positional

__all__ = [
    "gradient_trees_partition_examples",
    "gradient_trees_prediction",
    "gradient_trees_prediction_verbose",
]

gradient_trees_partition_examples = positional("GradientTreesPartitionExamples")
gradient_trees_prediction = positional("GradientTreesPrediction")
gradient_trees_prediction_verbose = positional("GradientTreesPredictionVerbose")
