"""`tf.contrib.linear_optimizer`: linear models trained by stochastic dual coordinate ascent."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

_HERE = "flowstone.contrib.linear_optimizer"

__getattr__, __dir__ = package_names(
    globals(),
    {
        f"{_HERE}.sdca_ops": "SdcaModel",
        f"{_HERE}.sdca_optimizer": "SDCAOptimizer",
        f"{_HERE}.sparse_feature_column": "SparseFeatureColumn",
    },
)
