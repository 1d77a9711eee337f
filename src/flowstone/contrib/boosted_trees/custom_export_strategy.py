"""`tf.contrib.boosted_trees.estimator_batch.custom_export_strategy`: what is not here, and what to use."""

from __future__ import annotations

from flowstone.framework.names.refusals import refused_function

__all__ = ["convert_to_universal_format", "make_custom_export_strategy"]

_NEAREST = "export_savedmodel, or tf.estimator.BoostedTreesClassifier"

make_custom_export_strategy = refused_function("make_custom_export_strategy", _NEAREST)
convert_to_universal_format = refused_function("convert_to_universal_format", _NEAREST)
