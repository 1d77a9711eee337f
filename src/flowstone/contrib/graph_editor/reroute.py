"""Rewiring: what operations take as inputs, and what they wait for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import flowstone as tf
from flowstone.contrib.graph_editor import subgraph, util

__all__ = [
    "add_control_inputs",
    "remove_control_inputs",
    "reroute_inputs",
    "reroute_ios",
    "reroute_outputs",
    "reroute_ts",
    "swap_inputs",
    "swap_ios",
    "swap_outputs",
    "swap_ts",
]


def _give(new: Any, old: Any, consumers: Iterable[Any]) -> int:
    """Has the operations take `new` where they took `old`; returns how many inputs that were."""
    count = 0
    for op in consumers:
        for index, tensor in enumerate(list(op.inputs)):
            if tensor is old:
                op._update_input(index, new)
                count += 1
    return count


def _reroute(ts0: Any, ts1: Any, swap: bool, can_modify: Any = None, cannot_modify: Any = None) -> int:
    ts0, ts1 = util.make_list_of_t(ts0), util.make_list_of_t(ts1)
    if len(ts0) != len(ts1):
        raise ValueError(f"ts0 and ts1 have different sizes: {len(ts0)} != {len(ts1)}")
    util.get_unique_graph([*ts0, *ts1], tf.Tensor, none_if_empty=True)
    can = None if can_modify is None else set(util.make_list_of_op(can_modify))
    cannot = set(util.make_list_of_op([] if cannot_modify is None else cannot_modify))

    def consumers(tensor: Any) -> list[Any]:
        ops = util.get_consuming_ops(tensor)
        return [op for op in ops if (can is None or op in can) and op not in cannot]

    count = 0
    for t0, t1 in zip(ts0, ts1, strict=True):
        if t0 is t1:
            continue
        of_t0, of_t1 = consumers(t0), consumers(t1)
        count += _give(t0, t1, of_t1)
        if swap:
            count += _give(t1, t0, of_t0)
    return count


def reroute_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """Has the consumers of each tensor of `ts1` take the one of `ts0` in its place.

    Args:
        ts0, ts1: tensors, or lists of equally many.
        can_modify, cannot_modify: the only operations that change, and those that don't; default: all change.

    Returns how many inputs changed. Raises ValueError for lists of different lengths and several graphs.
    """
    return _reroute(ts0, ts1, False, can_modify, cannot_modify)


def swap_ts(ts0: Any, ts1: Any, can_modify: Any = None, cannot_modify: Any = None) -> int:
    """Has the consumers of each tensor of `ts0` and of `ts1` take the other one.

    The arguments, result and errors are those of `reroute_ts`. An operation that takes both has that of `ts1`
    twice afterwards, as in TensorFlow.
    """
    return _reroute(ts0, ts1, True, can_modify, cannot_modify)


def _views(sgv0: Any, sgv1: Any) -> tuple[Any, Any]:
    sgv0, sgv1 = subgraph.make_view(sgv0), subgraph.make_view(sgv1)
    util.check_graphs(sgv0, sgv1)
    return sgv0, sgv1


def _reroute_inputs(sgv0: Any, sgv1: Any, swap: bool) -> tuple[Any, Any]:
    sgv0, sgv1 = _views(sgv0, sgv1)
    inputs0, inputs1 = sgv0.inputs, sgv1.inputs
    passed0, passed1 = sgv0.passthroughs, sgv1.passthroughs
    _reroute(inputs0, inputs1, swap, can_modify=[*sgv0.ops, *sgv1.ops])
    sgv1._input_ts, sgv1._passthrough_ts = inputs0, passed0 or passed1
    if swap:
        sgv0._input_ts, sgv0._passthrough_ts = inputs1, passed1 or passed0
    return sgv0, sgv1


def _reroute_outputs(sgv0: Any, sgv1: Any, swap: bool) -> tuple[Any, Any]:
    sgv0, sgv1 = _views(sgv0, sgv1)
    _reroute(sgv0.outputs, sgv1.outputs, swap, cannot_modify=[*sgv0.ops, *sgv1.ops])
    return sgv0, sgv1


def reroute_inputs(sgv0: Any, sgv1: Any) -> tuple[Any, Any]:
    """Gives `sgv1` the inputs of `sgv0`, in their order. Returns both views.

    Raises ValueError if they have different numbers of inputs.
    """
    return _reroute_inputs(sgv0, sgv1, False)


def swap_inputs(sgv0: Any, sgv1: Any) -> tuple[Any, Any]:
    """Exchanges the inputs of two views. Returns both. ValueError if they have different numbers of them."""
    return _reroute_inputs(sgv0, sgv1, True)


def reroute_outputs(sgv0: Any, sgv1: Any) -> tuple[Any, Any]:
    """Gives those that use the outputs of `sgv1` those of `sgv0`, in their order. Returns both views.

    Raises ValueError if they have different numbers of outputs.
    """
    return _reroute_outputs(sgv0, sgv1, False)


def swap_outputs(sgv0: Any, sgv1: Any) -> tuple[Any, Any]:
    """Exchanges those that use the outputs. Returns both views. ValueError for different numbers of them."""
    return _reroute_outputs(sgv0, sgv1, True)


def reroute_ios(sgv0: Any, sgv1: Any) -> tuple[Any, Any]:
    """Puts `sgv0` in the place of `sgv1`, as `reroute_inputs` and `reroute_outputs` do. Returns both."""
    sgv0, sgv1 = _views(sgv0, sgv1)
    _reroute_inputs(sgv0, sgv1, False)
    return _reroute_outputs(sgv0, sgv1, False)


def swap_ios(sgv0: Any, sgv1: Any) -> tuple[Any, Any]:
    """Exchanges inputs and outputs of two views. Returns both."""
    sgv0, sgv1 = _views(sgv0, sgv1)
    _reroute_inputs(sgv0, sgv1, True)
    return _reroute_outputs(sgv0, sgv1, True)


def _check_op(op: Any) -> None:
    if not isinstance(op, tf.Operation):
        raise TypeError(f"Expected a tf.Operation, got: {type(op)}")


def remove_control_inputs(op: Any, cops: Any) -> None:
    """Has the operation no longer wait for others.

    Raises TypeError for what is no operation, ValueError for one that it does not wait for.
    """
    _check_op(op)
    cops = util.make_list_of_op(cops, allow_graph=False)
    for cop in cops:
        if cop not in op.control_inputs:
            raise ValueError(f"{op.name} is not a control_input of {cop.name}")
    op.control_inputs[:] = [each for each in op.control_inputs if each not in cops]


def add_control_inputs(op: Any, cops: Any) -> None:
    """Has the operation wait for others.

    Raises TypeError for what is no operation, ValueError for one that it waits for already.
    """
    _check_op(op)
    cops = util.make_list_of_op(cops, allow_graph=False)
    for cop in cops:
        if cop in op.control_inputs:
            raise ValueError(f"{cop.name} is already a control_input of {op.name}")
    op._add_control_inputs(cops)
