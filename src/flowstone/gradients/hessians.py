"""Hessians: second derivatives of a sum, as full matrices."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.types import dtypes
from flowstone.gradients.gradient_computation import gradients
from flowstone.ops.arrays.constants import constant
from flowstone.ops.control.loops import while_loop
from flowstone.ops.lists.tensor_array import TensorArray


def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
) -> list[Any]:
    """The second derivatives of the sum of `ys` with respect to each of `xs`, of shape [*x.shape, *x.shape].

    One row is the gradient of one element of the gradient; a loop makes them for an x without a static shape.
    Raises what `gradients` raises, and ValueError where there is no gradient."""
    xs = list(xs) if isinstance(xs, (list, tuple)) else [xs]
    options: dict[str, Any] = {
        "colocate_gradients_with_ops": colocate_gradients_with_ops,
        "gate_gradients": gate_gradients,
        "aggregation_method": aggregation_method,
    }
    first = gradients(ys, xs, **options)
    return [_hessian(gradient, x, options) for gradient, x in zip(first, xs)]


def _hessian(gradient: Any, x: Any, options: dict[str, Any]) -> Any:
    if not x.shape.is_fully_defined():
        return _hessian_in_loop(gradient, x, options)
    shape = x.shape.as_list()
    count = x.shape.num_elements()
    flat = F.Reshape(gradient, constant([count], dtypes.int32))
    rows = []
    for i in range(count):
        element = F.Reshape(F.Slice(flat, [i], [1]), constant([], dtypes.int32))
        (row,) = gradients(element, x, **options)
        if row is None:
            raise ValueError(f"None values not supported: no gradient in row {i} of the Hessian by {x.name}")
        rows.append(row)
    if not rows:
        return constant(0, x.dtype.base_dtype, shape=shape + shape)
    return F.Reshape(F.Pack(rows), constant(shape + shape, dtypes.int32))


def _hessian_in_loop(gradient: Any, x: Any, options: dict[str, Any]) -> Any:
    """Computes the rows in a loop, one for each element that x has in the step."""
    flat = F.Reshape(gradient, constant([-1], dtypes.int32))
    count = F.Size(x)

    def add_row(i: Any, rows: Any) -> Any:
        (row,) = gradients(F.GatherV2(flat, i, 0), x, **options)
        if row is None:
            raise ValueError(f"None values not supported: no gradient in the Hessian by {x.name}")
        return F.AddV2(i, 1), rows.write(i, row)

    rows = TensorArray(x.dtype.base_dtype, count, infer_shape=False)
    rows = while_loop(lambda i, rows: F.Less(i, count), add_row, [constant(0), rows])[1]
    shape = F.Shape(x)
    result = F.Reshape(rows.stack(), F.ConcatV2([shape, shape], 0))
    if x.dims is not None:
        result.set_shape((*x.dims, *x.dims))
    return result
