"""`tensorflow.python.ops.rnn_cell_impl`: states of zeros, and their shapes."""

from __future__ import annotations

from typing import Any

from flowstone.layers.cell_state import full_shape, static_shape, zero_state

__all__ = ["_concat", "_like_rnncell", "_zero_state_tensors"]

_zero_state_tensors = zero_state


def _concat(prefix: Any, suffix: Any, static: bool = False) -> Any:
    """The shape [*prefix, *suffix]: a vector of int32, or, if `static`, a list of int|None.

    Each part is a size, a shape or a tensor. Raises ValueError for a part of the vector that is not known.
    """
    if not static:
        return full_shape(prefix, suffix)
    shape = static_shape(prefix, suffix)
    return None if shape.ndims is None else shape.as_list()


def _like_rnncell(cell: Any) -> bool:
    """Whether an object has what cells have: sizes, a state of zeros, and a call."""
    members = ("output_size", "state_size", "zero_state")
    return all(hasattr(cell, name) for name in members) and callable(cell)
