"""`tf.contrib.boosted_trees.python.ops.training_ops`: how ensembles grow."""

from __future__ import annotations

from flowstone.framework.declarations.op_functions import positional

__all__ = ["center_tree_ensemble_bias", "grow_tree_ensemble"]

center_tree_ensemble_bias = positional("CenterTreeEnsembleBias")
grow_tree_ensemble = positional("GrowTreeEnsemble")
