"""Layers of columns as objects: `DenseFeatures`, `SequenceFeatures`, `LinearModel`.

The first call makes the variables, in the scope ``NAME/COLUMN`` below the variable scope in force; further
calls use them. Columns come in the order of their names.

    >>> import flowstone as tf
    >>> layer = DenseFeatures([tf.feature_column.numeric_column("x")])
    >>> layer({"x": tf.constant([1.0, 2.0])}).shape.as_list()
    [2, 1]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from flowstone.framework.graphs.graph import Graph
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.types import dtypes
from flowstone.layers.feature_columns.column_lists import as_rows, by_name, check_batch_sizes, listed
from flowstone.layers.feature_columns.columns import (
    CategoricalColumn,
    DenseColumn,
    FeatureColumn,
    SequenceDenseColumn,
)
from flowstone.layers.feature_columns.linear_models import combined_weights
from flowstone.layers.feature_columns.sequence import all_equal
from flowstone.layers.feature_columns.serialization import (
    deserialize_feature_columns,
    serialize_feature_columns,
)
from flowstone.layers.feature_columns.state import _StateManagerImpl
from flowstone.layers.feature_columns.transformation import FeatureTransformationCache
from flowstone.ops.algebra.matrices import matmul
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.padding import tile
from flowstone.ops.arrays.shapes import expand_dims, reshape, shape
from flowstone.ops.networks.neural_net import bias_add
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.sums import add_n
from flowstone.ops.variables.initializers import zeros_initializer
from flowstone.ops.variables.partitioned_variables import PartitionedVariable
from flowstone.ops.variables.variable_scope import get_variable, variable_scope

__all__ = [
    "DenseFeatures",
    "LinearModel",
    "SequenceFeatures",
    "_BaseFeaturesLayer",
    "concatenate_context_input",
]

_names: WeakKeyDictionary[Graph, Counter[str]] = WeakKeyDictionary()


def _own_name(base: str) -> str:
    """`base` the first time in the default graph, then ``base_1`` …"""
    seen = _names.setdefault(get_default_graph(), Counter())
    number, seen[base] = seen[base], seen[base] + 1
    return f"{base}_{number}" if number else base


class _BaseFeaturesLayer:
    """What the layers share: columns, a name, and variables."""

    _default_name = ""
    _kind: Any = FeatureColumn

    def __init__(
        self, feature_columns: Any, trainable: bool = True, name: str | None = None, **kwargs: Any
    ) -> None:
        columns = listed(feature_columns, FeatureColumn, "FeatureColumn")
        self._feature_columns, self._trainable = columns, trainable
        self._name = name or _own_name(self._default_name)
        self._state_manager = _StateManagerImpl(self, trainable)
        self._made: list[tuple[Any, bool]] = []
        self._scope: Any = None
        if kwargs.keys() - {"dtype", "dynamic"}:
            raise TypeError("Keyword argument not understood:", next(iter(kwargs)))
        for column in columns:
            if not isinstance(column, self._kind):
                raise ValueError(
                    f"Items of feature_columns must be a {self._kind}. You can wrap a categorical column "
                    f"with an embedding_column or indicator_column. Given: {column}"
                )

    name = property(lambda self: self._name, doc="The scope's name.")
    trainable = property(lambda self: self._trainable, doc="Whether training changes the variables.")
    built = property(lambda self: self._scope is not None, doc="Whether the variables are there.")

    @property
    def variables(self) -> list[Any]:
        """All variables."""
        return [variable for variable, _ in self._made]

    @property
    def trainable_variables(self) -> list[Any]:
        """Those that training changes."""
        return [variable for variable, is_trainable in self._made if is_trainable]

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The others."""
        return [variable for variable, is_trainable in self._made if not is_trainable]

    weights = property(lambda self: self.variables, doc="As `variables`.")
    trainable_weights = property(lambda self: self.trainable_variables, doc="As `trainable_variables`.")
    non_trainable_weights = property(
        lambda self: self.non_trainable_variables, doc="As `non_trainable_variables`."
    )

    def build(self, _: Any) -> None:
        """Makes the variables; the first call does it."""
        with variable_scope(self._name, auxiliary_name_scope=False) as self._scope:
            self._build()

    def _build(self) -> None:
        for column in self._feature_columns:
            column.create_state(self._state_manager)

    def __call__(self, features: Any, **options: Any) -> Any:
        """What the columns make of `features`, a dict from keys to tensors; see `call`."""
        if not isinstance(features, Mapping):
            raise ValueError("We expected a dictionary here. Instead we got: ", features)
        with get_default_graph().name_scope(self._name):
            if self._scope is None:
                self.build(None)
            return self.call(features, **options)

    def call(self, features: Any, **options: Any) -> Any:
        """What the columns make of `features`."""
        raise TypeError(f"{type(self).__name__} is a base of layers")

    def get_config(self) -> dict[str, Any]:
        """The arguments that make such a layer again, as plain values."""
        columns = serialize_feature_columns(self._feature_columns)
        return {"name": self._name, "trainable": self._trainable, "feature_columns": columns}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Any = None) -> Any:
        """The layer of a configuration, with variables of its own."""
        columns = deserialize_feature_columns(config["feature_columns"], custom_objects)
        return cls(**{**config, "feature_columns": columns})


class DenseFeatures(_BaseFeaturesLayer):
    """What dense columns make of features, side by side: float32, [batch, elements of all columns].

    Args:
        feature_columns: dense columns of different names.
        trainable: whether the embeddings' tables are.
        name: of the scope; default: ``dense_features``, numbered.

    Raises ValueError for other columns.
    """

    _default_name, _kind = "dense_features", DenseColumn

    def call(self, features: Any, cols_to_output_tensors: Any = None, **options: Any) -> Any:
        """The tensors of the columns, joined; `cols_to_output_tensors` gets each."""
        cache, outputs, ordered = FeatureTransformationCache(features), [], by_name(self._feature_columns)
        for column in ordered:
            with get_default_graph().name_scope(column.name):
                tensor = column.get_dense_tensor(cache, self._state_manager)
                output = as_rows(tensor, column.variable_shape.num_elements())
                outputs.append(output)
                if cols_to_output_tensors is not None:
                    cols_to_output_tensors[column] = output
        check_batch_sizes(outputs, ordered)
        return concat(outputs, 1)


class SequenceFeatures(_BaseFeaturesLayer):
    """What sequence columns make of features: float32 [batch, steps, elements], and the steps, int64 [batch].

    Args:
        feature_columns: sequence columns of different names.
        trainable: whether the embeddings' tables are.
        name: of the scope; default: ``sequence_features``, numbered.

    Raises ValueError for other columns. A step fails with InvalidArgumentError if columns differ in steps.
    """

    _default_name, _kind = "sequence_features", SequenceDenseColumn

    def call(self, features: Any, **options: Any) -> Any:
        """The tensors of the columns, joined, and the steps of each example."""
        cache, outputs, lengths = FeatureTransformationCache(features), [], []
        for column in by_name(self._feature_columns):
            with get_default_graph().name_scope(column.name):
                dense, length = column.get_sequence_dense_tensor(cache, self._state_manager)
                elements = column.variable_shape.num_elements()
                outputs.append(reshape(dense, concat([shape(dense)[:2], [elements]], axis=0)))
                lengths.append(length)
        return concat(outputs, -1), all_equal(lengths)


class LinearModel(_BaseFeaturesLayer):
    """A weighted sum of what columns make of features, and a bias: float32, [batch, units].

    Args:
        feature_columns: dense and categorical columns of different names.
        units: the number of sums.
        sparse_combiner: how the weights of an example's ids become one: "sum", "mean" or "sqrtn".
        trainable: whether the weights are.
        name: of the scope; default: ``linear_model``, numbered.

    Raises ValueError for other columns.
    """

    _default_name, _kind = "linear_model", (DenseColumn, CategoricalColumn)

    def __init__(
        self,
        feature_columns: Any,
        units: int = 1,
        sparse_combiner: str = "sum",
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(feature_columns, trainable, name, **kwargs)
        self._feature_columns = by_name(self._feature_columns)
        self._units, self._sparse_combiner = units, sparse_combiner
        self._bias: Any = None

    @property
    def bias(self) -> Any:
        """The bias, [units]."""
        return self._bias

    def get_config(self) -> dict[str, Any]:
        """The arguments that make such a layer again, as plain values."""
        own = {"units": self._units, "sparse_combiner": self._sparse_combiner}
        return {**super().get_config(), **own}

    def _build(self) -> None:
        for column in self._feature_columns:
            column.create_state(self._state_manager)
            if isinstance(column, CategoricalColumn):
                rows = column.num_buckets
            else:
                rows = column.variable_shape.num_elements()
            self._state_manager.create_variable(
                column, "weights", (rows, self._units), initializer=zeros_initializer()
            )
        self._bias = get_variable(
            "bias_weights",
            shape=[self._units],
            initializer=zeros_initializer(),
            trainable=self._trainable,
            use_resource=True,
        )
        parts = list(self._bias) if isinstance(self._bias, PartitionedVariable) else [self._bias]
        self._made += [(each, self._trainable) for each in parts]

    def call(self, features: Any, **options: Any) -> Any:
        """The sums."""
        graph = get_default_graph()
        with graph.name_scope(self._name), graph.name_scope(self._name):
            cache, sums = FeatureTransformationCache(features), []
            for column in self._feature_columns:
                with graph.name_scope(column.name):
                    sums.append(self._of_column(column, cache))
            check_batch_sizes(sums, self._feature_columns)
            total = sums[0] if len(sums) == 1 else add_n(sums, name="weighted_sum_no_bias")
            return bias_add(total, self._bias, name="weighted_sum")

    def _of_column(self, column: Any, cache: FeatureTransformationCache) -> Any:
        weights = self._state_manager.get_variable(column, "weights")
        if isinstance(column, CategoricalColumn):
            pair = column.get_sparse_tensors(cache, self._state_manager)
            return combined_weights(pair, weights, self._sparse_combiner)
        tensor = column.get_dense_tensor(cache, self._state_manager)
        rows = as_rows(tensor, column.variable_shape.num_elements())
        return matmul(rows, weights, name="weighted_sum")


def concatenate_context_input(context_input: Any, sequence_input: Any) -> Any:
    """`context_input` [batch, d] beside every step of `sequence_input` [batch, steps, e], both of floats.

    Returns a float32 tensor [batch, steps, e + d]. Raises InvalidArgumentError for other ranks.
    """
    steps = shape(sequence_input)[1]
    repeated = tile(expand_dims(context_input, 1), concat([[1], [steps], [1]], 0))
    return concat([cast(sequence_input, dtypes.float32), cast(repeated, dtypes.float32)], 2)
