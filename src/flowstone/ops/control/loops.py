"""`tf.while_loop`: a body that runs as long as a predicate holds (white paper 4.4).

Every loop variable is a ring of nodes: Enter brings its first value into the loop's frame; Merge takes that,
or the value of NextIteration; Switch passes it, by the predicate's LoopCond, to the body or to the Exit. The
body gets it from an Identity; the body's result goes to NextIteration.

    value -> Enter -> Merge -> Switch -> Exit -> result
                        ^         |
                        |         +----> Identity -> body -> NextIteration
                        +------------------------------------------+

A composite value is several loop variables; a TensorArray is one, its flow.

>>> from flowstone.framework.graphs.graph import Graph
>>> with Graph().as_default():
...     print(while_loop(lambda i: F.Less(i, 10), lambda i: F.AddV2(i, 1), [0]).name)
while/Exit:0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import GraphKeys
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.composite import IndexedSlices, SparseTensor
from flowstone.framework.tensors.dispatch import Ragged
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays.constants import constant
from flowstone.ops.control.control_flow import colocated_switch
from flowstone.ops.control.control_flow import merge as merge_values
from flowstone.ops.control.loop_context import WhileContext, is_constant_enter

__all__ = ["while_loop"]

Dims = tuple[int | None, ...] | None


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """The loop variables after ``while cond(*loop_vars): loop_vars = body(*loop_vars)``.

    `loop_vars`: a list or tuple of nested structures of tensors, `IndexedSlices`, `SparseTensor` and
    TensorArrays; `body` returns the same structure with the same dtypes. A variable's static shape may not
    change, unless `shape_invariants` (the same structure of TensorShapes) gives the part that stays known:
    for slices the shape of their values, for a sparse tensor that of its `dense_shape`.
    `parallel_iterations`: how many may run at once; `back_prop`: whether gradients are needed; `swap_memory`:
    whether values that gradients need may be moved out of the device's memory; `maximum_iterations`: a scalar
    integer. Returns the variables, or the only one itself unless `return_same_structure`.

    Raises TypeError if a function is not callable or a dtype changes, ValueError for no variables, structures
    or shapes that differ."""
    if not callable(cond):
        raise TypeError("'cond' must be callable.")
    if not callable(body):
        raise TypeError("'body' must be callable.")
    graph = get_default_graph()
    with graph.name_scope(name or "while"):
        if not loop_vars:
            raise ValueError("'loop_vars' must be provided.")
        _check_parallel_iterations(parallel_iterations)
        limited = maximum_iterations is not None
        if limited:
            maximum_iterations = _limit(maximum_iterations)
            cond, body, loop_vars, shape_invariants = _counted(
                cond, body, loop_vars, shape_invariants, maximum_iterations
            )
        if graph.computes_at_once:
            result = _computed(cond, body, loop_vars)
            if limited:
                return result[1]
            return result[0] if len(result) == 1 and not return_same_structure else result
        context = WhileContext(
            graph, parallel_iterations, back_prop, swap_memory, maximum_iterations=maximum_iterations
        )
        if context.outer_context is None:
            graph.add_to_collection(GraphKeys.WHILE_CONTEXT, context)
        result = _Builder(context, loop_vars, shape_invariants).build(cond, body)
    if limited:
        return result[1]
    return result[0] if len(context.loop_exits) == 1 and not return_same_structure else result


def _computed(cond: Any, body: Any, loop_vars: Any) -> Any:
    """The loop variables after Python's own loop, where the graph computes at once."""
    while cond(*loop_vars):
        found = body(*loop_vars)
        loop_vars = found if isinstance(found, (list, tuple)) else (found,)
    return nest.map_structure(_leaf, loop_vars)


def _check_parallel_iterations(number: Any) -> None:
    if not isinstance(number, int):
        raise ValueError(f"'parallel_iterations' must be a positive integer: {number}")
    if number < 1:
        raise TypeError("'parallel_iterations' must be a positive integer.")


# ---- a limit on the number of iterations


def _limit(maximum_iterations: Any) -> Tensor:
    limit = convert_to_tensor(maximum_iterations, name="maximum_iterations")
    if limit.dims != ():
        raise ValueError(f"'maximum_iterations' must be a scalar. Received shape: {limit.shape}")
    return limit


def _counted(cond: Any, body: Any, loop_vars: Any, invariants: Any, limit: Tensor) -> Any:
    """Predicate, body, variables and invariants with a counter before the others."""
    counter = constant(0, limit.dtype, name="iteration_counter")
    alone = len(loop_vars) == 1
    if invariants is not None:
        invariants = (TensorShape([]), invariants[0] if alone else invariants)

    def arguments(variables: Any) -> Any:
        return (variables,) if alone else variables

    def counted_cond(i: Any, variables: Any) -> Any:
        return F.LogicalAnd(F.Less(i, limit), cond(*arguments(variables)))

    def counted_body(i: Any, variables: Any) -> Any:
        return F.AddV2(i, 1, name="add"), body(*arguments(variables))

    return counted_cond, counted_body, (counter, loop_vars[0] if alone else loop_vars), invariants


# ---- composite values as tensors


_COMPOSITE = (IndexedSlices, SparseTensor, Ragged)


def _is_array(value: Any) -> bool:
    return hasattr(value, "_with_flow")


def _leaf(value: Any) -> Any:
    """A loop variable: a Tensor or something made of them."""
    if isinstance(value, _COMPOSITE) or _is_array(value):
        return value
    return convert_to_tensor(value)


def _parts(leaf: Any) -> list[Tensor]:
    if isinstance(leaf, _COMPOSITE):
        return nest.components(leaf)
    return [leaf.flow] if _is_array(leaf) else [leaf]


def _tensors(leaves: Iterable[Any]) -> list[Tensor]:
    return [part for leaf in leaves for part in _parts(leaf)]


def _rebuilt(leaves: Iterable[Any], tensors: Iterable[Tensor]) -> list[Any]:
    """Values of the kinds of `leaves`, made from `tensors`."""
    following, values = iter(tensors), []
    for leaf in leaves:
        parts = [next(following) for _ in _parts(leaf)]
        if _is_array(leaf):
            values.append(leaf._with_flow(parts[0]))
        else:
            values.append(parts[0] if isinstance(leaf, Tensor) else nest.rebuilt(leaf, parts))
    return values


def _check_kinds(before: list[Any], after: list[Any]) -> None:
    for x, y in zip(before, after):
        if not nest.are_alike(x, y):
            raise ValueError(
                "The two structures don't have the same nested structure.\n\n"
                f"First structure: {x}\n\nSecond structure: {y}"
            )


# ---- shapes


def _invariant_dims(structure: Any, leaves: list[Any], invariants: Any) -> list[Dims]:
    """The shapes of the variables' tensors, as far as they stay the same in all iterations."""
    if invariants is None:
        return [dims for leaf in leaves for dims in _own_dims(leaf)]
    nest.assert_same_structure(list(structure), list(invariants))
    shapes = nest.flatten(invariants)
    return [dims for leaf, shape in zip(leaves, shapes) for dims in _part_dims(leaf, shape)]


def _own_dims(leaf: Any) -> list[Dims]:
    if isinstance(leaf, SparseTensor):
        return _sparse_dims(leaf.dense_shape.dims)
    if isinstance(leaf, Ragged):
        flat, outer, *inner = leaf._components()
        return [None if flat.dims is None else (None, *flat.dims[1:]), outer.dims, *[(None,) for _ in inner]]
    return [part.dims for part in _parts(leaf)]


def _part_dims(leaf: Any, shape: Any) -> list[Dims]:
    """The shapes of a variable's tensors for an invariant: the shape of a tensor, of the values of slices, of
    the dense shape of a sparse tensor.
    """
    if shape is not None and not isinstance(shape, TensorShape):
        raise TypeError(f"'shape' must be one of TypeSpec, TensorShape or None. Received: {type(shape)}")
    dims = None if shape is None else shape.dims_tuple
    if isinstance(leaf, SparseTensor):
        return _sparse_dims(dims)
    if isinstance(leaf, Ragged):
        count = len(_parts(leaf)) - 1
        rows = None if not dims or dims[0] is None else dims[0] + 1
        flat = None if dims is None else (None, *dims[count + 1 :])
        return [flat, (rows,), *[(None,)] * (count - 1)]
    if isinstance(leaf, IndexedSlices):
        known: list[Dims] = [dims, (None,), (None,)] if dims is None else [dims, dims[:1], (len(dims),)]
        return known[: len(_parts(leaf))]
    return [leaf.flow.dims] if _is_array(leaf) else [dims]


def _sparse_dims(dims: Dims) -> list[Dims]:
    """The shapes of indices, values and dense shape, where `dims` is the last one's."""
    if dims is not None and len(dims) != 1:
        raise ValueError(
            f"Expected a shape with 1 dimension. Obtained: {TensorShape.from_dims(dims)} which has "
            f"{len(dims)} dimensions."
        )
    rank = None if dims is None else dims[0]
    return [(None, rank), (None,), (rank,)]


def _less_or_equally_specific(general: Dims, special: Dims) -> bool:
    """Whether every shape that `special` allows, `general` allows too."""
    if general is None:
        return True
    if special is None or len(general) != len(special):
        return False
    return all(n is None or n == m for n, m in zip(general, special))


def _set_dims(sources: list[Tensor], enters: list[Tensor], invariants: list[Dims]) -> None:
    for source, entered, dims in zip(sources, enters, invariants):
        if not _less_or_equally_specific(dims, source.dims):
            raise ValueError(
                f"The shape invariant specified for {source.name} is not compatible with the initial shape "
                f"of the loop variable. It enters the loop with shape {source.shape}, but the specified "
                f"shape invariant is {TensorShape.from_dims(dims)}."
            )
        entered.dims = dims


# ---- building


class _Builder:
    """One call of `while_loop`: `leaves`, the variables as values; `sources` and `enters`, as tensors outside
    and inside.
    """

    def __init__(self, context: WhileContext, loop_vars: Any, shape_invariants: Any) -> None:
        self.context = context
        self.leaves = [_leaf(x) for x in nest.flatten(loop_vars)]
        self.structure = nest.pack_sequence_as(loop_vars, self.leaves)
        outer = context.outer_context
        sources = _tensors(self.leaves)
        self.sources = sources if outer is None else [outer.add_value(x) for x in sources]
        invariants = _invariant_dims(self.structure, self.leaves, shape_invariants)
        self.enters = [context.enter(x) for x in self.sources]
        for source, entered in zip(self.sources, self.enters):
            if is_constant_enter(source.op):  # its value is there before the surrounding iteration begins
                entered.op.control_inputs.append(outer.pivot_now.op)
        _set_dims(sources, self.enters, invariants)
        context.loop_enters = self.enters

    def build(self, cond: Callable[..., Any], body: Callable[..., Any]) -> Any:
        """Adds the loop; returns its results in the structure that `body` returns."""
        context = self.context
        with context.active():
            merges = [merge_values([x, x])[0] for x in self.enters]
            context.pivot_for_pred = merges[0]
            test = convert_to_tensor(cond(*self._packed(merges)))
            context.pivot = F.LoopCond(test)
            switches = [colocated_switch(x, context.pivot) for x in merges]
            current = [F.Identity(alive) for _, alive in switches]
            context.pivot_for_body = current[0]
            result, leaves = self._body_result(body, self._packed(current))
            for source, merged, x in zip(self.sources, merges, _tensors(leaves)):
                _close(source, merged, x)
            exits = [context.exit(stopped) for stopped, _ in switches]
        return nest.pack_sequence_as(result, _rebuilt(leaves, exits))

    def _packed(self, tensors: list[Tensor]) -> Any:
        return nest.pack_sequence_as(self.structure, _rebuilt(self.leaves, tensors))

    def _body_result(self, body: Callable[..., Any], arguments: Any) -> tuple[Any, list[Any]]:
        result = body(*arguments)
        if not nest.is_nested(result):
            result = [result]
        nest.assert_same_structure(list(arguments), list(result))
        leaves = [_leaf(x) for x in nest.flatten(result)]
        _check_kinds(self.leaves, leaves)
        return result, leaves


def _close(source: Tensor, merged: Tensor, result: Tensor) -> None:
    """Passes the body's result back to the Merge."""
    if result.dtype.base_dtype != merged.dtype.base_dtype:
        raise TypeError(
            f"Input tensor '{source.name}' enters the loop with type {merged.dtype.name}, "
            f"but has type {result.dtype.name} after one iteration."
        )
    following = F.NextIteration(result)
    if not _less_or_equally_specific(merged.dims, result.dims):
        raise ValueError(
            f"Input tensor '{source.name}' enters the loop with shape {merged.shape}, but has shape "
            f"{result.shape} after one iteration. To allow the shape to vary across iterations, use the "
            "`shape_invariants` argument of tf.while_loop to specify a less-specific shape."
        )
    merged.op._update_input(1, following)
