"""Steps of optimisers on some rows of a variable: ``run(var, *slots, *numbers, grad, indices, …)``.

The rows of the variable and of its slots are gathered, updated and put back. An index that repeats is applied
once for each time, in order (`scatter.rounds`), as the ops say, or, in plans, once with the sum of its rows
(`Repeats.SUMMED`; `lowering/updates/row_updates.py` finds out where the program sums them before). That sum
needs neither a sort nor a list of the distinct indices: a table of the variable's length names one position
for each index, every index's rows are added up there, and all its positions put back the same row.

Adagrad leaves rows without a gradient as they are, so that it may pass over the whole of a small variable,
which is one call. (An accumulator that is zero, which `AdagradOptimizer` does not allow, then makes no NaN.)
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.containers import Variable
from flowstone.framework.machine import machine
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import format_dims, num_elements
from flowstone.ops.arrays.selection import DISTINCT
from flowstone.ops.numbers.segment_reductions import sum_rows
from flowstone.ops.variables import optimizer_steps as steps
from flowstone.ops.variables.repeated_rows import rounds
from flowstone.ops.variables.scatter import check_rows

__all__: list[str] = []


class Repeats(enum.Enum):
    """What an index that repeats means."""

    NEVER = "there are none"
    IN_ORDER = "one step for each"
    SUMMED = "one step with the sum of the rows"


def repeats(node: Node, indices_at: int) -> Repeats:
    """What the repeated indices of a sparse update mean; input `indices_at` has them."""
    if node.attributes.get("sum_repeated"):
        return Repeats.SUMMED
    indices = node.inputs[indices_at]
    distinct = indices.op.type in DISTINCT and indices.value_index == 0
    return Repeats.NEVER if distinct else Repeats.IN_ORDER


def wrong_shape(var: Any, grad: Any) -> errors.InvalidArgumentError:
    """The error of a gradient that does not fit its variable."""
    shapes = f"{format_dims(tuple(var.shape))} {format_dims(tuple(grad.shape))}"
    return errors.InvalidArgumentError(None, None, f"var and grad do not have the same shape{shapes}")


def on_rows(
    function: Any, slots: int, grad_at: int, options: dict[str, Any], kind: Repeats
) -> Callable[..., Variable]:
    """`function` on the rows that the indices behind the gradient name."""
    parts = PARTS[kind]

    def run(*inputs: Any) -> Variable:
        variables: tuple[Variable, ...] = inputs[: slots + 1]
        tensors = [variable.tensor for variable in variables]
        places, grad = checked_rows(tensors[0], inputs[grad_at], inputs[grad_at + 1])
        before, after = inputs[slots + 1 : grad_at], inputs[grad_at + 2 :]
        for here, part in parts(places, grad, tensors[0].shape[0]):
            rows = [tensor.index_select(0, here) for tensor in tensors]
            function(*rows, *before, part, *after, **options)
            for tensor, row in zip(tensors, rows):
                tensor.index_copy_(0, here, row)
        return variables[0]

    return run


def checked_rows(var: Any, grad: Any, indices: Any) -> tuple[Any, Any]:
    """The indices as int64, and the gradient. InvalidArgumentError where they do not fit the variable."""
    if grad.shape[1:] != var.shape[1:] or grad.shape[0] != indices.shape[0]:
        raise wrong_shape(var, grad)
    check_rows(indices, var.shape[0])
    return indices.long(), grad


def _as_they_are(places: Any, grad: Any, limit: int) -> list[tuple[Any, Any]]:
    return [(places, grad)]


def _in_order(places: Any, grad: Any, limit: int) -> list[tuple[Any, Any]]:
    groups = rounds(places)
    return [(places, grad)] if groups is None else [(places[group], grad[group]) for group in groups]


def _summed(places: Any, grad: Any, limit: int) -> list[tuple[Any, Any]]:
    count = places.shape[0]
    table = places.new_empty(limit)  # only what is written is read
    table.index_copy_(0, places, torch.arange(count, device=places.device))
    chosen = table.index_select(0, places)
    return [(places, sum_rows(grad, chosen, count).index_select(0, chosen))]


PARTS = {Repeats.NEVER: _as_they_are, Repeats.IN_ORDER: _in_order, Repeats.SUMMED: _summed}


# ---- the whole of a small variable

_CALLS = 8  # that spare a pass over all
_DENSE = 4  # times the elements of the gradient: a pass over so many costs what picking the rows does
_NO_RATE = torch.finfo(torch.float32).tiny  # added to a root, it changes none but zero


def passes_over_all(function: Any, node: Node, dims: Any, grad_at: int, kind: Repeats) -> bool:
    """Whether a step is one pass over the variable, of static shape `dims`."""
    if function not in (steps.adagrad, steps.adagrad_v2) or not node.attributes["update_slots"]:
        return False
    size = num_elements(dims)
    if kind is Repeats.IN_ORDER or size is None or node.dtype(grad_at).torch not in steps.FUSED_TYPES:
        return False
    return size <= machine.current().elements(_CALLS) + _DENSE * (
        num_elements(node.static_shape(grad_at)) or 0
    )


def adagrad_over_all(by_rows: Callable[..., Variable]) -> Callable[..., Variable]:
    """An Adagrad step of rows on all of the variable; `by_rows` where orders in memory differ."""

    def run(variable: Variable, slot: Variable, lr: Any, *others: Any) -> Variable:
        *epsilon, grad, indices = others
        var, accum = variable.tensor, slot.tensor
        if not (var.is_contiguous() and accum.is_contiguous()):
            return by_rows(variable, slot, lr, *others)
        places, grad = checked_rows(var, grad, indices)
        sums = sum_rows(grad, places, var.shape[0])
        steps.fused_adagrad([var], [sums], [accum], lr, max([*epsilon, _NO_RATE]))
        return variable

    return run
