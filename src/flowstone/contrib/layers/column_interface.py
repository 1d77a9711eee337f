"""The older feature columns' interface, and their tables of embeddings.

A column reads tensors from, and puts its own into, a dict `columns_to_tensors`: from the keys of features,
and from columns, to what these made. `insert_transformed_feature` does that. A layer then asks the column for
a table's lookup (`_deep_embedding_lookup_arguments` in networks, `_wide_embedding_lookup_arguments` in linear
models), or else for a dense tensor. These columns are columns of `tf.feature_column`, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import namedtuple
from typing import Any

import flowstone as tf
from flowstone.contrib.layers.sparse_feature_cross_op import sparse_feature_cross
from flowstone.layers.feature_columns import columns as core
from flowstone.ops.sparse.safe_embedding import safe_embedding_lookup_sparse

__all__ = ["DeepLookup", "LinearLookup", "_FeatureColumn", "embedded", "inner_flatten", "model_variable"]

_NO_VALUE = "6ZxWzWOHxZ"  # what TensorFlow looks up for a row without values

LinearLookup = namedtuple(
    "LinearLookup", ["input_tensor", "weight_tensor", "vocab_size", "initializer", "combiner"]
)
DeepLookup = namedtuple(
    "DeepLookup",
    [
        "input_tensor",
        "weight_tensor",
        "vocab_size",
        "initializer",
        "combiner",
        "dimension",
        "shared_embedding_name",
        "hash_key",
        "max_norm",
        "trainable",
    ],
)


class _FeatureColumn(ABC):
    """A column of `tf.contrib.layers`."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name: that of the variables' scope."""

    @property
    @abstractmethod
    def config(self) -> dict[str, Any]:
        """The features that are read, and their configuration in `tf.parse_example`."""

    @property
    def key(self) -> str:
        """The column as text; layers take columns in the order of this."""
        return str(self)

    @abstractmethod
    def insert_transformed_feature(self, columns_to_tensors: dict[Any, Any]) -> None:
        """Puts what the column makes under the column."""

    def _to_dnn_input_layer(
        self,
        input_tensor: Any,
        weight_collections: Any = None,
        trainable: bool = True,
        output_rank: int = 2,
    ) -> Any:
        """The dense tensor of `output_rank` dimensions for a network. ValueError if there is none."""
        raise ValueError(f"Column {self} has no tensor for a network.")

    def _deep_embedding_lookup_arguments(self, input_tensor: Any) -> DeepLookup | None:
        """The lookup for a network, or None."""
        return None

    def _wide_embedding_lookup_arguments(self, input_tensor: Any) -> LinearLookup | None:
        """The lookup for a linear model, or None."""
        return None

    def _to_dense_tensor(self, input_tensor: Any) -> Any:
        """The dense tensor for a linear model, or None."""
        return None

    @property
    def _checkpoint_path(self) -> tuple[str, str] | None:
        """A checkpoint and the tensor in it that the table begins as, or None."""
        return None

    def _key_without_properties(self, properties: list[str]) -> str:
        fields: tuple[str, ...] = self._fields  # type: ignore[attr-defined]
        shown = [f"{name}={getattr(self, name)}" for name in fields if name not in properties]
        return f"{type(self).__name__}({', '.join(shown)})"

    # ---- a column of tf.feature_column

    @property
    def _parse_example_spec(self) -> dict[str, Any]:
        return self.config

    def _transform_feature(self, inputs: Any) -> Any:
        found = _ByKey(inputs)
        self.insert_transformed_feature(found)
        return dict.__getitem__(found, self)


class _ByKey(dict[Any, Any]):
    """`columns_to_tensors`, of which a builder of `tf.feature_column` makes what is missing."""

    def __init__(self, builder: Any) -> None:
        super().__init__()
        self._builder = builder

    def __missing__(self, key: Any) -> Any:
        return self._builder.get(key)


class _DenseOfBoth(_FeatureColumn, core._DenseColumn):
    """A column that makes a dense tensor."""

    def _get_dense_tensor(self, inputs: Any, weight_collections: Any = None, trainable: Any = None) -> Any:
        return self._to_dnn_input_layer(
            inputs.get(self), weight_collections, trainable is None or trainable, output_rank=2
        )


class _CategoricalOfBoth(_FeatureColumn, core._CategoricalColumn):
    """A column that makes ids."""

    length: int

    @property
    def _num_buckets(self) -> int:
        return self.length

    @abstractmethod
    def id_tensor(self, input_tensor: Any) -> Any:
        """The ids in what the column made."""

    def weight_tensor(self, input_tensor: Any) -> Any:
        """Their weights, or None."""
        return None

    def _get_sparse_tensors(self, inputs: Any, weight_collections: Any = None, trainable: Any = None) -> Any:
        made = inputs.get(self)
        return self.IdWeightPair(self.id_tensor(made), self.weight_tensor(made))

    def _wide_embedding_lookup_arguments(self, input_tensor: Any) -> LinearLookup | None:
        return LinearLookup(
            input_tensor=self.id_tensor(input_tensor),
            weight_tensor=self.weight_tensor(input_tensor),
            vocab_size=self.length,
            initializer=tf.zeros_initializer(),
            combiner=getattr(self, "combiner", "sum"),
        )


# ---- tensors and variables


def inner_flatten(tensor: Any, new_rank: int) -> Any:
    """`tensor` with its last dimensions as one, so that there are `new_rank`.

    ValueError if it is known to have fewer.
    """
    known = tensor.shape.ndims
    is_sparse = isinstance(tensor, tf.SparseTensor)
    if known is not None and known < new_rank:
        raise ValueError(f"Inputs has rank less than new_rank. {tensor} must have rank at least {new_rank}.")
    if known == new_rank and not is_sparse:
        return tensor
    with tf.name_scope("InnerFlatten"):
        sizes = tensor.dense_shape if is_sparse else tf.shape(tensor)
        last = [tf.reduce_prod(sizes[new_rank - 1 :])] if is_sparse else [-1]
        new = tf.concat([sizes[: new_rank - 1], last], 0)
        if is_sparse:
            return tf.sparse_reshape(tensor, new)
        result = tf.reshape(tensor, new)
        if known is not None:
            front = tensor.shape.as_list()[: new_rank - 1]
            rest = tf.TensorShape(tensor.shape[new_rank - 1 :]).num_elements()
            result.set_shape([*front, rest])
        return result


def model_variable(name: str, shape: Any, collections: Any, trainable: bool, initializer: Any) -> Any:
    """A variable in the scope in force, in the collections of variables, of models' variables, and further
    ones.
    """
    keys = {tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.MODEL_VARIABLES, *(collections or [])}
    return tf.get_variable(
        name,
        shape=shape,
        dtype=tf.float32,
        initializer=initializer,
        trainable=trainable,
        collections=sorted(keys),
    )


def parts_of(variable: Any) -> list[Any]:
    """The parts of a variable that may be partitioned."""
    return list(variable) if hasattr(variable, "_get_variable_list") else [variable]


def restored(column: _FeatureColumn, variable: Any) -> Any:
    """`variable`, which begins as the column's checkpoint says."""
    if column._checkpoint_path is not None:
        path, tensor_name = column._checkpoint_path
        tf.train.init_from_checkpoint(path, {tensor_name: variable})
    return variable


def embedded(
    column: _FeatureColumn, lookup: DeepLookup, weight_collections: Any, trainable: bool, output_rank: int = 2
) -> Any:
    """The combined embeddings of a lookup, with `output_rank` dimensions, the last of which is theirs."""
    ids = inner_flatten(lookup.input_tensor, output_rank)
    weights = lookup.weight_tensor
    if weights is not None:
        weights = inner_flatten(weights, output_rank)
    trainable = bool(trainable and lookup.trainable)
    if ids.dtype.base_dtype is tf.string:
        table = model_variable(
            "weights", [lookup.vocab_size], weight_collections, trainable, lookup.initializer
        )
        return _scattered(table, ids, lookup)
    sizes = [lookup.vocab_size, lookup.dimension]
    if lookup.shared_embedding_name is not None:
        table = _shared_table(lookup, sizes, weight_collections, trainable)
    else:
        table = model_variable("weights", sizes, weight_collections, trainable, lookup.initializer)
    return safe_embedding_lookup_sparse(
        restored(column, table),
        ids,
        sparse_weights=weights,
        combiner=lookup.combiner,
        name=f"{column.name}weights",
        max_norm=lookup.max_norm,
    )


def _shared_table(lookup: DeepLookup, sizes: list[int], weight_collections: Any, trainable: bool) -> Any:
    """The table of several columns: one a name and graph."""
    collection = f"SHARED_EMBEDDING_COLLECTION_{lookup.shared_embedding_name}"
    found = tf.get_collection(collection)
    if found:
        if len(found) > 1:
            raise ValueError(f"Collection {collection} can only contain one (partitioned) variable.")
        return found[0]
    table = model_variable(
        lookup.shared_embedding_name, sizes, weight_collections, trainable, lookup.initializer
    )
    tf.add_to_collection(collection, table)
    return table


def _scattered(table: Any, values: Any, lookup: DeepLookup) -> Any:
    """Combined rows that are gathered from a vector: element i of a value's row is at hash(i, value)."""
    values, _ = tf.sparse_fill_empty_rows(values, _NO_VALUE)
    rows, size = values.indices[:, 0], tf.size(values.values)
    place = tf.tile(tf.range(lookup.dimension), [size])
    texts = tf.reshape(tf.tile(tf.expand_dims(values.values, 1), [1, lookup.dimension]), [-1])
    crossed = sparse_feature_cross(
        [tf.expand_dims(place, -1), tf.expand_dims(texts, -1)],
        hashed_output=True,
        num_buckets=lookup.vocab_size,
        hash_key=lookup.hash_key,
    )
    ids = tf.reshape(crossed.values, [-1, lookup.dimension])
    found = tf.nn.embedding_lookup(table, ids, partition_strategy="div")
    result = _combined(found, rows, lookup.combiner)
    result.set_shape([None, lookup.dimension])
    return result


def _combined(values: Any, rows: Any, combiner: str) -> Any:
    """The sum of each row's values, their mean, or the sum divided by the root of their number."""
    if combiner == "mean":
        return tf.segment_mean(values, rows)
    total = tf.segment_sum(values, rows)
    if combiner == "sum":
        return total
    counts = tf.segment_sum(tf.ones_like(rows, tf.float32), rows)
    return total / tf.expand_dims(tf.sqrt(counts), -1)
