"""The ops that parse serialised Examples into tensors: a batch, or one.

Outputs are, for the sparse features, all indices, all values and all shapes; then the dense features; then of
ragged ones all values and all row splits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import format_dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.windows import require_rank
from flowstone.ops.parsing.columns import KIND_OF, Column, columns_of
from flowstone.ops.parsing.feature_tensors import (
    Rows,
    Wanted,
    as_array,
    as_value,
    check_default,
    dense,
    padded,
    sparse,
    splits,
)
from flowstone.ops.parsing.layouts import Array

_KINDS = "list(type) in [float32, int64, string] >= 0"


class Features(NamedTuple):
    """What is asked of each message: sparse, dense and ragged features; ragged ones with the splits' type."""

    sparse: Sequence[tuple[bytes, DType]]
    dense: Sequence[Wanted]
    ragged: Sequence[tuple[bytes, DType, DType]] = ()

    def kinds(self) -> dict[bytes, int]:
        """The kind of each feature. InvalidArgumentError for one that is asked for as two."""
        kinds: dict[bytes, int] = {}
        pairs = [
            *self.sparse,
            *((each.key.encode(errors="surrogateescape"), each.dtype) for each in self.dense),
            *((key, dtype) for key, dtype, _ in self.ragged),
        ]
        for key, dtype in pairs:
            if kinds.setdefault(key, KIND_OF[dtype]) != KIND_OF[dtype]:
                raise invalid(f"Feature {key!r} is asked for with two types")
        return kinds


def wanted_of(
    keys: Sequence[bytes], types: Sequence[DType], shapes: Sequence[Any], defaults: Sequence[Any]
) -> list[Wanted]:
    """The dense features of attributes and inputs. InvalidArgumentError for defaults of other shapes."""
    if len(keys) != len(types):
        raise invalid(f"Expected {len(types)} dense keys, one a default value, but got {len(keys)}")
    wanted = [
        Wanted(key.decode(errors="surrogateescape"), dtype, dims, as_array(default))
        for key, dtype, dims, default in zip(keys, types, shapes, defaults)
    ]
    for each in wanted:
        check_default(each)
    return wanted


def key_list(value: Any) -> list[bytes]:
    """The keys in a vector, or one that is alone."""
    return value.reshape(-1).tolist() if isinstance(value, np.ndarray) else [value]


def batch_outputs(columns: dict[bytes, Column], features: Features, names: Rows) -> tuple[Any, ...]:
    """The outputs for a batch."""
    parts = [sparse(columns[key]) for key, _ in features.sparse]
    outputs = [as_value(part[i]) for i in range(3) for part in parts]
    for each in features.dense:
        column = columns[each.key.encode(errors="surrogateescape")]
        make = padded if each.dims and each.dims[0] is None else dense
        outputs.append(as_value(make(column, each, names)))
    outputs += [as_value(columns[key].values) for key, _, _ in features.ragged]
    outputs += [as_value(splits(columns[k].counts, t.as_numpy_dtype)) for k, _, t in features.ragged]
    return tuple(outputs)


def messages_of(serialized: Array) -> list[bytes]:
    """The messages of a vector of them."""
    if serialized.ndim != 1:
        raise invalid(f"Expected serialized to be a vector, got shape: {format_dims(serialized.shape)}.")
    messages: list[bytes] = serialized.tolist()
    return messages


def checked_names(names: Array, count: int) -> Sequence[bytes]:
    """The names of the messages, or none."""
    found: list[bytes] = names.reshape(-1).tolist()
    if names.ndim != 1 or (found and len(found) != count):
        raise invalid(
            f"Expected len(names) == len(serialized), got shapes {format_dims(names.shape)} vs. [{count}]"
        )
    return found


def _check_shapes(node: Node) -> None:
    shapes, types = node.attributes["dense_shapes"], node.attributes["Tdense"]
    if len(shapes) != len(types):
        raise ValueError(f"len(dense_shapes) != len(dense_types): {len(shapes)} vs. {len(types)}")
    for dims in shapes:
        if dims is None or None in dims[1:]:
            raise ValueError(f"dense_shapes has unknown rank or unknown inner dimensions: {dims}")


# ---- a batch, keys one by one

parse_example_op = op(
    "ParseExample",
    "serialized: string, names: string, sparse_keys: Nsparse*string, dense_keys: Ndense*string, "
    "dense_defaults: *Tdense -> sparse_indices: Nsparse*int64, sparse_values: *sparse_types, "
    "sparse_shapes: Nsparse*int64, dense_values: *Tdense",
    f"Nsparse: int >= 0 ; Ndense: int >= 0 ; sparse_types: {_KINDS} ; Tdense: {_KINDS} ; "
    "dense_shapes: list(shape) >= 0",
)
parse_example_op.no_gradient()


@parse_example_op.infer
def _(node: Node) -> Shapes:
    require_rank(node.dims(0), 1)
    require_rank(node.dims(1), 1)
    _check_shapes(node)
    return _batch_shapes(node, node.dims(0), len(node.attributes["sparse_types"]))


def _batch_shapes(node: Node, dims: Any, sparse_count: int) -> Shapes:
    rows = (None,) if dims is None else dims
    rank = len(rows) + 1
    shapes: list[Any] = [(None, rank)] * sparse_count + [(None,)] * sparse_count + [(rank,)] * sparse_count
    return shapes + [(*rows, *each) for each in node.attributes["dense_shapes"]]


@parse_example_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    attributes = node.attributes
    sparse_types, dense_types = attributes["sparse_types"], attributes["Tdense"]
    shapes = attributes["dense_shapes"]
    first, last = 2 + len(sparse_types), 2 + len(sparse_types) + len(dense_types)

    def run(serialized: Array, names: Array, *rest: Any) -> tuple[Any, ...]:
        inputs = (serialized, names, *rest)
        messages = messages_of(serialized)
        rows = Rows(checked_names(names, len(messages)))
        dense_keys = [key_list(key)[0] for key in inputs[first:last]]
        sparse_features = list(zip([key_list(key)[0] for key in inputs[2:first]], sparse_types))
        features = Features(sparse_features, wanted_of(dense_keys, dense_types, shapes, inputs[last:]))
        return batch_outputs(columns_of(messages, features.kinds(), rows.refusal), features, rows)

    return run


# ---- a batch or one, keys as vectors

parse_example_v2_op = op(
    "ParseExampleV2",
    "serialized: string, names: string, sparse_keys: string, dense_keys: string, ragged_keys: string, "
    "dense_defaults: *Tdense -> sparse_indices: num_sparse*int64, sparse_values: *sparse_types, "
    "sparse_shapes: num_sparse*int64, dense_values: *Tdense, ragged_values: *ragged_value_types, "
    "ragged_row_splits: *ragged_split_types",
    f"Tdense: {_KINDS} ; num_sparse: int >= 0 ; sparse_types: {_KINDS} ; ragged_value_types: {_KINDS} ; "
    "ragged_split_types: list(type) in [int32, int64] >= 0 ; dense_shapes: list(shape) >= 0",
)
parse_example_v2_op.no_gradient()


@parse_example_v2_op.infer
def _(node: Node) -> Shapes:
    dims = node.dims(0)
    if dims is not None and len(dims) > 1:
        raise ValueError(f"Shape must be at most rank 1 but is rank {len(dims)}")
    _check_shapes(node)
    attributes = node.attributes
    sparse_count, ragged_count = attributes["num_sparse"], len(attributes["ragged_value_types"])
    if dims is None:
        shapes: list[Any] = [(None, None)] * sparse_count + [(None,)] * (2 * sparse_count)
        shapes += [None] * len(attributes["dense_shapes"])
    else:
        shapes = list(_batch_shapes(node, dims, sparse_count) or ())
    rows = dims[0] if dims else None
    row_splits = (None if rows is None else rows + 1,)
    return shapes + [(None,)] * ragged_count + [row_splits] * ragged_count


@parse_example_v2_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    attributes = node.attributes
    sparse_types, dense_types = attributes["sparse_types"], attributes["Tdense"]
    ragged_types = list(zip(attributes["ragged_value_types"], attributes["ragged_split_types"]))

    def run(serialized: Array, names: Array, sparse_keys: Array, dense_keys: Array, ragged_keys: Array,
            *defaults: Any) -> tuple[Any, ...]:  # fmt: skip
        chosen = key_list(sparse_keys), key_list(dense_keys), key_list(ragged_keys)
        for what, keys, types in zip(("sparse", "ragged"), chosen[::2], (sparse_types, ragged_types)):
            if len(keys) != len(types):
                raise invalid(f"Expected {len(types)} {what} keys, one a type, but got {len(keys)}")
        features = Features(
            list(zip(chosen[0], sparse_types)),
            wanted_of(chosen[1], dense_types, attributes["dense_shapes"], defaults),
            [(key, *types) for key, types in zip(chosen[2], ragged_types)],
        )
        if serialized.ndim:
            messages = messages_of(serialized)
            rows = Rows(checked_names(names, len(messages)))
            return batch_outputs(columns_of(messages, features.kinds(), rows.refusal), features, rows)
        return single_outputs(serialized.item(), features, names.reshape(-1).tolist())

    return run


# ---- one


def single_outputs(message: bytes, features: Features, names: Sequence[bytes] = ()) -> tuple[Any, ...]:
    """The outputs for one message: those of a batch of one, without the dimension of the batch."""
    rows = Rows(names, is_one=True)
    columns = columns_of([message], features.kinds(), rows.refusal)
    outputs = list(batch_outputs(columns, features, rows))
    count = len(features.sparse)
    for i in range(count):
        outputs[i] = outputs[i][:, 1:]
        outputs[2 * count + i] = outputs[2 * count + i][1:]
    for i in range(3 * count, 3 * count + len(features.dense)):
        dims = outputs[i].shape[1:]
        outputs[i] = outputs[i].reshape(dims)
    for i in range(len(outputs) - len(features.ragged), len(outputs)):
        outputs[i] = outputs[i][:0]  # one list has no rows
    return tuple(outputs)


parse_single_example_op = op(
    "ParseSingleExample",
    "serialized: string, dense_defaults: *Tdense -> sparse_indices: num_sparse*int64, "
    "sparse_values: *sparse_types, sparse_shapes: num_sparse*int64, dense_values: *Tdense",
    "num_sparse: int >= 0 ; sparse_keys: list(string) >= 0 ; dense_keys: list(string) >= 0 ; "
    f"sparse_types: {_KINDS} ; Tdense: {_KINDS} ; dense_shapes: list(shape) >= 0",
)
parse_single_example_op.no_gradient()


@parse_single_example_op.infer
def _(node: Node) -> Shapes:
    require_rank(node.dims(0), 0)
    _check_shapes(node)
    if len(node.attributes["sparse_keys"]) != len(node.attributes["sparse_types"]):
        raise ValueError("len(sparse_keys) != len(sparse_types)")
    return _batch_shapes(node, (), len(node.attributes["sparse_types"]))


def attribute_keys(keys: Sequence[str | bytes]) -> list[bytes]:
    """Keys that are an attribute, as bytes."""
    return [key.encode() if isinstance(key, str) else key for key in keys]


@parse_single_example_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    attributes = node.attributes
    sparse_features = list(zip(attribute_keys(attributes["sparse_keys"]), attributes["sparse_types"]))
    dense_keys = attribute_keys(attributes["dense_keys"])

    def run(serialized: Array, *defaults: Any) -> tuple[Any, ...]:
        if serialized.ndim:
            raise invalid(f"Expected serialized to be a scalar, got shape: {format_dims(serialized.shape)}")
        wanted = wanted_of(dense_keys, attributes["Tdense"], attributes["dense_shapes"], defaults)
        return single_outputs(serialized.item(), Features(sparse_features, wanted))

    return run
