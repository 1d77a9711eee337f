"""`tf.contrib.tensor_forest.data_ops`: features and labels as a forest takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.tensor_forest import tensor_forest_ops

__all__ = [
    "DATA_CATEGORICAL",
    "DATA_FLOAT",
    "CastToFloat",
    "DataColumn",
    "DataColumnCollection",
    "GetColumnName",
    "ParseDataTensorOrDict",
    "ParseLabelTensorOrDict",
    "TensorForestDataSpec",
    "tensor_forest_ops",
]

DATA_FLOAT = 0
DATA_CATEGORICAL = 1


class DataColumn:
    """A column's `name`, `original_type` (DATA_FLOAT or DATA_CATEGORICAL) and `size`, -1 if unknown."""

    def __init__(self) -> None:
        self.name = ""
        self.original_type = ""
        self.size = 0

    def SerializeToString(self) -> str:
        """The text of the column."""
        return f"name: {self.name} original_type: {self.original_type} size: {self.size}"


class DataColumnCollection:
    """Columns in their order."""

    def __init__(self) -> None:
        self.cols: list[DataColumn] = []

    def add(self) -> DataColumn:
        """Puts a new column at the end."""
        self.cols.append(DataColumn())
        return self.cols[-1]

    def size(self) -> int:
        """How many columns there are."""
        return len(self.cols)

    def SerializeToString(self) -> str:
        """The text of the columns."""
        return "".join(f"{{{column.SerializeToString()}}}" for column in self.cols)


class TensorForestDataSpec:
    """The columns of a forest's features: `dense` ones, how many numbers those are, and `sparse` ones."""

    def __init__(self) -> None:
        self.sparse = DataColumnCollection()
        self.dense = DataColumnCollection()
        self.dense_features_size = 0

    def SerializeToString(self) -> str:
        """The text that the operations of trees read."""
        return (
            f"dense_features_size: {self.dense_features_size} dense: [{self.dense.SerializeToString()}]"
            f" sparse: [{self.sparse.SerializeToString()}]"
        )


def CastToFloat(tensor: Any) -> Any:
    """The tensor as numbers: float64 is left as it is, a string becomes its hash.

    Raises NotImplementedError for other types.
    """
    if tensor.dtype == tf.string:
        return tensor_forest_ops.reinterpret_string_to_float(tensor)
    if tensor.dtype.is_integer:
        return tf.to_float(tensor)
    if tensor.dtype.is_floating:
        return tensor if tensor.dtype in (tf.float32, tf.float64) else tf.to_float(tensor)
    raise NotImplementedError(f"features of the type {tensor.dtype.name} are not supported")


def GetColumnName(column_key: Any, col_num: int) -> str:
    """The name of a column: its key, or what it has in place of one."""
    return column_key if isinstance(column_key, str) else f"{getattr(column_key, 'column_name', column_key)}"


def _original_type(dtype: Any) -> int:
    return DATA_FLOAT if dtype in (tf.float32, tf.float64) else DATA_CATEGORICAL


def _parse_columns(data: Mapping[Any, Any]) -> tuple[list[Any], list[Any], TensorForestDataSpec]:
    spec, dense, sparse = TensorForestDataSpec(), [], []
    for number, key in enumerate(sorted(data)):
        column = data[key]
        if isinstance(column, tf.SparseTensor):
            if column.dtype == tf.float32:
                tf.logging.info("Sparse float column %s ignored.", key)
                continue
            sparse.append(tf.SparseTensor(column.indices, CastToFloat(column.values), column.dense_shape))
            continue
        width = column.shape[1].value if column.shape.ndims and column.shape.ndims > 1 else None
        added = spec.dense.add()
        added.name, added.size = GetColumnName(key, number), 1 if width is None else width
        added.original_type = _original_type(column.dtype)  # type: ignore[assignment]
        spec.dense_features_size += added.size
        dense.append(CastToFloat(column))
    if sparse:
        added = spec.sparse.add()
        added.name, added.size = "all_sparse", -1
        added.original_type = DATA_CATEGORICAL  # type: ignore[assignment]
    return dense, sparse, spec


def ParseDataTensorOrDict(data: Any) -> tuple[Any, Any, TensorForestDataSpec]:
    """(dense features, sparse features, what they are) of a tensor, a SparseTensor, or a dictionary of these.

    Dense features are one matrix [examples, features] of the columns in the order of their keys, or None; so
    are sparse ones, as one SparseTensor.
    """
    if isinstance(data, dict):
        dense, sparse, spec = _parse_columns(data)
        return (
            tf.concat(dense, 1) if dense else None,
            tf.sparse_concat(1, sparse) if sparse else None,
            spec,
        )
    spec = TensorForestDataSpec()
    columns, name = (
        (spec.sparse, "sparse_features")
        if isinstance(data, tf.SparseTensor)
        else (
            spec.dense,
            "dense_features",
        )
    )
    column = columns.add()
    column.name, column.size = name, -1
    column.original_type = DATA_FLOAT  # type: ignore[assignment]
    if isinstance(data, tf.SparseTensor):
        return None, data, spec
    data = tf.convert_to_tensor(data)
    column.size = spec.dense_features_size = int(data.shape[1])
    return data, None, spec


def ParseLabelTensorOrDict(labels: Any) -> Any:
    """Labels as float32: a tensor, or a dictionary of tensors, the columns of one matrix in the keys' order.

    A SparseTensor becomes dense.
    """

    def dense(each: Any) -> Any:
        return tf.to_float(tf.sparse_tensor_to_dense(each) if isinstance(each, tf.SparseTensor) else each)

    if isinstance(labels, dict):
        return tf.concat([dense(labels[key]) for key in sorted(labels)], 1)
    return dense(labels)
