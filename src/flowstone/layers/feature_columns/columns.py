"""What a feature column is: a description of how a feature becomes numbers of a model.

A *categorical* column makes ids (`CategoricalColumn`), a *dense* column a float tensor (`DenseColumn`), a
*sequence dense* column one with a step dimension (`SequenceDenseColumn`). Columns hold no tensors. A
`FeatureTransformationCache` makes the tensors of one batch of features, each once, by asking the columns; a
`StateManager` (`state.py`) has the variables that a column needs.

There are two generations of the interface. In the older one methods begin with an underscore, and variables
are made in the current variable scope:

    class Length(_DenseColumn):
        name = "length"
        _variable_shape = TensorShape([1])
        _parse_example_spec = {"text": FixedLenFeature([1], string)}
        def _transform_feature(self, inputs):
            return to_float(strings.length(inputs.get("text")))
        def _get_dense_tensor(self, inputs, weight_collections=None, trainable=None):
            return inputs.get(self)

Programs may write columns of either. Those of this room speak both: the older methods call the newer ones
with a `_LazyBuilder` for the cache, which takes the same questions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import namedtuple
from typing import Any

__all__ = [
    "CategoricalColumn",
    "DenseColumn",
    "FeatureColumn",
    "SequenceDenseColumn",
    "_CategoricalColumn",
    "_DenseColumn",
    "_FeatureColumn",
    "_SequenceDenseColumn",
]


class FeatureColumn(ABC):
    """A column of TensorFlow 1.13 and later. Columns can be hashed and compared."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name; variables' scopes have it, and layers are in its order."""

    @abstractmethod
    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """What the column makes of its features, which `transformation_cache.get` has: a Tensor or
        SparseTensor. It is asked for through ``transformation_cache.get(column, state_manager)``.
        """

    @property
    @abstractmethod
    def parse_example_spec(self) -> Any:
        """A dict: the features that are read, and their configuration in `tf.parse_example`."""

    def create_state(self, state_manager: Any) -> None:  # noqa: B027 - most columns have none
        """Makes the column's variables in `state_manager`."""

    @property
    def _is_v2_column(self) -> bool:
        return False

    @property
    @abstractmethod
    def parents(self) -> list[Any]:
        """What the column is made from: columns, and keys of features."""

    @abstractmethod
    def _get_config(self) -> Any:
        """The arguments that make such a column again, as a dict of plain values."""

    @classmethod
    @abstractmethod
    def _from_config(cls, config: Any, custom_objects: Any = None, columns_by_name: Any = None) -> Any:
        """The column of a configuration."""


class DenseColumn(FeatureColumn):
    """A column that makes a float tensor [batch, *variable_shape]."""

    @property
    @abstractmethod
    def variable_shape(self) -> Any:
        """The TensorShape of one example."""

    @abstractmethod
    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The tensor."""


class CategoricalColumn(FeatureColumn):
    """A column that makes ids in [0, num_buckets)."""

    IdWeightPair = namedtuple("IdWeightPair", ("id_tensor", "weight_tensor"))

    @property
    @abstractmethod
    def num_buckets(self) -> int:
        """How many ids there are."""

    @abstractmethod
    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> Any:
        """An IdWeightPair: a SparseTensor of the ids, and one of the weights of the same indices, or None."""


class SequenceDenseColumn(FeatureColumn):
    """A column that makes a float tensor [batch, steps, *variable_shape]."""

    TensorSequenceLengthPair = namedtuple("TensorSequenceLengthPair", ("dense_tensor", "sequence_length"))

    @abstractmethod
    def get_sequence_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """A TensorSequenceLengthPair: the tensor, and the steps of each example, [batch]."""


class _FeatureColumn(ABC):
    """A column of TensorFlow 1.4."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name; variables' scopes have it, and layers are in its order."""

    @property
    def _var_scope_name(self) -> str:
        """The variable scope of its variables."""
        return self.name

    @abstractmethod
    def _transform_feature(self, inputs: Any) -> Any:
        """What the column makes of its features, which `inputs.get` has."""

    @property
    @abstractmethod
    def _parse_example_spec(self) -> Any:
        """A dict: the features that are read, and their configuration in `tf.parse_example`."""

    def _reset_config(self) -> None:  # noqa: B027 - most columns remember nothing
        """Forgets what it remembered of a graph."""


class _DenseColumn(_FeatureColumn):
    """A column that makes a float tensor [batch, *_variable_shape]."""

    @property
    @abstractmethod
    def _variable_shape(self) -> Any:
        """The TensorShape of one example."""

    @abstractmethod
    def _get_dense_tensor(self, inputs: Any, weight_collections: Any = None, trainable: Any = None) -> Any:
        """The tensor; variables go to `weight_collections`."""


class _CategoricalColumn(_FeatureColumn):
    """A column that makes ids in [0, _num_buckets)."""

    IdWeightPair = CategoricalColumn.IdWeightPair

    @property
    @abstractmethod
    def _num_buckets(self) -> int:
        """How many ids there are."""

    @abstractmethod
    def _get_sparse_tensors(self, inputs: Any, weight_collections: Any = None, trainable: Any = None) -> Any:
        """An IdWeightPair of the ids and their weights, or None for those."""


class _SequenceDenseColumn(_FeatureColumn):
    """A column that makes a float tensor [batch, steps, *_variable_shape]."""

    TensorSequenceLengthPair = SequenceDenseColumn.TensorSequenceLengthPair

    @abstractmethod
    def _get_sequence_dense_tensor(
        self, inputs: Any, weight_collections: Any = None, trainable: Any = None
    ) -> Any:
        """A TensorSequenceLengthPair: the tensor, and the steps of each example, [batch]."""


# ---- columns of both generations


class BothFeatureColumn(FeatureColumn, _FeatureColumn):
    """A column whose older methods are its newer ones."""

    @property
    def _is_v2_column(self) -> bool:
        return True

    def _transform_feature(self, inputs: Any) -> Any:
        return self.transform_feature(inputs, None)

    @property
    def _parse_example_spec(self) -> Any:
        return self.parse_example_spec


class BothDenseColumn(BothFeatureColumn, DenseColumn, _DenseColumn):
    """A dense column whose older methods are its newer ones."""

    @property
    def _variable_shape(self) -> Any:
        return self.variable_shape

    def _get_dense_tensor(self, inputs: Any, weight_collections: Any = None, trainable: Any = None) -> Any:
        return self.get_dense_tensor(inputs, None)


class BothCategoricalColumn(BothFeatureColumn, CategoricalColumn, _CategoricalColumn):
    """A categorical column whose older methods are its newer ones."""

    @property
    def _num_buckets(self) -> int:
        return self.num_buckets

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The ids, without weights."""
        return self.IdWeightPair(transformation_cache.get(self, state_manager), None)

    def _get_sparse_tensors(self, inputs: Any, weight_collections: Any = None, trainable: Any = None) -> Any:
        return self.get_sparse_tensors(inputs, None)


class BothSequenceDenseColumn(BothFeatureColumn, SequenceDenseColumn, _SequenceDenseColumn):
    """A sequence column whose older methods are its newer ones."""

    def _get_sequence_dense_tensor(
        self, inputs: Any, weight_collections: Any = None, trainable: Any = None
    ) -> Any:
        return self.get_sequence_dense_tensor(inputs, None)


# ---- asking a column of either generation

COLUMNS = (FeatureColumn, _FeatureColumn)
CATEGORICAL = (CategoricalColumn, _CategoricalColumn)


def spec_of(column: Any) -> Any:
    """The column's configuration in `tf.parse_example`."""
    return column.parse_example_spec if isinstance(column, FeatureColumn) else column._parse_example_spec


def number_of_buckets(column: Any) -> int:
    """How many ids a categorical column has."""
    buckets: int = column.num_buckets if isinstance(column, CategoricalColumn) else column._num_buckets
    return buckets


def sparse_tensors_of(column: Any, cache: Any, state_manager: Any) -> Any:
    """The ids and weights of a categorical column."""
    if isinstance(column, CategoricalColumn):
        return column.get_sparse_tensors(cache, state_manager)
    return column._get_sparse_tensors(cache)
