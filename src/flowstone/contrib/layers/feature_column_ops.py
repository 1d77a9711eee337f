"""Layers of the older feature columns: inputs of networks, weighted sums, and parsed examples.

Columns come in the order of their keys. `columns_to_tensors` is a dict from features' keys to tensors, into
which columns put what they make. Variables are TensorFlow's: ``SCOPE/COLUMN/weights``, and ``weight`` for
numbers, ``SCOPE/bias_weight``; SCOPE is the function's name, unless one is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.layers.column_interface import (
    _FeatureColumn,
    embedded,
    inner_flatten,
    model_variable,
    parts_of,
    restored,
)
from flowstone.contrib.layers.embedding_columns import _EmbeddingColumn
from flowstone.contrib.layers.feature_column import (
    _create_sequence_feature_spec_for_parsing,
    create_feature_spec_for_parsing,
)
from flowstone.contrib.layers.real_valued_columns import (
    _BucketizedColumn,
    _CrossedColumn,
    _RealValuedColumn,
    as_matrix,
    real_valued_column,
)
from flowstone.contrib.layers.sparse_columns import _OneHotColumn, _WeightedSparseColumn
from flowstone.ops.sparse.safe_embedding import safe_embedding_lookup_sparse

__all__ = [
    "check_feature_columns",
    "infer_real_valued_columns",
    "input_from_feature_columns",
    "joint_weighted_sum_from_feature_columns",
    "parse_feature_columns_from_examples",
    "parse_feature_columns_from_sequence_examples",
    "sequence_input_from_feature_columns",
    "transform_features",
    "weighted_sum_from_feature_columns",
]

# ---- what columns make


def _parents(column: Any) -> list[Any]:
    """The columns that `column` is made from."""
    if isinstance(column, (_WeightedSparseColumn, _OneHotColumn, _EmbeddingColumn)):
        return [column.sparse_id_column]
    if isinstance(column, _BucketizedColumn):
        return [column.source_column]
    if isinstance(column, _CrossedColumn):
        return list(column.columns)
    return []


def _gathered(columns: Iterable[Any]) -> Iterator[Any]:
    """The columns, and all that they are made from."""
    for column in columns:
        yield column
        yield from _gathered(_parents(column))


class _Transformer:
    """Makes the tensors of columns in a dict of the features' tensors, each once."""

    def __init__(self, columns_to_tensors: dict[Any, Any]) -> None:
        self._columns_to_tensors = columns_to_tensors

    def transform(self, column: _FeatureColumn) -> Any:
        """What the column makes."""
        if column not in self._columns_to_tensors:
            if isinstance(column, _CrossedColumn):  # the values of sparse columns, and no ids
                needed = [each for each in _gathered([column]) if isinstance(each, _BucketizedColumn)]
            else:
                needed = _parents(column)
            for each in needed:
                self.transform(each)
            column.insert_transformed_feature(self._columns_to_tensors)
        return self._columns_to_tensors[column]


def _ordered(feature_columns: Iterable[Any]) -> list[Any]:
    return sorted(set(feature_columns), key=lambda column: column.key)


def check_feature_columns(feature_columns: Iterable[Any]) -> None:
    """ValueError if two columns have one key."""
    seen = set()
    for column in feature_columns:
        if column.key in seen:
            raise ValueError(
                f"Duplicate feature column key found for column: {column.name}. This usually means that the "
                "column is almost identical to another column, and one must be discarded."
            )
        seen.add(column.key)


def transform_features(features: Mapping[Any, Any], feature_columns: Iterable[Any]) -> dict[Any, Any]:
    """What each column makes of the features, by column. ValueError if two columns have one key."""
    columns = list(feature_columns)
    check_feature_columns(columns)
    transformer = _Transformer(dict(features))
    return {column: transformer.transform(column) for column in _ordered(columns)}


def parse_feature_columns_from_examples(
    serialized: Any, feature_columns: Iterable[Any], name: str | None = None, example_names: Any = None
) -> dict[Any, Any]:
    """What columns make of Examples.

    Args:
        serialized: serialised Examples: strings, [batch].
        feature_columns: the columns, of different keys.
        name: of the operation that parses.
        example_names: names of the examples, for messages.

    Returns:
        A dict from features' keys to tensors, and from columns to what they made.
    """
    columns = list(feature_columns)
    check_feature_columns(columns)
    spec = create_feature_spec_for_parsing(columns)
    found = dict(tf.parse_example(serialized, features=spec, name=name, example_names=example_names))
    transformer = _Transformer(found)
    for column in _ordered(columns):
        for each in [*_parents(column), column]:
            transformer.transform(each)
    return found


def parse_feature_columns_from_sequence_examples(
    serialized: Any,
    context_feature_columns: Iterable[Any] | None,
    sequence_feature_columns: Iterable[Any] | None,
    name: str | None = None,
    example_name: Any = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The features, by key, of the context and of the steps of a serialised SequenceExample."""
    if not (context_feature_columns or sequence_feature_columns):
        return {}, {}
    context, sequence = tf.parse_single_sequence_example(
        serialized,
        create_feature_spec_for_parsing(context_feature_columns or []),
        _create_sequence_feature_spec_for_parsing(sequence_feature_columns or []),
        example_name,
        name,
    )
    return context, sequence


# ---- inputs of networks


def input_from_feature_columns(
    columns_to_tensors: Mapping[Any, Any],
    feature_columns: Iterable[Any],
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    cols_to_outs: dict[Any, Any] | None = None,
) -> Any:
    """What dense columns make of the features, side by side.

    Args:
        columns_to_tensors: from features' keys to tensors.
        feature_columns: dense columns of different keys.
        weight_collections: further collections for tables.
        trainable: whether these are.
        scope: of the variables.
        cols_to_outs: a dict that gets the tensor of each column.

    Returns:
        float32, [batch, elements of all columns].

    Raises ValueError for a column that is not dense, none, and two of a key.
    """
    return _input_from_feature_columns(
        columns_to_tensors,
        feature_columns,
        weight_collections,
        trainable,
        scope,
        2,
        "input_from_feature_columns",
        cols_to_outs,
    )


def _input_from_feature_columns(
    columns_to_tensors: Mapping[Any, Any],
    feature_columns: Iterable[Any],
    weight_collections: Any,
    trainable: bool,
    scope: Any,
    output_rank: int,
    default_name: str,
    cols_to_outs: dict[Any, Any] | None = None,
) -> Any:
    columns = list(feature_columns)
    check_feature_columns(columns)
    if not columns:
        raise ValueError("There are no feature columns: an input needs at least one.")
    tensors = dict(columns_to_tensors)
    with tf.variable_scope(scope, default_name=default_name, values=list(tensors.values())):
        transformer, outputs = _Transformer(tensors), []
        for column in _ordered(columns):
            with tf.variable_scope(None, default_name=column.name):
                made = transformer.transform(column)
                output = _of_network(column, made, weight_collections, trainable, output_rank)
                outputs.append(output)
                if cols_to_outs is not None:
                    cols_to_outs[column] = output
        return tf.concat(outputs, output_rank - 1)


def _of_network(column: Any, made: Any, weight_collections: Any, trainable: bool, output_rank: int) -> Any:
    try:
        lookup = column._deep_embedding_lookup_arguments(made)
        if lookup is not None:
            return embedded(column, lookup, weight_collections, trainable, output_rank)
        return column._to_dnn_input_layer(made, weight_collections, trainable, output_rank)
    except ValueError as error:
        raise ValueError(f"Error creating input layer for column: {column.name}.\n{error}") from error


def sequence_input_from_feature_columns(
    columns_to_tensors: Mapping[Any, Any],
    feature_columns: Iterable[Any],
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """What dense columns make of features of steps: float32, [batch, steps, elements of all columns].

    The arguments are those of `input_from_feature_columns`. Raises ValueError for crosses and other columns
    that have no steps.
    """
    columns = list(feature_columns)
    for column in columns:
        if not isinstance(column, (_OneHotColumn, _EmbeddingColumn, _RealValuedColumn)):
            raise ValueError(
                f"FeatureColumn type {type(column).__name__} is not currently supported for sequence data."
            )
    for column in _gathered(columns):
        if isinstance(column, _CrossedColumn):
            raise ValueError(
                f"Column {column.name} is of type {type(column).__name__}, which is not currently supported "
                "for sequences."
            )
    return _input_from_feature_columns(
        columns_to_tensors,
        columns,
        weight_collections,
        trainable,
        scope,
        3,
        "sequence_input_from_feature_columns",
    )


# ---- linear models


def weighted_sum_from_feature_columns(
    columns_to_tensors: Mapping[Any, Any],
    feature_columns: Iterable[Any],
    num_outputs: int,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[Any, dict[Any, list[Any]], Any]:
    """A weighted sum of what the columns make of the features, and a bias; all weights begin with 0.

    Args:
        columns_to_tensors: from features' keys to tensors.
        feature_columns: sparse, bucketized, crossed and real-valued columns of different keys.
        num_outputs: the number of sums.
        weight_collections: further collections for the weights.
        trainable: whether these are.
        scope: of the variables.

    Returns:
        The sums, float32 [batch, num_outputs]; a dict from columns to lists of their variables; the bias.

    Raises NotImplementedError for a column without weights, ValueError for embeddings, and two of a key.
    """
    columns = list(feature_columns)
    check_feature_columns(columns)
    tensors = dict(columns_to_tensors)
    options = (num_outputs, weight_collections, trainable)
    with tf.variable_scope(
        scope, default_name="weighted_sum_from_feature_columns", values=list(tensors.values())
    ):
        transformer, sums, variables = _Transformer(tensors), [], {}
        for column in _ordered(columns):
            made = transformer.transform(column)
            try:
                variables[column], total = _weighted_sum(column, made, *options)
            except ValueError as error:
                raise ValueError(
                    f"Error creating weighted sum for column: {column.name}.\n{error}"
                ) from error
            sums.append(tf.reshape(total, shape=(-1, num_outputs)))
        logits, bias = _with_bias(tf.add_n(sums), *options)
    return logits, variables, bias


def _with_bias(sums: Any, num_outputs: int, weight_collections: Any, trainable: bool) -> tuple[Any, Any]:
    bias = model_variable("bias_weight", [num_outputs], weight_collections, trainable, tf.zeros_initializer())
    return tf.nn.bias_add(sums, bias), bias


def _weighted_sum(
    column: Any, made: Any, num_outputs: int, weight_collections: Any, trainable: bool
) -> tuple[list[Any], Any]:
    """The variables of a column, and its sums."""
    lookup = column._wide_embedding_lookup_arguments(made)
    with tf.variable_scope(None, default_name=column.name):
        if lookup is None:
            return _sum_of_numbers(column, made, num_outputs, weight_collections, trainable)
        sizes = [lookup.vocab_size, num_outputs]
        table = model_variable("weights", sizes, weight_collections, trainable, lookup.initializer)
        total = safe_embedding_lookup_sparse(
            restored(column, table),
            lookup.input_tensor,
            sparse_weights=lookup.weight_tensor,
            combiner=lookup.combiner,
            name=f"{column.name}_weights",
        )
        return parts_of(table), total


def _sum_of_numbers(
    column: Any, made: Any, num_outputs: int, weight_collections: Any, trainable: bool
) -> tuple[list[Any], Any]:
    numbers = column._to_dense_tensor(made)
    if numbers is None:
        raise NotImplementedError(f"No dense tensor representation for column {column}.")
    numbers = as_matrix(numbers, 2)
    sizes = [numbers.shape[1].value, num_outputs]
    weight = model_variable("weight", sizes, weight_collections, trainable, tf.zeros_initializer())
    return [weight], tf.matmul(numbers, weight, name="matmul")


def joint_weighted_sum_from_feature_columns(
    columns_to_tensors: Mapping[Any, Any],
    feature_columns: Iterable[Any],
    num_outputs: int,
    weight_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[Any, list[Any], Any]:
    """`weighted_sum_from_feature_columns` of categorical columns, with one table of all weights.

    Returns:
        The sums, float32 [batch, num_outputs]; a list of the table's parts; the bias.

    Raises ValueError for columns without ids or of different combiners, NotImplementedError for real-valued
    ones, AssertionError for weighted ones.
    """
    columns = list(feature_columns)
    check_feature_columns(columns)
    tensors = dict(columns_to_tensors)
    options = (num_outputs, weight_collections, trainable)
    with tf.variable_scope(
        scope, default_name="joint_weighted_sum_from_feature_columns", values=list(tensors.values())
    ):
        transformer, lookups = _Transformer(tensors), []
        for column in _ordered(columns):
            made = transformer.transform(column)
            lookup = column._wide_embedding_lookup_arguments(made)
            if lookup is None:
                raise NotImplementedError(
                    "Real-valued columns are not supported. Use weighted_sum_from_feature_columns instead, "
                    "or bucketize these columns."
                )
            lookups.append(lookup)
        table, sums = _joint_sum(lookups, *options)
        logits, bias = _with_bias(sums, *options)
    return logits, parts_of(table), bias


def _joint_sum(
    lookups: list[Any], num_outputs: int, weight_collections: Any, trainable: bool
) -> tuple[Any, Any]:
    """The table, and the sums of its rows: each column has the rows behind those of the columns before."""
    shifted, size = [], 0
    for lookup in lookups:
        if lookup.weight_tensor is not None:
            raise AssertionError(
                "Joint sums for weighted sparse columns are not supported. Please use "
                "weighted_sum_from_feature_columns instead."
            )
        if lookup.combiner != "sum":
            raise AssertionError(
                'Combiners other than "sum" are not supported. Please use '
                "weighted_sum_from_feature_columns instead."
            )
        shifted.append(_shifted(inner_flatten(lookup.input_tensor, 2), size))
        size += lookup.vocab_size
    ids = shifted[0] if len(shifted) == 1 else tf.sparse_concat(1, shifted)
    with tf.variable_scope(None, default_name="linear_weights"):
        table = model_variable(
            "weights", [size, num_outputs], weight_collections, trainable, tf.zeros_initializer()
        )
        return table, safe_embedding_lookup_sparse(table, ids, combiner="sum", name="_weights")


def _shifted(ids: Any, offset: int) -> Any:
    """`offset` more for each id."""
    return tf.SparseTensor(ids.indices, tf.cast(ids.values, tf.int64) + offset, ids.dense_shape)


# ---- columns of tensors


def infer_real_valued_columns(features: Any) -> list[_RealValuedColumn]:
    """Real-valued columns for a tensor, or for each tensor of a dict.

    Raises ValueError for sparse tensors, those that are not numeric, and unknown sizes.
    """
    if not isinstance(features, Mapping):
        return [_inferred("", features)]
    return [_inferred(name, features[name]) for name in sorted(features)]


def _inferred(name: str, tensor: Any) -> _RealValuedColumn:
    if isinstance(tensor, tf.SparseTensor):
        raise ValueError(
            "SparseTensor is not supported for auto detection. Please define corresponding FeatureColumn for "
            f"tensor {name} {tensor}."
        )
    if not (tensor.dtype.is_integer or tensor.dtype.is_floating):
        raise ValueError(
            "Non integer or non floating types are not supported for auto detection. Please define "
            f"corresponding FeatureColumn for tensor {name} {tensor}."
        )
    elements = tensor.shape[1:].num_elements()
    if elements is None:
        raise ValueError(f"The sizes of tensor {name} {tensor} must be known, but for the first.")
    return real_valued_column(name, dimension=elements, dtype=tensor.dtype.base_dtype)
