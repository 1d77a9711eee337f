"""`tf.contrib.boosted_trees.python.ops.split_handler_ops`: the best splits of nodes by one feature column."""

from __future__ import annotations

from flowstone.framework.declarations.op_functions import positional

__all__ = [
    "build_categorical_equality_splits",
    "build_dense_inequality_splits",
    "build_sparse_inequality_splits",
]

build_categorical_equality_splits = positional("BuildCategoricalEqualitySplits")
build_dense_inequality_splits = positional("BuildDenseInequalitySplits")
build_sparse_inequality_splits = positional("BuildSparseInequalitySplits")
