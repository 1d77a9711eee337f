"""Primitives of control flow as calls: the functions that the executor's Switches and Merges run.

They are chosen at plan time: most primitives pass on their arguments unchanged and need no call at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from flowstone.runtime.code.conditional_blocks import truth
from flowstone.runtime.execution.executor import DEAD, SWITCH, Unit


def primitive_call(unit: Unit) -> Callable[..., Any] | None:
    """The function of the step and the unit's arguments that returns its outputs; None if these are the
    arguments."""
    is_plain = not unit.buffers and not unit.copies
    if unit.names_place:
        return lambda step, choice: (*prepared(unit, [choice[0]]), torch.tensor(choice[1], dtype=torch.int32))
    if unit.kind == SWITCH:
        return _switch if is_plain else lambda step, *arguments: _switch(step, *prepared(unit, arguments))
    return None if is_plain else lambda step, *arguments: prepared(unit, arguments)


def prepared(unit: Unit, arguments: Any) -> Any:
    """The arguments as the kernel takes them: buffers instead of variables, copies of those that it keeps."""
    if unit.buffers or unit.copies:
        arguments = list(arguments)
        for place in unit.buffers:
            arguments[place] = getattr(arguments[place], "tensor", arguments[place])
        for place in unit.copies:
            value = arguments[place]
            arguments[place] = value.clone() if isinstance(value, torch.Tensor) else value.copy()
    return arguments


def _switch(step: Any, value: Any, predicate: Any) -> tuple[Any, Any]:
    return (DEAD, value) if truth(predicate) else (value, DEAD)
