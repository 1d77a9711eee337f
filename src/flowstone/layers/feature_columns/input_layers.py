"""`input_layer`: what dense columns make of features, side by side.

Columns come in the order of their names. The scopes of variables are TensorFlow's:
``input_layer/COLUMN/embedding_weights``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from flowstone.framework.graphs.graph import GraphKeys
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.layers.feature_columns.column_lists import (
    as_rows,
    by_name,
    check_batch_sizes,
    check_dense,
    listed,
    weight_collections_of,
)
from flowstone.layers.feature_columns.columns import (
    DenseColumn,
    _DenseColumn,
    _FeatureColumn,
)
from flowstone.layers.feature_columns.embedding import EmbeddingColumn
from flowstone.layers.feature_columns.transformation import _LazyBuilder
from flowstone.ops.arrays.joining import concat
from flowstone.ops.variables.template import make_template
from flowstone.ops.variables.variable_scope import get_variable_scope, variable_scope

__all__ = ["InputLayer", "input_layer"]

_NO_SCOPES: Mapping[Any, Any] = {}


def input_layer(
    features: Any,
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, list[Any]] | None = None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
) -> Any:
    """What the columns make of the features, side by side.

    Args:
        features: a dict from keys to a Tensor or SparseTensor [batch, …]; [batch] counts as [batch, 1].
        feature_columns: dense columns of different names.
        weight_collections: further collections for the embeddings' tables.
        trainable: whether these are.
        cols_to_vars: a dict that gets a list of variables for each column.
        cols_to_output_tensors: a dict that gets the tensor [batch, elements] of each column.

    Returns:
        float32, [batch, elements of all columns], in the order of the columns' names.

    Raises ValueError for a column that is not dense, for none, for two of a name, for batches of different
    sizes, and for a feature that is not there.
    """
    columns = _checked(feature_columns)
    with variable_scope(None, default_name="input_layer", values=list(features.values())):
        collections = weight_collections_of(weight_collections)
        return _side_by_side(features, columns, collections, trainable, cols_to_vars, cols_to_output_tensors)


def model_inputs(features: Any, feature_columns: Any) -> Any:
    """`input_layer` as canned Estimators have it: the tables are resource variables, made before all else,
    and are not in the collection of models' variables.

    With a column of the older kind (`shared_embedding_columns`) among them, `input_layer` makes them.
    """
    columns, collections = _checked(feature_columns), [GraphKeys.GLOBAL_VARIABLES]
    newer, values = all(isinstance(c, DenseColumn) for c in columns), list(features.values())
    with variable_scope(None, default_name="input_layer", values=values, use_resource=newer or None):
        scopes = _with_tables(columns, collections) if newer else {}
        return _side_by_side(features, columns, collections, True, scopes=scopes)


def _with_tables(columns: list[Any], collections: list[Any]) -> dict[Any, Any]:
    """The scopes of the columns that have a table, which is made."""
    scopes = {}
    for column in by_name(columns):
        if isinstance(column, EmbeddingColumn):
            name = column._var_scope_name
            with variable_scope(None, default_name=name, auxiliary_name_scope=False) as scope:
                column.scoped_table(collections, True)
            scopes[column] = scope
    return scopes


def _checked(feature_columns: Any) -> list[Any]:
    columns = listed(feature_columns, _FeatureColumn, "_FeatureColumn")
    check_dense(columns, _DenseColumn)
    return columns


def _side_by_side(
    features: Any,
    columns: list[Any],
    collections: list[Any],
    trainable: bool,
    cols_to_vars: dict[Any, list[Any]] | None = None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
    scopes: Mapping[Any, Any] = _NO_SCOPES,
) -> Any:
    """`input_layer` in the variable scope in force; the embeddings' tables are in these collections alone.

    `scopes` are those of the columns whose tables are there.
    """
    builder, outputs, ordered = _LazyBuilder(features), [], by_name(columns)
    for column in ordered:
        with _scope_of(column, scopes):
            tensor = column._get_dense_tensor(builder, weight_collections=collections, trainable=trainable)
            output = as_rows(tensor, column._variable_shape.num_elements())
            outputs.append(output)
            if cols_to_vars is not None:
                cols_to_vars[column] = get_default_graph().get_collection(
                    GraphKeys.GLOBAL_VARIABLES, scope=get_variable_scope().name
                )
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = output
    check_batch_sizes(outputs, ordered)
    return concat(outputs, 1)


@contextmanager
def _scope_of(column: Any, scopes: Mapping[Any, Any]) -> Iterator[None]:
    """The column's variable scope: its own of `scopes`, or a new one."""
    name = column._var_scope_name
    if column not in scopes:
        with variable_scope(None, default_name=name):
            yield
    else:
        graph, own = get_default_graph(), scopes[column]
        with variable_scope(own, reuse=True, auxiliary_name_scope=False), graph.name_scope(name):
            yield


class InputLayer:
    """`input_layer` as an object: further calls use the variables of the first.

    Args:
        feature_columns, weight_collections, trainable, cols_to_vars: those of `input_layer`.
        name: of the variable scope.
        create_scope_now: whether that is chosen at once, and not at the first call.
    """

    def __init__(
        self,
        feature_columns: Any,
        weight_collections: Any = None,
        trainable: bool = True,
        cols_to_vars: dict[Any, list[Any]] | None = None,
        name: str = "feature_column_input_layer",
        create_scope_now: bool = True,
    ) -> None:
        self._feature_columns = feature_columns
        self._weight_collections, self._trainable = weight_collections, trainable
        self._cols_to_vars, self._name = cols_to_vars, name
        self._input_layer_template = make_template(
            self._name, self._call_input_layer, create_scope_now_=create_scope_now
        )
        self._scope = self._input_layer_template.variable_scope

    def _call_input_layer(self, features: Any) -> Any:
        columns = _checked(self._feature_columns)
        collections = weight_collections_of(self._weight_collections)
        return _side_by_side(features, columns, collections, self._trainable, self._cols_to_vars)

    def __call__(self, features: Any) -> Any:
        """float32, [batch, elements of all columns]."""
        return self._input_layer_template(features)

    @property
    def name(self) -> str:
        """The scope's name."""
        return self._name

    variables = property(lambda self: self._input_layer_template.variables, doc="All variables.")
    trainable_variables = property(
        lambda self: self._input_layer_template.trainable_variables, doc="Those that training changes."
    )
    weights = property(lambda self: self.variables, doc="As `variables`.")
    trainable_weights = property(lambda self: self.trainable_variables, doc="As `trainable_variables`.")

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The others."""
        trainable = self.trainable_variables
        return [each for each in self.variables if not any(each is other for other in trainable)]

    non_trainable_weights = property(
        lambda self: self.non_trainable_variables, doc="As `non_trainable_variables`."
    )
