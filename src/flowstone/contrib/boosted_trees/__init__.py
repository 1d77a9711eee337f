"""`tf.contrib.boosted_trees`: gradient boosted decision trees that learn from batches.

`estimator` has the estimators, `model` their model function, `gbdt_batch` the graph of a model,
`ordinal_split_handler` and `categorical_split_handler` how nodes are split by one feature column, `losses`
losses that can be derived twice, `model_ops`, `quantile_ops` and `stats_accumulator_ops` the resources.
"""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(globals(), {})
