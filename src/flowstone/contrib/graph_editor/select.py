"""Choosing operations and tensors: by regular expressions, by name scopes, by walks along edges."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import flowstone as tf
from flowstone.contrib.graph_editor import util

__all__ = [
    "can_be_regex",
    "check_cios",
    "compute_boundary_ts",
    "filter_ops",
    "filter_ops_from_regex",
    "filter_ts",
    "filter_ts_from_regex",
    "get_backward_walk_ops",
    "get_forward_walk_ops",
    "get_name_scope_ops",
    "get_ops_ios",
    "get_walks_intersection_ops",
    "get_walks_union_ops",
    "get_within_boundary_ops",
    "make_regex",
    "select_ops",
    "select_ops_and_ts",
    "select_ts",
]


def can_be_regex(obj: Any) -> bool:
    """Whether it is a string or a regular expression."""
    return isinstance(obj, (str, re.Pattern))


def make_regex(obj: Any) -> re.Pattern[str]:
    """The regular expression of a string, or the one given. ValueError for anything else."""
    if not can_be_regex(obj):
        raise ValueError(f"Expected a string or a regex, got: {type(obj)}")
    return re.compile(obj)


def _filtered(items: list[Any], positive_filter: Any) -> list[Any]:
    if isinstance(positive_filter, bool):
        return items if positive_filter else []
    return [item for item in items if positive_filter(item)]


def filter_ts(ops: Any, positive_filter: Any) -> list[Any]:
    """The operations' outputs for which the function is true; all if it is True."""
    return _filtered([tensor for op in util.make_list_of_op(ops) for tensor in op.outputs], positive_filter)


def filter_ts_from_regex(ops: Any, regex: Any) -> list[Any]:
    """The operations' outputs in whose names the expression is found."""
    pattern = make_regex(regex)
    return filter_ts(ops, positive_filter=lambda tensor: pattern.search(tensor.name))


def filter_ops(ops: Any, positive_filter: Any) -> list[Any]:
    """The operations for which the function is true; all if it is True."""
    return _filtered(util.make_list_of_op(ops), positive_filter)


def filter_ops_from_regex(ops: Any, regex: Any) -> list[Any]:
    """The operations in whose names the expression is found."""
    pattern = make_regex(regex)
    return filter_ops(ops, lambda op: pattern.search(op.name))


def get_name_scope_ops(ops: Any, scope: str) -> list[Any]:
    """The operations in a name scope, and the one of that very name."""
    scope = scope.rstrip("/")
    return filter_ops_from_regex(ops, f"^{re.escape(scope)}(/.*)?$")


def check_cios(
    control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None
) -> tuple[bool, Any]:
    """The pair (whether control inputs count, the `ControlOutputs` that count or None).

    `control_ios`, a `ControlOutputs`, means both. TypeError for what is none, ValueError with both forms.
    """
    if control_ios is not None:
        if not isinstance(control_ios, util.ControlOutputs):
            raise TypeError(f"Expected a util.ControlOutputs, got: {type(control_ios)}")
        if control_outputs is not None:
            raise ValueError("control_outputs should be None when using control_ios.")
        control_inputs, control_outputs = True, control_ios
    elif control_outputs is not None and not isinstance(control_outputs, util.ControlOutputs):
        raise TypeError(f"Expected a util.ControlOutputs, got: {type(control_outputs)}")
    if control_outputs is not None:
        control_outputs.update()
    return control_inputs, control_outputs


def get_ops_ios(
    ops: Any, control_inputs: bool = False, control_outputs: Any = None, control_ios: Any = None
) -> list[Any]:
    """The operations next to the given ones: makers of their inputs, and consumers of their outputs."""
    control_inputs, control_outputs = check_cios(control_inputs, control_outputs, control_ios)
    found: list[Any] = []
    for op in util.make_list_of_op(ops):
        found += [tensor.op for tensor in op.inputs]
        if control_inputs:
            found += op.control_inputs
        found += [consumer for tensor in op.outputs for consumer in tensor.consumers()]
        if control_outputs is not None:
            found += control_outputs.get(op)
    return util.unique(found)


def compute_boundary_ts(ops: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """The tensors (that enter, that leave, that stay within) a set of operations.

    One that is used within and without is of the second and of the third; one that nobody uses leaves.
    """
    ops = util.make_list_of_op(ops)
    inside = set(ops)
    used = util.unique(tensor for op in ops for tensor in op.inputs)
    leaving = [
        tensor
        for op in ops
        for tensor in op.outputs
        if not tensor.consumers() or any(consumer not in inside for consumer in tensor.consumers())
    ]
    entering = [tensor for tensor in used if tensor.op not in inside]
    return entering, leaving, [tensor for tensor in used if tensor.op in inside]


def get_within_boundary_ops(
    ops: Any,
    seed_ops: Any,
    boundary_ops: Any = (),
    inclusive: bool = True,
    control_inputs: bool = False,
    control_outputs: Any = None,
    control_ios: Any = None,
) -> list[Any]:
    """Those of `ops` that are reached from the seeds, along edges in any direction, not past the boundary.

    `inclusive` tells whether operations of the boundary count. ValueError if the seeds are on a boundary that
    does not.
    """
    control_inputs, control_outputs = check_cios(control_inputs, control_outputs, control_ios)
    ops, boundary = util.make_list_of_op(ops), set(util.make_list_of_op(boundary_ops))
    wave = util.make_list_of_op(seed_ops)
    if not inclusive and boundary.intersection(wave):
        raise ValueError("Boundary is intersecting with the seeds.")
    allowed, found = set(ops), set(wave)
    while wave:
        near = get_ops_ios([op for op in wave if op not in boundary], control_inputs, control_outputs)
        wave = [op for op in near if op in allowed and op not in found]
        if not inclusive:
            wave = [op for op in wave if op not in boundary]
        found.update(wave)
    return [op for op in ops if op in found]


def _seeds(given: Any, of_tensors: Callable[[Any], list[Any]]) -> list[Any]:
    given = util.make_list_of_op(given) if isinstance(given, tf.Graph) else given
    items = util.items_of(given)
    if items and all(isinstance(item, tf.Tensor) for item in items):
        return of_tensors(items)
    return util.make_list_of_op(items, allow_graph=False)


def _walk(
    seeds: list[Any],
    inclusive: bool,
    within_ops: Any,
    within_ops_fn: Callable[[Any], bool] | None,
    following: Callable[[Any], Iterable[Any]],
) -> list[Any]:
    within = None if within_ops is None else set(util.make_list_of_op(within_ops, allow_graph=False))

    def is_within(op: Any) -> bool:
        return (within is None or op in within) and (within_ops_fn is None or within_ops_fn(op))

    seeds = [op for op in seeds if is_within(op)]
    wave, found = seeds, dict.fromkeys(seeds)
    while wave:
        wave = util.unique(op for each in wave for op in following(each) if is_within(op) and op not in found)
        found.update(dict.fromkeys(wave))
    return [op for op in found if inclusive or op not in seeds]


def get_forward_walk_ops(
    seed_ops: Any,
    inclusive: bool = True,
    within_ops: Any = None,
    stop_at_ts: Any = (),
    control_outputs: Any = None,
    within_ops_fn: Callable[[Any], bool] | None = None,
) -> list[Any]:
    """The operations that depend on the seeds: operations, or tensors for their consumers.

    Args:
        seed_ops: where it begins. inclusive: whether they belong to the result.
        within_ops, within_ops_fn: the operations that the walk keeps to. stop_at_ts: tensors it stops at.
        control_outputs: a `ControlOutputs`, for control edges to count.
    """
    _, control_outputs = check_cios(False, control_outputs)
    stops = set(util.make_list_of_t(stop_at_ts))

    def following(op: Any) -> Iterable[Any]:
        for tensor in op.outputs:
            if tensor not in stops:
                yield from tensor.consumers()
        if control_outputs is not None:
            yield from control_outputs.get(op)

    return _walk(_seeds(seed_ops, util.get_consuming_ops), inclusive, within_ops, within_ops_fn, following)


def get_backward_walk_ops(
    seed_ops: Any,
    inclusive: bool = True,
    within_ops: Any = None,
    stop_at_ts: Any = (),
    control_inputs: bool = False,
    within_ops_fn: Callable[[Any], bool] | None = None,
) -> list[Any]:
    """The operations that the seeds depend on: operations, or tensors for those that make them.

    Args:
        seed_ops: where it begins. inclusive: whether they belong to the result.
        within_ops, within_ops_fn: the operations that the walk keeps to. stop_at_ts: tensors it stops at.
        control_inputs: whether control edges count.
    """
    stops = set(util.make_list_of_t(stop_at_ts))

    def following(op: Any) -> Iterable[Any]:
        for tensor in op.inputs:
            if tensor not in stops:
                yield tensor.op
        if control_inputs:
            yield from op.control_inputs

    return _walk(_seeds(seed_ops, util.get_generating_ops), inclusive, within_ops, within_ops_fn, following)


def _both_walks(
    forward_seed_ops: Any,
    backward_seed_ops: Any,
    forward_inclusive: bool,
    backward_inclusive: bool,
    within_ops: Any,
    controls: tuple[bool, Any, Any],
    within_ops_fn: Callable[[Any], bool] | None,
) -> tuple[list[Any], list[Any]]:
    control_inputs, control_outputs = check_cios(*controls)
    forward = get_forward_walk_ops(
        forward_seed_ops,
        forward_inclusive,
        within_ops,
        control_outputs=control_outputs,
        within_ops_fn=within_ops_fn,
    )
    backward = get_backward_walk_ops(
        backward_seed_ops,
        backward_inclusive,
        within_ops,
        control_inputs=control_inputs,
        within_ops_fn=within_ops_fn,
    )
    return forward, backward


def get_walks_intersection_ops(
    forward_seed_ops: Any,
    backward_seed_ops: Any,
    forward_inclusive: bool = True,
    backward_inclusive: bool = True,
    within_ops: Any = None,
    control_inputs: bool = False,
    control_outputs: Any = None,
    control_ios: Any = None,
    within_ops_fn: Callable[[Any], bool] | None = None,
) -> list[Any]:
    """The operations of the forward walk that are of the backward walk, too: what is between the seeds."""
    forward, backward = _both_walks(
        forward_seed_ops,
        backward_seed_ops,
        forward_inclusive,
        backward_inclusive,
        within_ops,
        (control_inputs, control_outputs, control_ios),
        within_ops_fn,
    )
    among = set(backward)
    return [op for op in forward if op in among]


def get_walks_union_ops(
    forward_seed_ops: Any,
    backward_seed_ops: Any,
    forward_inclusive: bool = True,
    backward_inclusive: bool = True,
    within_ops: Any = None,
    control_inputs: bool = False,
    control_outputs: Any = None,
    control_ios: Any = None,
    within_ops_fn: Callable[[Any], bool] | None = None,
) -> list[Any]:
    """The operations of the forward walk, then those that only the backward walk has."""
    forward, backward = _both_walks(
        forward_seed_ops,
        backward_seed_ops,
        forward_inclusive,
        backward_inclusive,
        within_ops,
        (control_inputs, control_outputs, control_ios),
        within_ops_fn,
    )
    return util.unique([*forward, *backward])


def _check_keywords(given: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"Wrong keywords argument: {name}.")


def _select(
    args: Any, given: dict[str, Any], mark: str, other_mark: str, by_regex: Any, listed: Any
) -> list[Any]:
    """The items that the arguments choose; `mark` begins expressions for just this kind."""
    name = "restrict_ops_regex" if mark == "(?#ops)" else "restrict_ts_regex"
    _check_keywords(given, ("graph", "positive_filter", name))
    graph, positive_filter = given.get("graph"), given.get("positive_filter")
    if graph is not None and not isinstance(graph, tf.Graph):
        raise TypeError(f"Expected a tf.Graph, got: {type(graph)}")
    found: list[Any] = []
    for arg in args:
        if can_be_regex(arg):
            if graph is None:
                raise ValueError("Use the keyword argument 'graph' to use regex.")
            pattern = make_regex(arg)
            if pattern.pattern.startswith(other_mark):
                continue
            if given.get(name) and not pattern.pattern.startswith(mark):
                continue
            found += by_regex(graph, pattern)
        else:
            found += listed(arg)
    if positive_filter is not None:
        found = [each for each in found if positive_filter(each)]
    return util.unique(found)


def select_ts(*args: Any, **kwargs: Any) -> list[Any]:
    """The tensors among the arguments, and those whose names fit arguments that are expressions.

    Args:
        *args: tensors, lists of them, regular expressions; operations and expressions that begin with
            ``(?#ops)`` are left out.
        **kwargs: ``graph``, for expressions; ``positive_filter``, a function of tensors; with
            ``restrict_ts_regex`` only expressions that begin with ``(?#ts)`` count.

    Raises TypeError for other arguments, ValueError for expressions without a graph.
    """
    found: list[Any] = _select(
        args,
        kwargs,
        "(?#ts)",
        "(?#ops)",
        filter_ts_from_regex,
        lambda arg: util.make_list_of_t(_checked(arg), ignore_ops=True),
    )
    return found


def select_ops(*args: Any, **kwargs: Any) -> list[Any]:
    """The operations among the arguments, and those whose names fit arguments that are expressions.

    Args:
        *args: operations, lists of them, regular expressions; tensors and expressions that begin with
            ``(?#ts)`` are left out.
        **kwargs: ``graph``, for expressions; ``positive_filter``, a function of operations; with
            ``restrict_ops_regex`` only expressions that begin with ``(?#ops)`` count.

    Raises TypeError for other arguments, ValueError for expressions without a graph.
    """
    found: list[Any] = _select(
        args,
        kwargs,
        "(?#ops)",
        "(?#ts)",
        filter_ops_from_regex,
        lambda arg: util.make_list_of_op(_checked(arg), ignore_ts=True),
    )
    return found


def _checked(arg: Any) -> Any:
    if not isinstance(arg, tf.Graph):
        util.get_unique_graph(arg, none_if_empty=True)
    return arg


def select_ops_and_ts(*args: Any, **kwargs: Any) -> tuple[list[Any], list[Any]]:
    """What `select_ops` and what `select_ts` find; expressions for tensors begin with ``(?#ts)``."""
    _check_keywords(kwargs, ("graph",))
    ops = select_ops(*args, restrict_ops_regex=False, **kwargs)
    return ops, select_ts(*args, restrict_ts_regex=True, **kwargs)
