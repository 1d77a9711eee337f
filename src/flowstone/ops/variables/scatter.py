"""Parts of a variable: rows named by an index, elements named by index tuples, strided slices.

A row scatter takes ``indices`` of any shape S and ``updates`` of shape S + row shape, or a scalar for all.
Indices that repeat are applied one after the other: where order matters, the positions are split into
*rounds*, the k-th holding every index's k-th occurrence, and each round is one vectorised update. Element
scatters (``ScatterNd…``) become row scatters of the variable seen as [product of the indexed dimensions,
inner size]. Each kind exists for reference variables and for resources with the same kernel. Indices
outside the variable are InvalidArgumentError, which names the first. On a GPU, where raising it would wait
for the device, additions outside are dropped and rows read there are zeros, as in TensorFlow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations import work
from flowstone.framework.declarations.containers import Variable
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.errors import InvalidArgumentError
from flowstone.framework.machine.machine_code import tuple_rows
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims, format_dims, merge
from flowstone.ops.arrays.arrays import places_by_code
from flowstone.ops.arrays.row_additions import add_rows, are_changed
from flowstone.ops.variables.repeated_rows import copy_rows, rounds
from flowstone.ops.variables.stateful import ALL_NUMBERS, check_handle_dtype, handle_dims, locked

# ---- rows


def outside(indices: torch.Tensor, limit: int) -> InvalidArgumentError:
    """The error for the first of `indices` that is not in [0, limit)."""
    flat = indices.reshape(-1).tolist()
    place = next((i for i, index in enumerate(flat) if not 0 <= index < limit), 0)
    where = np.unravel_index(place, tuple(indices.shape)) if indices.ndim else ()
    text = ",".join(str(n) for n in where)
    return errors.InvalidArgumentError(
        None, None, f"indices[{text}] = {flat[place] if flat else 0} is not in [0, {limit})"
    )


def check_rows(indices: torch.Tensor, limit: int) -> None:
    """Raises InvalidArgumentError unless all `indices` are in [0, limit)."""
    if indices.numel():
        lowest, highest = torch.aminmax(indices)
        if lowest.item() < 0 or highest.item() >= limit:
            raise outside(indices, limit)


def gather_rows(table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """Rows of `table` at `indices`: shape indices.shape + table.shape[1:]."""
    check_rows(indices, table.shape[0])
    rows = torch.index_select(table, 0, indices.reshape(-1))
    return rows if indices.ndim == 1 else rows.reshape(indices.shape + table.shape[1:])


def string_rows(table: np.ndarray[Any, Any], indices: torch.Tensor) -> np.ndarray[Any, Any]:
    """As `gather_rows`, of an array of strings."""
    check_rows(indices, table.shape[0])
    return np.asarray(table[indices.numpy()], object)


def rows_or_zeros(table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """As `gather_rows`, with zeros for rows outside, and without a check that would wait for a device."""
    flat = indices.reshape(-1)
    if not table.shape[0]:
        return table.new_zeros(indices.shape + table.shape[1:])
    rows = torch.index_select(table, 0, flat.clamp(0, table.shape[0] - 1))
    rows.masked_fill_(_outside(flat, table), 0)
    return rows.reshape(indices.shape + table.shape[1:])


def _outside(flat: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Which of the indices, a vector, are of no row: broadcasts against rows."""
    mask = (flat < 0) | (flat >= table.shape[0])
    return mask.reshape(-1, *[1] * (table.ndim - 1))


def _in_rounds(function: Callable[..., Any], how: str = "") -> Callable[..., Any]:
    def scatter(table: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor) -> None:
        if how and are_changed(table, indices, updates, how):
            return
        for group in rounds(indices, table.shape[0]) or (slice(None),):
            here = indices[group]
            table.index_copy_(0, here, function(table.index_select(0, here), updates[group]))

    return scatter


def _quotient(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.is_floating_point() or x.is_complex():
        return x / y
    return torch.div(x, y, rounding_mode="trunc")


def _subtract(table: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor) -> None:
    add_rows(table, indices, updates, subtracts=True)


def _extreme(function: Callable[..., torch.Tensor], how: str) -> Callable[..., None]:
    """Reduces to extremes in rounds, or on a host in one call: a tenth to a twentieth of the time. That wakes
    ATen's team, for which few rows do not wait."""
    in_rounds = _in_rounds(function)

    def scatter(table: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor) -> None:
        if table.device.type != "cpu":
            in_rounds(table, indices, updates)
        elif indices.numel() <= _FEW_ROWS:
            for place, update in zip(indices.tolist(), updates.unbind()):
                row = table.select(0, place if place >= 0 else table.shape[0])  # ATen counts from the end
                function(row, update, out=row)
        elif updates.numel():
            places = indices.long().view([-1] + [1] * (table.dim() - 1)).expand(updates.shape)
            table.scatter_reduce_(0, places, updates, how)

    return scatter


ROW_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Update": copy_rows,
    "Add": add_rows,
    "Sub": _subtract,
    "Mul": _in_rounds(torch.mul, "multiply"),
    "Div": _in_rounds(_quotient, "divide"),
    "Min": _extreme(torch.minimum, "amin"),
    "Max": _extreme(torch.maximum, "amax"),
}
_FEW_ROWS = 3  # of extremes, which are taken one by one
_PLAIN = (add_rows, _subtract, copy_rows)
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def _row_scatter(function: Callable[..., Any], drops: bool = False) -> Callable[..., Any]:
    """The kernel of a row scatter on a `Variable`; `drops`: additions outside are dropped, not an error."""

    def scatter(variable: Variable, indices: torch.Tensor, updates: torch.Tensor) -> Variable:
        table = variable.tensor
        if not drops:
            check_rows(indices, table.shape[0])
        wanted = indices.shape + table.shape[1:]
        if updates.ndim and updates.shape != wanted:
            raise errors.InvalidArgumentError(
                None,
                None,
                "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
                f"updates.shape {format_dims(tuple(updates.shape))}, indices.shape "
                f"{format_dims(tuple(indices.shape))}, "
                f"params.shape {format_dims(tuple(table.shape))}",
            )
        if table.dtype in _SIGNED:
            table, updates = table.view(_SIGNED[table.dtype]), updates.view(_SIGNED[table.dtype])
        flat = indices.reshape(-1).long()
        rows = updates.expand(wanted) if not updates.ndim else updates
        rows = rows.reshape((flat.shape[0], *table.shape[1:]))
        if drops:
            rows = rows.masked_fill(_outside(flat, table), 0)
            flat = flat.clamp(0, table.shape[0] - 1)
        function(table, flat, rows)
        return variable

    return scatter


def _plain_row_scatter(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same where shapes and types are known to fit. ATen would find an index out of range after others'
    rows were changed."""

    def scatter(variable: Variable, indices: torch.Tensor, updates: torch.Tensor) -> Variable:
        table = variable.tensor
        check_rows(indices, table.shape[0])
        function(table, indices, updates)
        return variable

    return scatter


def _fits(node: Node) -> bool:
    """Whether a row scatter is sure to have a vector of indices, and a row of updates for each."""
    reference = node.inputs[0].dtype.is_ref
    table = node.static_shape(0) if reference else handle_dims(node)
    indices, updates = node.static_shape(1), node.static_shape(2)
    if table is None or None in table or indices is None or len(indices) != 1:
        return False
    return updates == (*indices, *table[1:]) and node.dtype(2).torch not in _SIGNED


def _scatter_strings(variable: Variable, indices: torch.Tensor, updates: np.ndarray[Any, Any]) -> Variable:
    table = variable.tensor
    check_rows(indices, table.shape[0])
    variable.tensor = table.copy()
    variable.tensor[indices.numpy()] = updates
    return variable


def _row_shape(node: Node, dims: Dims) -> Dims:
    """Infers a row scatter's result: the variable's shape. ValueError where the updates cannot fit."""
    indices, updates = node.dims(1), node.dims(2)
    if dims is not None and indices is not None and updates is not None and len(updates):
        if len(updates) != len(indices) + len(dims) - 1:
            raise ValueError(
                f"Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
                f"updates.shape {format_dims(updates)}, indices.shape {format_dims(indices)}, "
                f"params.shape {format_dims(dims)}"
            )
        merge(updates, indices + dims[1:])
    return dims


_WITHOUT_GRADIENT = frozenset({"Update", "Max", "Min"})  # of references: TensorFlow has none registered


def _declare_row_scatter(kind: str, function: Callable[..., Any]) -> tuple[OpDeclaration, OpDeclaration]:
    adds = kind in ("Add", "Sub")
    types: tuple[DType, ...] | None = None if kind == "Update" else ALL_NUMBERS
    if kind in ("Min", "Max"):
        types = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64)
    reference = op(
        f"Scatter{kind}",
        "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
        f"use_locking: bool = {'true' if kind == 'Update' else 'false'}",
        T=types,
        Tindices=dtypes.INDICES,
        mutates=[0],
        aliases=[0],
        capturable=adds,
        rows=work.input_at(2),
    )
    reference.infer(lambda node: _row_shape(node, node.dims(0)))
    resource = op(
        f"ResourceScatter{kind}",
        "resource: resource, indices: Tindices, updates: dtype ->",
        dtype=None if kind == "Update" else ALL_NUMBERS,
        Tindices=dtypes.INDICES,
        stateful=True,
        mutates=[0],
        capturable=adds,
        rows=work.input_at(2),
        role="element_access",
    )

    @resource.infer
    def _(node: Node) -> None:
        check_handle_dtype(node)
        _row_shape(node, handle_dims(node))

    def kernel(node: Node, env: Environment) -> Kernel:
        if node.dtype(2).torch is None:
            run = _scatter_strings
        elif function in _PLAIN and env.device.type == "cpu" and _fits(node):
            run = _plain_row_scatter(function)
        else:
            run = _row_scatter(function, drops=adds and env.device.type != "cpu")
        return locked(run) if node.attributes.get("use_locking") else run

    for declaration in (reference, resource):
        declaration.kernel(CPU, GPU)(kernel)
    if kind in _WITHOUT_GRADIENT:
        reference.no_gradient()
    else:
        reference.not_differentiable()
    return reference, resource.not_differentiable()


scatter_update_op, resource_scatter_update = _declare_row_scatter("Update", copy_rows)
scatter_add_op, resource_scatter_add = _declare_row_scatter("Add", add_rows)
scatter_sub_op, resource_scatter_sub = _declare_row_scatter("Sub", _subtract)
scatter_mul_op, resource_scatter_mul = _declare_row_scatter("Mul", ROW_FUNCTIONS["Mul"])
scatter_div_op, resource_scatter_div = _declare_row_scatter("Div", ROW_FUNCTIONS["Div"])
scatter_min_op, resource_scatter_min = _declare_row_scatter("Min", ROW_FUNCTIONS["Min"])
scatter_max_op, resource_scatter_max = _declare_row_scatter("Max", ROW_FUNCTIONS["Max"])


# ---- elements


def flat_elements(shape: tuple[int, ...], indices: torch.Tensor) -> torch.Tensor:
    """Row numbers of index tuples in a tensor of `shape` seen as [product of the indexed dimensions, inner
    size].

    `indices`: [..., depth]; returns a vector. InvalidArgumentError for a tuple outside.
    """
    depth = indices.shape[-1]
    if depth > len(shape):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"index innermost dimension length must be <= params rank; saw: {depth} vs. {len(shape)}",
        )
    found = places_by_code(indices, shape[:depth])
    if found is not None:
        return found
    tuples = indices.reshape(-1, depth)
    columns = tuples.unbind(1)
    if tuples.numel():
        for size, column in zip(shape, columns):
            lowest, highest = torch.aminmax(column)
            if lowest.item() < 0 or highest.item() >= size:
                raise _outside_of(shape, indices, tuples.long())
    if not depth:
        return torch.zeros(tuples.shape[0], dtype=torch.int64, device=indices.device)
    flat = columns[0].long()
    for size, column in zip(shape[1:], columns[1:]):
        flat = torch.add(column, flat, alpha=size)
    return flat.contiguous()


def _outside_of(shape: tuple[int, ...], indices: torch.Tensor, tuples: torch.Tensor) -> InvalidArgumentError:
    """The error for the first tuple that is outside."""
    sizes = torch.tensor(shape[: indices.shape[-1]], dtype=torch.int64, device=indices.device)
    place = int(((tuples < 0) | (tuples >= sizes)).any(1).nonzero()[0])
    where = np.unravel_index(place, tuple(indices.shape[:-1])) if indices.ndim > 1 else ()
    return errors.InvalidArgumentError(
        None,
        None,
        f"indices[{','.join(str(n) for n in where)}] = {tuples[place].tolist()} does not "
        f"index into param shape {list(shape)}",
    )


def as_rows(table: torch.Tensor, depth: int) -> torch.Tensor:
    """`table` seen as [product of its first `depth` dimensions, size of the others]."""
    return table.view(math.prod(table.shape[:depth]), math.prod(table.shape[depth:]))


def gather_elements(table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """Elements or slices of `table` at index tuples: shape indices.shape[:-1] + table.shape[depth:]."""
    found = elements_by_code(table, indices)
    if found is not None:
        return found
    flat, depth = flat_elements(table.shape, indices), indices.shape[-1]
    rows = as_rows(table.contiguous(), depth)
    rows = torch.index_select(rows.view(-1) if rows.shape[1] == 1 else rows, 0, flat)
    return rows.reshape(indices.shape[:-1] + table.shape[depth:])


def elements_by_code(table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor | None:
    """The same by machine code; None where there is none, or a tuple is outside."""
    depth = indices.shape[-1]
    if not 0 < depth <= table.ndim or table.device.type != "cpu":
        return None
    pick = tuple_rows(indices.dtype)
    return None if pick is None else pick(table, indices, (*indices.shape[:-1], *table.shape[depth:]))


def _element_scatter(function: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of an element scatter on a `Variable`."""

    def scatter(variable: Variable, indices: torch.Tensor, updates: torch.Tensor) -> Variable:
        table = variable.tensor
        flat, depth = flat_elements(table.shape, indices), indices.shape[-1]
        wanted = indices.shape[:-1] + table.shape[depth:]
        if updates.shape != wanted:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"The inner {len(table.shape) - depth} dimensions of "
                f"output.shape={list(table.shape)} must match the inner "
                f"dimensions of updates.shape={list(updates.shape)}, and the others those of "
                f"indices.shape={list(indices.shape)}",
            )
        rows = as_rows(table, depth)
        function(rows, flat, updates.reshape((flat.shape[0], rows.shape[1])))
        return variable

    return scatter


def _element_shape(node: Node, dims: Dims) -> Dims:
    """Infers an element scatter's result: the variable's shape. ValueError where the updates cannot fit."""
    indices, updates = node.dims(1), node.dims(2)
    if not indices or updates is None or dims is None or indices[-1] is None:
        return dims
    outer = len(indices) - 1
    try:
        merge(updates[:outer], indices[:-1])
    except ValueError:
        raise ValueError(
            f"Dimensions [0,{outer}) of indices{format_dims(indices)} must match dimensions [0,{outer}) of "
            f"updates{format_dims(updates)}"
        ) from None
    try:
        merge(updates[outer:], dims[indices[-1] :])
    except ValueError:
        raise ValueError(
            f"Dimensions [{indices[-1]},{len(dims)}) of input{format_dims(dims)} must match dimensions "
            f"[{outer},{len(updates)}) of updates{format_dims(updates)}"
        ) from None
    return dims


def _declare_element_scatter(kind: str, function: Callable[..., Any]) -> tuple[OpDeclaration, OpDeclaration]:
    later = " ; bad_indices_policy: string = ''"
    reference = op(
        f"ScatterNd{kind}",
        "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)",
        f"use_locking: bool = {'true' if kind == 'Update' else 'false'}"
        + (later if kind in ("Min", "Max") else ""),
        T=None if kind == "Update" else ALL_NUMBERS,
        Tindices=dtypes.INDICES,
        mutates=[0],
        aliases=[0],
        rows=work.input_at(2),
    )
    reference.infer(lambda node: _element_shape(node, node.dims(0)))
    resource = op(
        f"ResourceScatterNd{kind}",
        "ref: resource, indices: Tindices, updates: T ->",
        "use_locking: bool = true" + later,
        T=None,
        Tindices=dtypes.INDICES,
        stateful=True,
        mutates=[0],
        rows=work.input_at(2),
        role="element_access",
    )

    @resource.infer
    def _(node: Node) -> None:
        check_handle_dtype(node, attribute="T")
        _element_shape(node, handle_dims(node))

    def kernel(node: Node, env: Environment) -> Kernel:
        run = _element_scatter(function)
        return locked(run) if node.attributes["use_locking"] else run

    for declaration in (reference, resource):
        declaration.kernel(CPU, GPU)(kernel)
        declaration.not_differentiable()
    return reference, resource


scatter_nd_update_op, resource_scatter_nd_update = _declare_element_scatter("Update", copy_rows)
scatter_nd_add_op, resource_scatter_nd_add = _declare_element_scatter("Add", add_rows)
scatter_nd_sub_op, resource_scatter_nd_sub = _declare_element_scatter("Sub", _subtract)
scatter_nd_min_op, resource_scatter_nd_min = _declare_element_scatter("Min", ROW_FUNCTIONS["Min"])
scatter_nd_max_op, resource_scatter_nd_max = _declare_element_scatter("Max", ROW_FUNCTIONS["Max"])
