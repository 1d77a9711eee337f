"""In which order the axes of tensors come: what a scope asks for, and what two tensors have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

__all__ = ["AxisOrderError", "axis_order_scope", "get_axis_order", "merged_order", "required_order"]

_axis_orders: list[list[str] | None] = [None]


class AxisOrderError(ValueError):
    """The axes of a tensor do not come in the order that is asked for, or two tensors have no common one."""


@contextmanager
def axis_order_scope(axis_order: Sequence[str] | None = None) -> Iterator[None]:
    """Within, tensors are aligned by this order of the names of axes, and have to have their axes so."""
    _axis_orders.append(None if axis_order is None else list(axis_order))
    try:
        yield
    finally:
        _axis_orders.pop()


def get_axis_order() -> list[str] | None:
    """The order of the innermost `axis_order_scope`; None outside."""
    return _axis_orders[-1]


def required_order(axis_order: Sequence[str] | None) -> list[str]:
    """`axis_order`, by default the scope's; AxisOrderError where there is neither."""
    order = get_axis_order() if axis_order is None else list(axis_order)
    if order is None:
        raise AxisOrderError(
            "an order of axes is needed, as the argument axis_order or by an axis_order_scope"
        )
    return order


def merged_order(first: Sequence[str], second: Sequence[str]) -> list[str] | None:
    """All names once, in an order that both lists have; None if there is none."""
    left, right, merged = list(first), list(second), list[str]()
    while left and right:
        if left[0] == right[0]:
            merged.append(left.pop(0))
            right.pop(0)
        elif left[0] not in right:
            merged.append(left.pop(0))
        elif right[0] not in left:
            merged.append(right.pop(0))
        else:
            return None
    return merged + left + right
