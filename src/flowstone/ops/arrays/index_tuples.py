"""`gather_nd`: what index tuples name, also within each element of a batch."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.shape import merge
from flowstone.ops.arrays.gathering import gather_nd_op, is_resource
from flowstone.ops.arrays.grids import meshgrid
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.packing import stack, unstack
from flowstone.ops.arrays.shapes import reshape, shape

__all__ = ["gather_nd"]


@dispatched("gather_nd")
def gather_nd(
    params: Any, indices: Any, name: str | None = None, batch_dims: int = 0, bad_indices_policy: str = ""
) -> Tensor:
    """The slices of `params` at index tuples ``indices[..., :]``, which index its first dimensions after
    `batch_dims` common ones."""
    batch_dims = _number(batch_dims)
    if batch_dims:
        params, indices = _of_the_batch(params, indices, batch_dims, name)
    if is_resource(params):
        return params.gather_nd(indices, name=name)  # type: ignore[no-any-return]
    return gather_nd_op(params, indices, name=name)


def _number(batch_dims: Any) -> int:
    """The number that an argument says. TypeError for what is none, ValueError for what only a step knows."""
    if isinstance(batch_dims, Tensor):
        batch_dims = static_value(batch_dims)
        if batch_dims is None:
            raise ValueError("gather_nd: batch_dims must be known when the graph is built")
    try:
        return int(batch_dims)
    except (TypeError, ValueError):
        raise TypeError(f"batch_dims must be an int; got {batch_dims!r}") from None


def _of_the_batch(
    params: Any, indices: Any, batch_dims: int, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """(params, indices) for one `gather_nd`, the first `batch_dims` dimensions being those of a batch.

    ValueError unless both have more dimensions, of which these are the same.
    """
    with get_default_graph().name_scope(name or "BatchGatherND"):
        params = convert_to_tensor(params, name="params")
        indices = convert_to_tensor(indices, name="indices")
        if batch_dims < 0:
            raise ValueError("tf.gather_nd does not allow negative batch_dims.")
        for what, tensor in (("indices", indices), ("params", params)):
            ndims = tensor.shape.ndims
            if ndims is not None and batch_dims >= ndims:
                raise ValueError(f"batch_dims = {batch_dims} must be less than rank({what}) = {ndims}")
        if params.dims is not None and indices.dims is not None:
            merge(params.dims[:batch_dims], indices.dims[:batch_dims])
        sizes = shape(indices, out_type=indices.dtype)
        lengths = unstack(shape(params, out_type=indices.dtype)[:batch_dims], batch_dims)
        zero, one = (F.Cast(each, DstT=indices.dtype) for each in (0, 1))
        places = meshgrid(*[F.Range(zero, each, one) for each in lengths], indexing="ij")
        inner = F.Fill(F.ExpandDims(F.Rank(indices) - (batch_dims + 1), 0), F.Cast(1, DstT=indices.dtype))
        grid = reshape(stack(places, -1), concat([stack(lengths), inner, [batch_dims]], 0))
        whole = F.BroadcastTo(grid, concat([sizes[:-1], [batch_dims]], 0))
        known = indices.dims
        found = concat([whole, indices], -1)
        if known is not None:
            found.set_shape((*known[:-1], None if known[-1] is None else known[-1] + batch_dims))
        return params, found
