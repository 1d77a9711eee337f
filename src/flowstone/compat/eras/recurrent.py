"""Recurrent cells of TensorFlow 0.x, which took the size of their inputs.

| then | now |
| --- | --- |
| `BasicLSTMCell(units, forget_bias, input_size)` | `BasicLSTMCell(units, forget_bias, state_is_tuple)` |
| `LSTMCell(units, input_size, use_peepholes, …)` | `LSTMCell(units, use_peepholes, …)` |
| `GRUCell(units, input_size)`, `BasicRNNCell(units, input_size)` | `(units, activation)` |

A size is a number where the other form has a bool or a function; a cell that gets one keeps its state as
one tensor, as those TensorFlows did, unless `state_is_tuple` is named. A `MultiRNNCell` of such cells does,
too.
"""

from __future__ import annotations

import functools
import inspect
import numbers
from collections.abc import Callable
from typing import Any

import flowstone

__all__ = ["install"]


def _is_size(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _with_size(cell: Any, place: int, joins_state: bool) -> None:
    """Has the class `cell` take the size of its inputs at this position, or as `input_size`."""
    original: Callable[..., None] = cell.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        sized = kwargs.pop("input_size", None) is not None
        if len(args) > place and (_is_size(args[place]) or (args[place] is None and len(args) > place + 1)):
            sized = sized or args[place] is not None
            args = (*args[:place], *args[place + 1 :])
        if sized and joins_state:
            kwargs.setdefault("state_is_tuple", False)
        original(self, *args, **kwargs)

    cell.__init__ = _with_signature(__init__, original)


def _with_signature(made: Any, original: Callable[..., None]) -> Any:
    """`made`, which says to `inspect.getfullargspec`, too, that it has the arguments of `original`."""
    made.__signature__ = inspect.signature(original)
    return made


def _stacked_as_its_cells(cell: Any) -> None:
    """Has a stack of cells join its states as these do, if nothing is said of it."""
    original: Callable[..., None] = cell.__init__

    @functools.wraps(original)
    def __init__(self: Any, cells: Any, *args: Any, **kwargs: Any) -> None:
        if not args and "state_is_tuple" not in kwargs and isinstance(cells, (list, tuple)):
            joined = [getattr(each, "_state_is_tuple", None) is False for each in cells]
            if cells and all(joined):
                kwargs["state_is_tuple"] = False
        original(self, cells, *args, **kwargs)

    cell.__init__ = _with_signature(__init__, original)


def install() -> None:
    """Has the cells understand both forms."""
    cells: Any = flowstone.rnn_cell
    _with_size(cells.BasicLSTMCell, 2, joins_state=True)
    _with_size(cells.LSTMCell, 1, joins_state=True)
    _with_size(cells.GRUCell, 1, joins_state=False)
    _with_size(cells.BasicRNNCell, 1, joins_state=False)
    _stacked_as_its_cells(cells.MultiRNNCell)
