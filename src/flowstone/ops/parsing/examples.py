"""The ops that parse serialised Examples into tensors: a batch, or one (`feature_outputs`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import format_dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.windows import require_rank
from flowstone.ops.parsing.feature_outputs import (
    Features,
    Remembered,
    batch_outputs,
    single_outputs,
    wanted_of,
)
from flowstone.ops.parsing.feature_tensors import Rows
from flowstone.ops.parsing.layouts import Array

_KINDS = "list(type) in [float32, int64, string] >= 0"


def key_list(value: Any) -> list[bytes]:
    """The keys in a vector, or one that is alone."""
    return value.reshape(-1).tolist() if isinstance(value, np.ndarray) else [value]


def check_vector(serialized: Array) -> None:
    """InvalidArgumentError for messages that are no vector."""
    if serialized.ndim != 1:
        raise invalid(f"Expected serialized to be a vector, got shape: {format_dims(serialized.shape)}.")


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
    first, last = len(sparse_types), len(sparse_types) + len(dense_types)

    def asked(*inputs: Any) -> Features:
        sparse_features = list(zip([key_list(key)[0] for key in inputs[:first]], sparse_types))
        dense_keys = [key_list(key)[0] for key in inputs[first:last]]
        return Features(sparse_features, wanted_of(dense_keys, dense_types, shapes, inputs[last:]))

    features = Remembered(asked)

    def run(serialized: Array, names: Array, *rest: Any) -> tuple[Any, ...]:
        check_vector(serialized)
        rows = Rows(checked_names(names, len(serialized)))
        return batch_outputs(serialized, features(rest), rows)

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

    def asked(sparse_keys: Array, dense_keys: Array, ragged_keys: Array, *defaults: Any) -> Features:
        chosen = key_list(sparse_keys), key_list(dense_keys), key_list(ragged_keys)
        for what, keys, types in zip(("sparse", "ragged"), chosen[::2], (sparse_types, ragged_types)):
            if len(keys) != len(types):
                raise invalid(f"Expected {len(types)} {what} keys, one a type, but got {len(keys)}")
        return Features(
            list(zip(chosen[0], sparse_types)),
            wanted_of(chosen[1], dense_types, attributes["dense_shapes"], defaults),
            [(key, *types) for key, types in zip(chosen[2], ragged_types)],
        )

    features = Remembered(asked)

    def run(serialized: Array, names: Array, *rest: Any) -> tuple[Any, ...]:
        found = features(rest)
        if serialized.ndim:
            check_vector(serialized)
            return batch_outputs(serialized, found, Rows(checked_names(names, len(serialized))))
        return single_outputs(serialized, found, names.reshape(-1).tolist())

    return run


# ---- one

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
    get = node.attributes
    count, keys, types = get["num_sparse"], len(get["sparse_keys"]), len(get["sparse_types"])
    if not count == keys == types:
        raise ValueError(
            f"num_sparse ({count}) must match the size of sparse_keys ({keys}) and sparse_types ({types})"
        )
    if len(get["dense_keys"]) != len(get["Tdense"]):
        raise ValueError(
            f"len(dense_keys) != len(dense_types): {len(get['dense_keys'])} vs. {len(get['Tdense'])}"
        )
    return _batch_shapes(node, (), len(node.attributes["sparse_types"]))


def attribute_keys(keys: Sequence[str | bytes]) -> list[bytes]:
    """Keys that are an attribute, as bytes."""
    return [key.encode() if isinstance(key, str) else key for key in keys]


@parse_single_example_op.kernel(CPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    attributes = node.attributes
    sparse_features = list(zip(attribute_keys(attributes["sparse_keys"]), attributes["sparse_types"]))
    dense_keys = attribute_keys(attributes["dense_keys"])

    def asked(*defaults: Any) -> Features:
        wanted = wanted_of(dense_keys, attributes["Tdense"], attributes["dense_shapes"], defaults)
        return Features(sparse_features, wanted)

    features = Remembered(asked)

    def run(serialized: Array, *defaults: Any) -> tuple[Any, ...]:
        if serialized.ndim:
            raise invalid(f"Expected serialized to be a scalar, got shape: {format_dims(serialized.shape)}")
        return single_outputs(serialized, features(defaults))

    return run
