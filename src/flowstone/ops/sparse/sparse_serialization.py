"""Sparse tensors as strings, and back: SerializeSparse, SerializeManySparse and their inverses.

One sparse tensor is three strings, the TensorProtos of its indices, values and shape. Many are a matrix of
them, a row for each slice along the first dimension. Joined again, tensors stand along new first dimensions,
each as large as the largest in the others. As variants (`out_type`), the three are the tensors themselves.
Strings live on the host: there are kernels for CPUs only.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.values import to_numpy, to_runtime
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.sparse.elements import copied
from flowstone.ops.sparse.index_rows import (
    check_ordered,
    check_rank,
    check_within,
    checked_parts,
    listed,
)
from flowstone.ops.sparse.tensor_texts import Content, data_of, elements, encode, header, read, with_content

_PARTS = "sparse_indices: int64, sparse_values: T, sparse_shape: int64"
_RESULT = "sparse_indices: int64, sparse_values: dtype, sparse_shape: int64"
_FORM = "type in [string, variant] = string"
_MOST_ROWS = 2**28

_Array = np.ndarray[Any, Any]


def _check_parts(node: Node) -> None:
    for i, rank in enumerate((2, 1, 1)):
        check_rank(node.dims(i), rank)


def _held(parts: Sequence[Any], shape: tuple[int, ...]) -> _Array:
    """Variants, or strings, as an array of this shape."""
    result = np.empty(len(parts), object)
    for i, part in enumerate(parts):
        result[i] = part
    return result.reshape(shape)


# ---- to strings

serialize_sparse_op = op(
    "SerializeSparse", f"{_PARTS} -> serialized_sparse: out_type", f"out_type: {_FORM}", T=None
).no_gradient()


@serialize_sparse_op.infer
def _(node: Node) -> Shapes:
    _check_parts(node)
    return (3,)


@serialize_sparse_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype, is_variant = node.dtype(1), node.attributes["out_type"] is dtypes.variant

    def serialize(rows: torch.Tensor, values: Any, shape: torch.Tensor) -> _Array:
        for part, rank, what in ((rows, 2, "indices"), (values, 1, "values"), (shape, 1, "shape")):
            if part.ndim != rank:
                kind = "matrix" if rank == 2 else "vector"
                raise invalid(f"Input {what} should be a {kind} but received shape {listed(part.shape)}")
        if is_variant:
            return _held([copied(part) for part in (rows, values, shape)], (3,))
        texts = [encode(rows.numpy()), encode(to_numpy(values, dtype), dtype), encode(shape.numpy())]
        return _held(texts, (3,))

    return serialize


serialize_many_sparse_op = op(
    "SerializeManySparse", f"{_PARTS} -> serialized_sparse: out_type", f"out_type: {_FORM}", T=None, cost=20
).no_gradient()


@serialize_many_sparse_op.infer
def _(node: Node) -> Shapes:
    _check_parts(node)
    return (None, 3)


@serialize_many_sparse_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype, is_variant = node.dtype(1), node.attributes["out_type"] is dtypes.variant

    def serialize(rows: torch.Tensor, values: Any, shape: torch.Tensor) -> _Array:
        sizes = checked_parts(rows, values, shape)
        if len(sizes) < 2:
            raise invalid(f"Rank of input SparseTensor should be > 1, but saw rank: {len(sizes)}")
        if sizes[0] > _MOST_ROWS:
            raise errors.ResourceExhaustedError(None, None, f"no memory for {sizes[0]} x 3 strings")
        first = rows[:, 0].contiguous()
        check_within(rows, sizes)
        check_ordered(rows, first, twice=True)
        bounds = torch.searchsorted(first, torch.arange(sizes[0] + 1)).tolist()
        rest = rows[:, 1:].contiguous()
        if is_variant:
            kept = torch.tensor(sizes[1:], dtype=torch.int64)
            parts: list[Any] = [
                part
                for a, b in itertools.pairwise(bounds)
                for part in (rest[a:b].clone(), copied(values[a:b]), kept)
            ]
        else:
            parts = [*_row_texts(rest.numpy(), to_numpy(values, dtype), dtype, sizes[1:], bounds)]
        return _held(parts, (sizes[0], 3))

    return serialize


def _row_texts(
    rows: _Array, values: _Array, dtype: DType, sizes: list[int], bounds: list[int]
) -> list[bytes]:
    """The three strings of each row, one row's after another's."""
    width = 8 * len(sizes)
    size = 0 if dtype is dtypes.string else dtype.size
    all_rows, all_values = data_of(rows), data_of(values) if size else b""
    shape = encode(np.array(sizes, np.int64))
    texts = []
    for a, b in itertools.pairwise(bounds):
        data = all_values[a * size : b * size] if size else data_of(values[a:b])
        texts += [
            with_content(header(dtypes.int64, (b - a, len(sizes))), all_rows[a * width : b * width]),
            with_content(header(dtype, (b - a,)), data),
            shape,
        ]
    return texts


# ---- and back


def _read_all(texts: _Array, dtype: DType) -> tuple[_Array, _Array, _Array, _Array]:
    """The index rows and values of all tensors [n, 3], how many each has, and the shapes [n, rank]."""
    columns = [[read(text) for text in texts[:, part].tolist()] for part in range(3)]
    rank = _check_columns(columns, dtype)
    counts = np.array([each.dims[0] for each in columns[0]], np.int64)
    rows = elements(columns[0], dtypes.int64).reshape(int(counts.sum()), rank)
    shapes = elements(columns[2], dtypes.int64).reshape(len(texts), rank)
    return rows, elements(columns[1], dtype), counts, shapes


def _check_columns(columns: list[list[Content]], dtype: DType) -> int:
    """The tensors' rank. InvalidArgumentError unless they are sparse tensors of one rank and of `dtype`."""
    rank = columns[2][0].dims[0] if len(columns[2][0].dims) == 1 else -1
    for i, (rows, values, shape) in enumerate(zip(*columns)):
        where = f"SparseTensor[{i}]"
        if rows.dtype is not dtypes.int64 or len(rows.dims) != 2:
            raise invalid(f"Expected {where}.indices to be a matrix of int64 but received {_told(rows)}")
        if len(values.dims) != 1:
            raise invalid(f"Expected {where}.values to be a vector but received {_told(values)}")
        if shape.dtype is not dtypes.int64 or len(shape.dims) != 1:
            raise invalid(f"Expected {where}.shape to be a vector of int64 but received {_told(shape)}")
        if values.dtype is not dtype:
            raise invalid(
                f"Requested SparseTensor of type {dtype.name} but {where}.values.dtype() == "
                f"{values.dtype.name}"
            )
        if rows.dims[0] != values.dims[0] or rows.dims[1] != shape.dims[0]:
            raise invalid(
                f"{where} has {listed(rows.dims)} indices, {values.dims[0]} values and {shape.dims[0]} sizes"
            )
        if shape.dims[0] != rank:
            raise invalid(
                f"Inconsistent shape across SparseTensors: rank prior to {where} was: {rank} but rank of "
                f"{where} is: {shape.dims[0]}"
            )
    return rank


def _told(part: Content) -> str:
    return f"{part.dtype.name} of shape {listed(part.dims)}"


def _stacked(texts: _Array, dtype: DType) -> tuple[torch.Tensor, Any, torch.Tensor]:
    """One sparse tensor of the tensors [..., 3], with their positions as first dimensions."""
    outer = texts.shape[:-1]
    if not texts.size:
        raise invalid(
            "Serialized sparse should have at least 1 serialized tensor, but has a zero dimension "
            f"{listed(texts.shape)}"
        )
    rows, values, counts, shapes = _read_all(texts.reshape(-1, 3), dtype)
    places = np.stack(np.unravel_index(np.arange(len(counts)), outer), 1) if outer else None
    if places is not None:
        rows = np.concatenate((np.repeat(places, counts, 0), rows), 1)
    sizes = np.concatenate((np.array(outer, np.int64), shapes.max(0)))
    return torch.from_numpy(rows), to_runtime(values, dtype), torch.from_numpy(sizes)


def _check_texts(texts: Any) -> None:
    if texts.shape[-1:] != (3,):
        raise invalid(
            f"Serialized sparse should have 3 as the last dimension, but has shape {listed(texts.shape)}"
        )


deserialize_many_sparse_op = op(
    "DeserializeManySparse", f"serialized_sparse: string -> {_RESULT}", dtype=None, cost=100
).no_gradient()


@deserialize_many_sparse_op.infer
def _(node: Node) -> Shapes:
    dims = node.dims(0)
    check_rank(dims, 2)
    if dims is not None and dims[1] not in (3, None):
        raise ValueError(f"Dimension must be 3 but is {dims[1]}")
    return [(None, None), (None,), (None,)]


deserialize_sparse_op = op(
    "DeserializeSparse",
    f"serialized_sparse: Tserialized -> {_RESULT}",
    f"Tserialized: {_FORM}",
    dtype=None,
    cost=100,
).no_gradient()


@deserialize_sparse_op.infer
def _(node: Node) -> Shapes:
    dims = node.dims(0)
    if dims is not None and not dims:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if dims is not None and dims[-1] not in (3, None):
        raise ValueError(f"Dimension must be 3 but is {dims[-1]}")
    return [(None, None), (None,), (None,)]


@deserialize_many_sparse_op.kernel(CPU)
@deserialize_sparse_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.attributes["dtype"].base_dtype

    def deserialize(texts: Any) -> tuple[torch.Tensor, Any, torch.Tensor]:
        if not isinstance(texts, np.ndarray) or not texts.ndim:
            raise invalid("Serialized sparse should have non-zero rank")
        _check_texts(texts)
        return _stacked(texts, dtype)

    return deserialize
