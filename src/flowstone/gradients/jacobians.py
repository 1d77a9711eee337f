"""Jacobians: the derivatives of every element of a tensor, as a loop over the elements.

What one element's gradients are is a function of the caller's, ``gradients_of(y)``, so that `tf.gradients`
and tapes share this: it returns a Tensor, IndexedSlices or None for each source. It is called once, in the
loop's body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.constants import constant
from flowstone.ops.control.loops import while_loop
from flowstone.ops.lists.tensor_array import TensorArray

__all__ = ["batch_jacobian", "jacobian", "no_batch_jacobian"]

GradientsOf = Callable[[Tensor], Sequence[Any]]


def jacobian(
    target: Tensor,
    sources: Sequence[Any],
    gradients_of: GradientsOf,
    parallel_iterations: int | None = None,
) -> list[Tensor | None]:
    """For each source the derivatives of all elements of `target`: of the target's and then its own shape.

    None for a source that the target does not depend on.
    """
    elements = F.Reshape(target, [-1])
    rows = _rows(
        lambda i: gradients_of(F.GatherV2(elements, i, 0)), F.Size(elements), sources, parallel_iterations
    )
    found = []
    for each, x in zip(rows, sources):
        if each is not None:
            each = F.Reshape(each, _shape_of_both(target, each))
            each.set_shape(target.shape.concatenate(x.shape))
        found.append(each)
    return found


def batch_jacobian(
    target: Tensor, source: Any, gradients_of: GradientsOf, parallel_iterations: int | None = None
) -> Tensor | None:
    """The derivatives of all elements of ``target[i]`` by ``source[i]``, on which alone they depend.

    None if `target` does not depend on `source`.
    """
    batch = F.GatherV2(F.Shape(target), 0, 0)
    by_example = F.Reshape(target, F.Pack([batch, constant(-1)]))
    count = F.GatherV2(F.Shape(by_example), 1, 0)
    (columns,) = _rows(
        lambda i: gradients_of(F.GatherV2(by_example, i, 1)), count, [source], parallel_iterations
    )
    if columns is None:
        return None
    flat = F.Reshape(columns, F.Pack([count, batch, constant(-1)]))
    rows: Tensor = F.Reshape(F.Transpose(flat, [1, 0, 2]), _shape_of_both(target, source))
    rows.set_shape(target.shape.concatenate(source.shape[1:]))
    return rows


def no_batch_jacobian(target: Tensor, source: Any) -> Tensor:
    """The batch Jacobian of what does not depend on `source`: zeros."""
    zero = constant(0, target.dtype.base_dtype)
    zeros: Tensor = F.Fill(_shape_of_both(target, source), zero)
    zeros.set_shape(target.shape.concatenate(source.shape[1:]))
    return zeros


def _shape_of_both(target: Tensor, source: Any) -> Tensor:
    """The shape of `target` and then that of `source` but for its first axis."""
    after = F.StridedSlice(F.Shape(convert_to_tensor(source)), [1], [0], [1], end_mask=1)
    return F.ConcatV2([F.Shape(target), after], 0)


def _rows(
    gradients_at: Callable[[Tensor], Sequence[Any]],
    count: Tensor,
    sources: Sequence[Any],
    parallel_iterations: int | None,
) -> list[Tensor | None]:
    """What `gradients_at` returns for the numbers below `count`, stacked for each source."""
    connected: list[bool] = []

    def add_rows(i: Tensor, *arrays: Any) -> list[Any]:
        found = gradients_at(i)
        connected[:] = [row is not None for row in found]
        written = [
            array if row is None else array.write(i, convert_to_tensor(row))
            for array, row in zip(arrays, found)
        ]
        return [F.AddV2(i, 1), *written]

    arrays = [TensorArray(x.dtype.base_dtype, count, infer_shape=False) for x in sources]
    results = while_loop(
        lambda i, *_: F.Less(i, count),
        add_rows,
        [constant(0), *arrays],
        parallel_iterations=parallel_iterations or 10,
    )[1:]
    return [array.stack() if found else None for array, found in zip(results, connected)]
