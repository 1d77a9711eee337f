"""Functions over the first axis of tensors: `map_fn`, `foldl`, `foldr` and `scan`, as loops in the graph.

Each reads its elements from TensorArrays, in one iteration of a `while_loop` for each element. `elems` is a
tensor or a nested structure of tensors whose first dimensions agree; the function then gets a structure of
rows.

>>> import flowstone as tf
>>> with tf.Graph().as_default(), tf.Session() as session:
...     session.run(tf.scan(lambda total, x: total + x, tf.constant([1, 2, 3])))
array([1, 3, 6], dtype=int32)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.building import graph_of
from flowstone.framework.names.argument_orders import or_in_order
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.dimension import as_dimension
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.control.loops import while_loop
from flowstone.ops.lists.tensor_array import TensorArray

__all__ = ["foldl", "foldr", "map_fn", "scan"]


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """The results of `fn` for each row of `elems`, stacked: a structure of tensors [n, ...].

    `elems`: structure of tensors [n, ...]. `dtype`: the structure of the types that `fn` returns, if it is
    not that of `elems`. `infer_shape`: whether all results of one output have the same static shape. The
    others are those of `while_loop`.

    Raises TypeError if `fn` is not callable or `elems` sparse, ValueError for scalars, no elements, or
    results whose structure differs from that of `dtype`."""
    _check_function(fn)
    with (graph := graph_of(nest.flatten(elems))).as_default(), graph.name_scope(name or "map"):
        rows = _Rows(elems)
        rows.check()
        count = rows.unstack()
        like = elems if dtype is None else dtype
        types = [x.dtype.base_dtype for x in rows.tensors] if dtype is None else nest.flatten(dtype)
        first = constant(0)
        results = [TensorArray(t, size=count, infer_shape=infer_shape) for t in types]

        def body(i: Any, results: list[TensorArray]) -> Any:
            values = fn(rows.read(i))
            nest.assert_same_structure(like, values)
            written = [array.write(i, x) for array, x in zip(results, nest.flatten(values))]
            return i + 1, written

        _, results = while_loop(
            lambda i, _: i < count,
            body,
            (first, results),
            parallel_iterations=parallel_iterations or 10,
            back_prop=back_prop,
            swap_memory=swap_memory,
            maximum_iterations=count,
        )
        return nest.pack_sequence_as(like, [array.stack() for array in results])


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """``fn(... fn(fn(initializer, row 0), row 1) ..., row n-1)``: a structure like `initializer`.

    `elems`: structure of tensors [n, ...]; `initializer`: structure of tensors, the first row if None (a step
    then fails for n = 0). The others are those of `while_loop`, which checks that shapes and types do not
    change.

    Raises TypeError if `fn` is not callable, ValueError for scalars or no elements."""
    _check_function(fn)
    with (graph := graph_of(nest.flatten(elems))).as_default(), graph.name_scope(name or "foldl"):
        rows = _Rows(elems)
        count = rows.unstack(in_turn=True)
        first = 0
        if initializer is None:
            initializer, first = rows.read(0), 1

        def body(i: Any, a: Any) -> Any:
            a = fn(a, rows.read(i))
            return [i + 1, a]

        _, result = while_loop(
            lambda i, a: i < count,
            body,
            [constant(first), initializer],
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            swap_memory=swap_memory,
            maximum_iterations=count,
        )
        return result


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """``fn(... fn(fn(initializer, row n-1), row n-2) ..., row 0)``: as `foldl`, beginning with the last
    row."""
    _check_function(fn)
    with (graph := graph_of(nest.flatten(elems))).as_default(), graph.name_scope(name or "foldr"):
        rows = _Rows(elems)
        count = after = rows.unstack(in_turn=True)
        if initializer is None:
            after = count - 1
            initializer = rows.read(after)

        def body(i: Any, a: Any) -> Any:
            i = i - 1
            return [i, fn(a, rows.read(i))]

        _, result = while_loop(
            lambda i, a: i > 0,
            body,
            [after, initializer],
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            swap_memory=swap_memory,
            maximum_iterations=count,
        )
        return result


@or_in_order(7, "reverse name", lambda tail: isinstance(tail[0], bool))
def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    reverse: bool = False,
) -> Any:
    """The intermediate values of `foldl`, stacked: a structure like `initializer` of tensors [n, ...].

    `elems`: structure of tensors [n, ...]; `initializer`: structure of tensors; if None, the first value is
    the first row. `reverse`: from the last row to the first, with each value at the index of its row.
    `infer_shape`: whether all values of one output have the initial one's static shape.

    Raises TypeError if `fn` is not callable, ValueError for scalars, no elements, or a structure that `fn`
    changes."""
    _check_function(fn)
    like = elems if initializer is None else initializer
    with (graph := graph_of(nest.flatten(elems))).as_default(), graph.name_scope(name or "scan"):
        rows = _Rows(elems)
        rows.check()
        count = rows.unstack(dims_known=True)
        if initializer is None:
            start = nest.flatten(rows.read(count - 1 if reverse else 0))
        else:
            start = [convert_to_tensor(x) for x in nest.flatten(initializer)]
        results = [_results_like(x, count, infer_shape) for x in start]
        done = 0
        if initializer is None:
            place, done = count - 1 if reverse else 0, 1
            results = [array.write(place, x) for array, x in zip(results, start)]
        first = count - 1 - done if reverse else done

        def body(i: Any, a: list[Any], results: list[TensorArray]) -> Any:
            values = fn(nest.pack_sequence_as(like, a), rows.read(i))
            nest.assert_same_structure(like, values)
            leaves = nest.flatten(values)
            written = [array.write(i, x) for array, x in zip(results, leaves)]
            return i - 1 if reverse else i + 1, leaves, written

        _, _, results = while_loop(
            (lambda i, a, results: i >= 0) if reverse else (lambda i, a, results: i < count),
            body,
            (first, start, results),
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            swap_memory=swap_memory,
            maximum_iterations=count,
        )
        return nest.pack_sequence_as(like, [array.stack() for array in results])


def _results_like(initial: Tensor, count: Any, infer_shape: bool) -> TensorArray:
    return TensorArray(
        initial.dtype,
        size=count,
        element_shape=initial.shape if infer_shape else None,
        infer_shape=infer_shape,
    )


def _check_function(fn: Any) -> None:
    if not callable(fn):
        raise TypeError("fn must be callable.")


class _Rows:
    """The rows of `elems`, a structure of tensors, one by one. ValueError for scalars or no tensors."""

    def __init__(self, elems: Any) -> None:
        leaves = nest.flatten(elems)
        if not leaves:
            raise ValueError(
                "elems must be a Tensor or (possibly nested) sequence of Tensors. "
                f"Got {elems}, which does not contain any Tensors."
            )
        if any(isinstance(x, SparseTensor) for x in leaves):
            raise TypeError(
                "elems must not be sparse: apply the function to its `values`, and rebuild the SparseTensor."
            )
        self.elems = elems
        self.tensors = [convert_to_tensor(x, name="elem") for x in leaves]
        self.arrays: list[TensorArray] = []
        if any(x.dims == () for x in self.tensors):
            raise ValueError("Elements in elems must be 1+ dimensional Tensors, not scalars")

    def check(self) -> None:
        """Raises ValueError if the known numbers of rows differ."""
        number = as_dimension(None)
        for x in self.tensors:
            number = number.merge_with(None if x.dims is None else x.dims[0])

    def unstack(self, in_turn: bool = False, dims_known: bool = False) -> Any:
        """Puts the rows into arrays and returns their number, a Python integer if it is known.

        `in_turn`: each array is filled before the next one is made; `dims_known`: the arrays' element shape
        is set. Both affect only the graph's nodes."""
        dims = self.tensors[0].dims
        count = shape(self.tensors[0])[0] if dims is None or dims[0] is None else dims[0]
        for x in self.tensors:
            rest = x.shape[1:] if dims_known else None
            array = TensorArray(x.dtype.base_dtype, size=count, element_shape=rest)
            self.arrays.append(array.unstack(x) if in_turn else array)
        if not in_turn:
            self.arrays = [array.unstack(x) for array, x in zip(self.arrays, self.tensors)]
        return count

    def read(self, i: Any) -> Any:
        """Row `i`: a structure like `elems`."""
        return nest.pack_sequence_as(self.elems, [array.read(i) for array in self.arrays])
