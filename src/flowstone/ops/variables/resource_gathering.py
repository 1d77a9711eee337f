"""Reads of rows and elements of a resource variable, without reading the whole."""

from __future__ import annotations

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.gathering import slices_of
from flowstone.ops.arrays.shapes import squeeze
from flowstone.ops.variables.scatter import gather_elements, gather_rows, rows_or_zeros, string_rows
from flowstone.ops.variables.stateful import check_handle_dtype, handle_dims

resource_gather = op(
    "ResourceGather",
    "resource: resource, indices: Tindices -> output: dtype",
    "validate_indices: bool = true",
    dtype=None,
    Tindices=dtypes.INDICES,
    stateful=True,
    reads=[0],
    capturable=True,
    rows=work.first_output,
    role="element_access",
)


@resource_gather.infer
def _(node: Node) -> Shapes:
    check_handle_dtype(node)
    dims, indices = handle_dims(node), node.dims(1)
    return None if dims is None or indices is None else indices + dims[1:]


@resource_gather.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    if node.attributes["dtype"] is dtypes.string:
        return lambda variable, indices: string_rows(variable.tensor, indices)
    read = gather_rows if env.device.type == "cpu" else rows_or_zeros
    return lambda variable, indices: read(variable.tensor, indices)


@resource_gather.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    dims = handle_dims(op)
    known = dims is not None and None not in dims
    whole = constant(dims, dtypes.int32) if known else F.VariableShape(op.inputs[0], out_type=dtypes.int32)
    return slices_of(dy, op.inputs[1], whole), None


resource_gather_nd = op(
    "ResourceGatherNd",
    "resource: resource, indices: Tindices -> output: dtype",
    dtype=None,
    Tindices=dtypes.INDICES,
    stateful=True,
    reads=[0],
    rows=work.first_output,
    role="element_access",
)


@resource_gather_nd.infer
def _(node: Node) -> Shapes:
    check_handle_dtype(node)
    dims, indices = handle_dims(node), node.dims(1)
    if dims is None or not indices or indices[-1] is None:
        return None
    if indices[-1] > len(dims):
        raise ValueError(f"indices.shape[-1] must be <= params.rank, but saw {indices[-1]} and {len(dims)}")
    return indices[:-1] + dims[indices[-1] :]


@resource_gather_nd.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return lambda variable, indices: gather_elements(variable.tensor, indices)


@resource_gather_nd.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    handle, indices = op.inputs
    whole = F.VariableShape(handle, out_type=indices.dtype)
    dims = indices.dims
    if dims is not None and len(dims) == 2 and dims[-1] == 1:
        return IndexedSlices(dy, squeeze(indices, -1), whole), None
    return F.ScatterNd(indices, dy, whole), None
