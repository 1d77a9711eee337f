"""`tf.cond` and `tf.case`: branches, one of which a step runs.

A branch function is called inside a `CondContext`. Tensors from outside that it uses pass through a Switch on
the predicate (once each), nodes without inputs wait for the branch's *pivot*, and the results of both
branches meet in Merge nodes. So if a branch is not taken, all its nodes are dead and have no effects."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.building import place_of
from flowstone.framework.declarations.operation import F, OpDeclaration
from flowstone.framework.graphs.graph import GraphKeys, Operation
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import constant
from flowstone.ops.control.context_questions import ContextQuestions
from flowstone.ops.control.control_flow import (
    colocated_switch,
    merge,
    no_op,
    switch,
    with_dependencies,
    with_equal_indices,
)
from flowstone.ops.control.reporting import assert_op

__all__ = ["Assert", "case", "cond"]


class CondContext(ContextQuestions):
    """The state of building a branch.

    `pred`, `pivot` and `branch` (1: taken if the predicate is true); `outer_context`; `nested`, the contexts
    inside; `_inside`, the tensors that may be used directly; `_switched`, the tensor to use in place of each
    outside tensor."""

    def __init__(self, graph: Any, pred: Tensor, pivot: Tensor, branch: int) -> None:
        self.graph, self.pred, self.pivot, self.branch = graph, pred, pivot, branch
        self.outer_context = graph._scopes.control_flow_context
        self.name = graph.unique_name("cond_text")
        self.loop = None if self.outer_context is None else self.outer_context.loop  # innermost one around
        self._inside = {pred, pivot}
        pivot.op._control_flow_context = self
        self._switched: dict[Tensor, Tensor] = {}
        self.nested: list[Any] = []
        if self.outer_context is not None:
            self.outer_context.nested.append(self)

    def __repr__(self) -> str:
        return f"<CondContext {self.name} branch={self.branch}>"

    def add_value(self, tensor: Tensor) -> Tensor:
        """The tensor to use for `tensor` in the branch."""
        found = self._switched.get(tensor)
        if found is not None:
            return found
        if tensor in self._inside:
            return tensor
        outer = tensor if self.outer_context is None else self.outer_context.add_value(tensor)
        found = self._switched.get(outer)
        if found is None:
            with self.graph.control_dependencies(None):
                found = colocated_switch(outer, self.pred)[self.branch]
            found.op._control_flow_context = self
            self.graph.prevent_fetching(found.op)
            self._inside.add(found)
        self._switched[tensor] = self._switched[outer] = found
        return found

    def context_for(self, declaration: OpDeclaration, inputs: list[Tensor]) -> CondContext:
        """The context that a new operation belongs to: this one."""
        return self

    def add_op(self, op: Operation) -> None:
        """Adds an operation that was created in the branch."""
        inside = self._control_flow_ops_inside
        if self.loop is not None and op.control_inputs:  # nothing in a frame can wait for outside nodes
            op.control_inputs[:] = [x for x in op.control_inputs if self._runs_beside(x)]
        if not op.inputs and not any(inside(control) for control in op.control_inputs):
            op.control_inputs.append(self.pivot.op)
        self.adopt(op)
        self.graph.prevent_fetching(op)

    def adopt(self, op: Operation) -> None:
        """Makes the outputs of `op` usable directly, here and in every context around."""
        context: Any = self
        while context is not None:
            context._inside.update(op.outputs)
            context = context.outer_context

    def _control_flow_ops_inside(self, op: Operation) -> bool:
        context = op._control_flow_context
        while context is not None and context is not self:
            context = context.outer_context
        return context is self

    def _runs_beside(self, op: Operation) -> bool:
        context = op._control_flow_context
        return context is not None and context.loop is self.loop

    def build(self, function: Callable[[], Any]) -> tuple[Any, Any]:
        """Calls a branch function; returns its result, and the result with a tensor of the branch for every
        leaf.
        """
        with self.graph._scopes.having(control_flow_context=self):
            original = function()
            if original is None:
                return None, None
            return original, nest.pack_sequence_as(
                original, [self._result(x) for x in nest.flatten(original)]
            )

    def _result(self, value: Any) -> Any:
        if isinstance(value, Operation):
            return with_dependencies([value], self.pivot)
        if nest.is_composite(value):
            return nest.rebuilt(value, [self.add_value(part) for part in nest.components(value)])
        return self.add_value(convert_to_tensor(value, as_ref=_is_reference(value)))


def _is_reference(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype.is_ref


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """The results of ``true_fn()`` where `pred`, a scalar bool tensor, is true, else those of ``false_fn()``.

    Both functions return the same nested structure of tensors (or operations) with the same dtypes; a list or
    tuple of one element is unpacked unless `strict`. Only nodes created in the taken branch run. `fn1` and
    `fn2` are old names.

    Raises TypeError if `pred` is a Python bool or a function is not callable, ValueError if a function
    returns None, or structures or dtypes differ."""
    true_fn = _chosen_function(true_fn, "true_fn", fn1, "fn1")
    false_fn = _chosen_function(false_fn, "false_fn", fn2, "fn2")
    graph = place_of(pred) if isinstance(pred, Tensor) else get_default_graph()
    with graph.name_scope(name or "cond"):
        if graph.computes_at_once:
            result = true_fn() if pred else false_fn()
            return result if strict else _unpacked(result)
        if isinstance(pred, bool):
            raise TypeError("'pred' must not be a Python bool.")
        on_false, on_true = switch(pred, pred)
        pivot_true = F.Identity(on_true, name="switch_t")
        pivot_false = F.Identity(on_false, name="switch_f")
        pred = F.Identity(pred, name="pred_id")
        for tensor in (on_true, pivot_true, pivot_false, pred):
            graph.prevent_fetching(tensor.op)
        return _branches(graph, pred, (pivot_true, pivot_false), (true_fn, false_fn), strict)


def _chosen_function(function: Any, name: str, old: Any, old_name: str) -> Callable[[], Any]:
    if old is not None:
        if function is not None:
            raise TypeError(f"cond(): '{name}' and '{old_name}' may not be set simultaneously.")
        function = old
    if function is None:
        raise TypeError(f"cond(): '{name}' argument required")
    if not callable(function):
        raise TypeError(f"'{name}' must be callable.")
    return function  # type: ignore[no-any-return]


def _branches(graph: Any, pred: Tensor, pivots: Any, functions: Any, strict: bool) -> Any:
    contexts, originals, results = [], [], []
    for branch, pivot, function, name in zip((1, 0), pivots, functions, ("true_fn", "false_fn")):
        context = CondContext(graph, pred, pivot, branch)
        original, result = context.build(function)
        if original is None:
            raise ValueError(f"'{name}' must have a return value.")
        contexts.append(context)
        originals.append(original if strict else _unpacked(original))
        results.append(nest.flatten(result))
        if context.outer_context is not None:  # else the Merge would take them through another Switch
            context.outer_context._inside.update(nest.flatten(result, expand_composites=True))
    nest.assert_same_structure(*originals)
    pairs = [_alike(x, y) for x, y in zip(*results)]
    merged = _merged(*(nest.flatten(leaves, expand_composites=True) for leaves in zip(*pairs)))
    if contexts[0].outer_context is None:
        for context in contexts:
            graph.add_to_collection(GraphKeys.COND_CONTEXT, context)
    return nest.pack_sequence_as(originals[0], merged, expand_composites=True)


def _unpacked(result: Any) -> Any:
    return result[0] if isinstance(result, (list, tuple)) and len(result) == 1 else result


def _alike(on_true: Any, on_false: Any) -> tuple[Any, Any]:
    """The two values of one leaf; if the index types of slices differ, both become int64."""
    if isinstance(on_true, IndexedSlices) and isinstance(on_false, IndexedSlices):
        on_true, on_false = with_equal_indices([on_true, on_false])
    if not nest.are_alike(on_true, on_false):
        raise ValueError(
            "Incompatible return values of 'true_fn' and 'false_fn': The two structures don't have the same "
            f"nested structure.\n\nFirst structure: {on_true}\n\nSecond structure: {on_false}"
        )
    return on_true, on_false


def _merged(on_true: list[Tensor], on_false: list[Tensor]) -> list[Tensor]:
    for x, y in zip(on_true, on_false):
        if x.dtype.base_dtype != y.dtype.base_dtype:
            raise ValueError(
                "Outputs of 'true_fn' and 'false_fn' must have the same type(s). Received "
                f"{x.dtype.name} from 'true_fn' and {y.dtype.name} from 'false_fn'."
            )
    return [merge(pair)[0] for pair in zip(on_false, on_true)]


def Assert(condition: Any, data: Any, summarize: int | None = None, name: str | None = None) -> Operation:
    """An operation that fails with InvalidArgumentError, showing `data`, unless `condition` is true.

    `condition`: a scalar bool tensor; `data`: a list of tensors and Python values; `summarize`: how many
    elements of each to show (None: 3, negative: all). `data` is computed only where the check fails."""
    graph = get_default_graph()
    with graph.name_scope(name or "Assert"):
        shown = 3 if summarize is None else summarize
        if graph.computes_at_once:
            return assert_op.operation(condition, data, summarize=shown, name="Assert")
        types = {convert_to_tensor(x).dtype.base_dtype for x in data}
        if types <= {
            dtypes.string,
            dtypes.int32,
        }:  # host values: computing them costs little
            return assert_op.operation(condition, data, summarize=shown, name="Assert")
        condition = convert_to_tensor(condition, name="Condition")

        def fail() -> Any:
            return assert_op.operation(condition, data, summarize=shown, name="Assert")

        return cond(condition, no_op, fail, name="AssertGuard").op  # type: ignore[no-any-return]


# ---- case


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """The result of the function of the first true predicate, else of `default`.

    `pred_fn_pairs`: a list of (scalar bool tensor, function), or a dict of them (taken in the order of the
    predicates' names unless it is an OrderedDict). The step fails with InvalidArgumentError if more than one
    predicate is true with `exclusive`, or none without `default`. Raises TypeError for invalid pairs.
    """
    return case_by(cond, pred_fn_pairs, default, exclusive, name, strict=strict)


def case_by(
    cond_fn: Callable[..., Any],
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None,
    exclusive: bool,
    name: str,
    allow_python_preds: bool = False,
    **keywords: Any,
) -> Any:
    """`case` with `cond_fn`, called as `cond` is with the `keywords`, in the place of `cond`.

    `allow_python_preds`: predicates may be Python's True and False."""
    if isinstance(pred_fn_pairs, dict):
        ordered = isinstance(pred_fn_pairs, OrderedDict)
        pairs = (
            list(pred_fn_pairs.items())
            if ordered
            else sorted(pred_fn_pairs.items(), key=lambda item: item[0].name)
        )
    elif isinstance(pred_fn_pairs, (list, tuple)):
        pairs = list(pred_fn_pairs)
    else:
        raise TypeError(f"'pred_fn_pairs' must be a list, tuple, or dict. Received: {type(pred_fn_pairs)}")
    for pair in pairs:
        _check_pair(pair, allow_python_preds)
    if default is not None and not callable(default):
        raise TypeError("'false_fn' must be callable.")
    predicates, functions = map(list, zip(*pairs)) if pairs else _no_pairs()
    with get_default_graph().name_scope(name):
        if default is None:
            default = _asserting_last(predicates, functions)
        return _chained(cond_fn, predicates, functions, default, exclusive, keywords)


def _no_pairs() -> Any:
    raise ValueError("not enough values to unpack (expected 2, got 0)")


def _check_pair(pair: Any, allow_python_preds: bool) -> None:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"Each entry in 'pred_fn_pairs' must be a 2-tuple. Received {pair}.")
    pred, function = pair
    if not (isinstance(pred, Tensor) or (allow_python_preds and isinstance(pred, bool))):
        wanted = "a Tensor or bool" if allow_python_preds else "a Tensor"
        raise TypeError(f"pred must be {wanted}, got: {pred}")
    if isinstance(pred, Tensor) and pred.dtype is not dtypes.bool:
        raise TypeError(f"pred must be Tensor of type bool: {pred.name}")
    if not callable(function):
        raise TypeError(f"fn for pred {_pred_name(pred)} must be callable.")


def _pred_name(pred: Any) -> str:
    return pred.name if isinstance(pred, Tensor) else str(pred)


def _chained(
    cond_fn: Callable[..., Any],
    predicates: list[Any],
    functions: list[Any],
    default: Any,
    exclusive: bool,
    keywords: dict[str, Any],
) -> Any:
    """Nested conds; the checks of exclusive cases come before the first."""
    graph = get_default_graph()
    checks = [_at_most_true(predicates, 1, "Input error: exclusive=True")] if exclusive else []

    def branch(i: int) -> Any:
        if i == len(predicates):
            return default()
        return cond_fn(predicates[i], true_fn=functions[i], false_fn=lambda: branch(i + 1), **keywords)

    with graph.control_dependencies(checks):
        return branch(0)


def _asserting_last(predicates: list[Any], functions: list[Any]) -> Callable[[], Any]:
    """The last function as the default; it checks that its predicate is true and no other one is."""
    last = len(functions) - 1
    predicate, function = predicates.pop(), functions.pop()

    def default() -> Any:
        preds = _packed([*predicates, predicate])
        checks = [
            _at_most_true(
                predicates,
                0,
                f"Implementation error: selected default action #{last} was called, but some "
                f"of other predicates are True: ",
            ),
            Assert(
                predicate, ["Input error: None of conditions evaluated as True:", preds], len(predicates) + 1
            ),
        ]
        with get_default_graph().control_dependencies(checks):
            return function()

    return default


def _packed(predicates: list[Any]) -> Tensor:
    if all(isinstance(predicate, bool) for predicate in predicates):
        return constant(predicates, dtypes.bool, name="preds_c")
    return F.Pack(predicates, name="preds_c")


def _at_most_true(predicates: list[Any], limit: int, message: str) -> Operation:
    preds = _packed(predicates)
    count = F.Sum(F.Cast(preds, DstT=dtypes.int32), constant([0], dtypes.int32), name="num_true_conds")
    condition = F.LessEqual(count, constant(limit, name="n_true_conds"))
    names = ", ".join(_pred_name(predicate) for predicate in predicates)
    words = f"{message}: more than {limit} conditions ({names}) evaluated as True:"
    return Assert(condition, [words, preds], len(predicates))
