"""Scattered updates of plain tensors: the result is a changed copy, indices are tuples as of `scatter_nd`.

Indices that repeat are applied one after the other, with the functions of `scatter.py`. An index outside the
tensor is an InvalidArgumentError that names it.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import format_dims, is_compatible
from flowstone.ops.arrays.arrays import in_signed, invalid, product, whole_copy
from flowstone.ops.arrays.gathering import flat_places
from flowstone.ops.variables.scatter import ROW_FUNCTIONS

__all__ = [
    "tensor_scatter_add",
    "tensor_scatter_max",
    "tensor_scatter_min",
    "tensor_scatter_sub",
    "tensor_scatter_update",
]

_INDICES = (dtypes.int32, dtypes.int64)


def _infer(node: Node) -> Shapes:
    dims, indices, updates = (node.dims(i) for i in range(3))
    if () in (dims, indices, updates):
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if dims is None or indices is None or updates is None or indices[-1] is None:
        return dims
    depth, outer = indices[-1], len(indices) - 1
    if depth > len(dims):
        raise ValueError(f"The indices' last dimension {depth} is larger than the rank of {dims}")
    if not is_compatible(indices[:-1], updates[:outer]):
        raise ValueError(
            f"Dimensions [0,{outer}) of indices{indices} must match dimensions of updates{updates}"
        )
    if not is_compatible(dims[depth:], updates[outer:]):
        raise ValueError(
            f"Dimensions [{depth},{len(dims)}) of input{dims} must match dimensions of updates{updates}"
        )
    return dims


def _scattered(kind: str) -> Any:
    function = ROW_FUNCTIONS[kind]

    def scatter(x: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
        depth = indices.shape[-1]
        if depth > x.ndim or [*indices.shape[:-1], *x.shape[depth:]] != list(updates.shape):
            raise invalid(
                f"Must have updates.shape = indices.shape[:-1] + params_shape[{depth}:], got updates.shape: "
                f"{format_dims(tuple(updates.shape))}, indices.shape: {format_dims(tuple(indices.shape))}, "
                f"params_shape: {format_dims(tuple(x.shape))}"
            )
        result = whole_copy(x) if isinstance(x, torch.Tensor) else x.copy()
        rows = result.reshape(product(x.shape[:depth]), *x.shape[depth:])
        places = flat_places(indices, x.shape[:depth])
        each = updates.reshape(len(places), *x.shape[depth:])
        if isinstance(x, torch.Tensor):
            function(rows, places, each)
        else:  # texts, which are updated alone
            if len(places) and not 0 <= int(places.min()) <= int(places.max()) < len(rows):
                raise invalid(f"indices {places.tolist()} do not index into shape {list(x.shape)}")
            rows[places.numpy()] = each
        return result

    return scatter


def _declare(name: str, kind: str, first: str = "tensor", attributes: str = "") -> OpDeclaration:
    indices = (dtypes.int16, *_INDICES, dtypes.uint16) if kind == "Update" else _INDICES
    declaration = op(
        name,
        f"{first}: T, indices: Tindices, updates: T -> output: T",
        attributes,
        T=None,
        Tindices=indices,
        capturable=kind in ("Add", "Sub"),  # the others look for indices that repeat
    )
    declaration.infer(_infer)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        return in_signed(node.dtype(0), _scattered(kind), 0, 2)

    return declaration


_POLICY = "bad_indices_policy: string = ''"
update_op = _declare("TensorScatterUpdate", "Update", attributes=_POLICY)
add_op = _declare("TensorScatterAdd", "Add", attributes=_POLICY)
sub_op = _declare("TensorScatterSub", "Sub", attributes=_POLICY)
min_op = _declare("TensorScatterMin", "Min", attributes=_POLICY)
max_op = _declare("TensorScatterMax", "Max", attributes=_POLICY)
non_aliasing_add_op = _declare("ScatterNdNonAliasingAdd", "Add", "input")


@update_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    indices = op.inputs[1]
    updates = F.GatherNd(dy, indices)
    return F.TensorScatterUpdate(dy, indices, F.ZerosLike(updates)), None, updates


@add_op.gradient
@non_aliasing_add_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return dy, None, F.GatherNd(dy, op.inputs[1])


@sub_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return dy, None, F.Neg(F.GatherNd(dy, op.inputs[1]))


def _extreme_gradient(op: Operation, dy: Tensor) -> Gradients:
    """Shared by all that have the extreme value."""
    x, indices, updates = op.inputs
    y = op.outputs[0]
    kept = F.Cast(F.Equal(x, y), DstT=x.dtype.base_dtype)
    taken = F.Cast(F.Equal(updates, F.GatherNd(y, indices)), DstT=x.dtype.base_dtype)
    share = F.RealDiv(dy, F.TensorScatterAdd(kept, indices, taken))
    return F.Mul(kept, share), None, F.Mul(taken, F.GatherNd(share, indices))


min_op.gradient(_extreme_gradient)
max_op.gradient(_extreme_gradient)


def tensor_scatter_update(
    tensor: Any, indices: Any, updates: Any, name: str | None = None, bad_indices_policy: str = ""
) -> Tensor:
    """A copy of `tensor` whose slices at `indices` are `updates`.

    `indices` [..., depth] index the first dimensions; `updates` has the shape indices.shape[:-1] +
    tensor.shape[depth:]. InvalidArgumentError for an index outside the tensor.
    """
    return update_op(tensor, indices, updates, name=name, bad_indices_policy=bad_indices_policy)


def tensor_scatter_add(
    tensor: Any, indices: Any, updates: Any, name: str | None = None, bad_indices_policy: str = ""
) -> Tensor:
    """A copy of `tensor` to which `updates` are added; arguments as for `tensor_scatter_update`."""
    return add_op(tensor, indices, updates, name=name, bad_indices_policy=bad_indices_policy)


def tensor_scatter_sub(
    tensor: Any, indices: Any, updates: Any, name: str | None = None, bad_indices_policy: str = ""
) -> Tensor:
    """A copy of `tensor` from which `updates` are subtracted; arguments as for `tensor_scatter_update`."""
    return sub_op(tensor, indices, updates, name=name, bad_indices_policy=bad_indices_policy)


def tensor_scatter_min(
    tensor: Any, indices: Any, updates: Any, name: str | None = None, bad_indices_policy: str = ""
) -> Tensor:
    """A copy of `tensor` with the lesser of it and `updates`; arguments as for `tensor_scatter_update`."""
    return min_op(tensor, indices, updates, name=name, bad_indices_policy=bad_indices_policy)


def tensor_scatter_max(
    tensor: Any, indices: Any, updates: Any, name: str | None = None, bad_indices_policy: str = ""
) -> Tensor:
    """A copy of `tensor` with the greater of it and `updates`; arguments as for `tensor_scatter_update`."""
    return max_op(tensor, indices, updates, name=name, bad_indices_policy=bad_indices_policy)
