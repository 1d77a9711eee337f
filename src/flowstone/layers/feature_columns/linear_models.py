"""`linear_model`: a weighted sum of what columns make of features.

Columns come in the order of their names. The variables are TensorFlow's: ``linear_model/COLUMN/weights`` and
``linear_model/bias_weights``.
"""

from __future__ import annotations

from collections import Counter
from typing import Any
from weakref import WeakKeyDictionary

from flowstone.framework.graphs.graph import Graph, GraphKeys
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.layers.feature_columns.column_lists import (
    as_rows,
    by_name,
    check_batch_sizes,
    listed,
    weight_collections_of,
)
from flowstone.layers.feature_columns.columns import (
    _CategoricalColumn,
    _DenseColumn,
    _FeatureColumn,
    number_of_buckets,
)
from flowstone.layers.feature_columns.transformation import _LazyBuilder
from flowstone.ops.algebra.matrices import matmul
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.networks.neural_net import bias_add
from flowstone.ops.numbers.sums import add_n
from flowstone.ops.sparse.safe_embedding import safe_embedding_lookup_sparse
from flowstone.ops.sparse.sparse_layout import sparse_reshape
from flowstone.ops.variables.initializers import zeros_initializer
from flowstone.ops.variables.partitioned_variables import PartitionedVariable
from flowstone.ops.variables.variable_scope import get_variable, get_variable_scope, variable_scope

__all__ = ["linear_model"]

_columns_seen: WeakKeyDictionary[Graph, Counter[tuple[str, str]]] = WeakKeyDictionary()


def linear_model(
    features: Any,
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, list[Any]] | None = None,
) -> Any:
    """A weighted sum of what the columns make of the features, and a bias; all weights begin with 0.

    Args:
        features: a dict from keys to a Tensor or SparseTensor [batch, …]; [batch] counts as [batch, 1].
        feature_columns: dense and categorical columns of different names.
        units: the number of sums.
        sparse_combiner: how the weights of an example's ids become one: "sum", "mean" or "sqrtn".
        weight_collections: further collections for the weights.
        trainable: whether these are.
        cols_to_vars: a dict that gets a list of variables for each column, and for "bias".

    Returns:
        float32, [batch, units].

    Raises ValueError for a column that is neither, for none, for two of a name, for batches of different
    sizes, and for a feature that is not there.
    """
    collections = weight_collections_of(weight_collections)
    return model_sums(features, feature_columns, units, sparse_combiner, collections, trainable, cols_to_vars)


def model_sums(
    features: Any,
    feature_columns: Any,
    units: int,
    sparse_combiner: str,
    collections: list[Any],
    trainable: bool = True,
    cols_to_vars: dict[Any, list[Any]] | None = None,
) -> Any:
    """`linear_model` with the weights in these collections alone."""
    columns = listed(feature_columns, _FeatureColumn, "_FeatureColumn")
    for column in columns:
        if not isinstance(column, (_DenseColumn, _CategoricalColumn)):
            raise ValueError(
                "Items of feature_columns must be either a _DenseColumn or _CategoricalColumn. Given: "
                f"{column}"
            )
    model = _LinearSums(units, sparse_combiner, collections, trainable)
    outer = get_variable_scope().name
    with variable_scope(None, default_name="linear_model", values=list(features.values())) as scope:
        own_name = scope.name.rpartition("/")[2]
    ordered = by_name(columns)
    scopes = _column_scopes(ordered, outer, bool(scope.reuse))
    with variable_scope(scope), get_default_graph().name_scope(own_name):
        return model.summed(_LazyBuilder(features), ordered, scopes, cols_to_vars)


def _column_scopes(columns: list[Any], outer: str, is_reuse: bool) -> list[str]:
    """The scopes of the columns' variables: a second model inside the scope `outer` has ``COLUMN_1``."""
    seen = _columns_seen.setdefault(get_default_graph(), Counter())
    names = []
    for column in columns:
        name = column._var_scope_name
        number = seen[outer, name]
        seen[outer, name] += 1
        names.append(f"{name}_{number}" if number and not is_reuse else name)
    return names


class _LinearSums:
    """The sums of one `linear_model`, in the scope in force."""

    def __init__(self, units: int, sparse_combiner: str, collections: list[Any], trainable: bool) -> None:
        self._units, self._combiner = units, sparse_combiner
        self._collections, self._trainable = collections, trainable

    def summed(
        self,
        builder: _LazyBuilder,
        columns: list[Any],
        scopes: list[str],
        cols_to_vars: dict[Any, list[Any]] | None,
    ) -> Any:
        """The sums of all columns, and the bias."""
        sums = []
        for column, scope in zip(columns, scopes):
            with variable_scope(scope):
                sums.append(self._of_column(builder, column))
                if cols_to_vars is not None:
                    cols_to_vars[column] = get_default_graph().get_collection(
                        GraphKeys.GLOBAL_VARIABLES, scope=f"{get_variable_scope().name}/"
                    )
        check_batch_sizes(sums, columns)
        total = sums[0] if len(sums) == 1 else add_n(sums, name="weighted_sum_no_bias")
        bias = self._variable("bias_weights", [self._units])
        if cols_to_vars is not None:
            cols_to_vars["bias"] = list(bias) if isinstance(bias, PartitionedVariable) else [bias]
        return bias_add(total, bias, name="weighted_sum")

    def _variable(self, name: str, sizes: list[int]) -> Any:
        return get_variable(
            name=name,
            shape=sizes,
            initializer=zeros_initializer(),
            trainable=self._trainable,
            collections=list(self._collections),
            use_resource=True,
        )

    def _of_column(self, builder: _LazyBuilder, column: Any) -> Any:
        """The sums of a column."""
        if isinstance(column, _CategoricalColumn):
            weights = self._variable("weights", [number_of_buckets(column), self._units])
            pair = column._get_sparse_tensors(
                builder, weight_collections=self._collections, trainable=self._trainable
            )
            return combined_weights(pair, weights, self._combiner)
        elements = column._variable_shape.num_elements()
        weights = self._variable("weights", [elements, self._units])
        tensor = column._get_dense_tensor(
            builder, weight_collections=self._collections, trainable=self._trainable
        )
        return matmul(as_rows(tensor, elements), weights, name="weighted_sum")


def combined_weights(pair: Any, table: Any, combiner: str) -> Any:
    """The combined rows of `table` of each example's ids."""
    ids, weights = pair
    ids = sparse_reshape(ids, [shape(ids)[0], -1])
    if weights is not None:
        weights = sparse_reshape(weights, [shape(weights)[0], -1])
    return safe_embedding_lookup_sparse(
        table, ids, sparse_weights=weights, combiner=combiner, name="weighted_sum"
    )
