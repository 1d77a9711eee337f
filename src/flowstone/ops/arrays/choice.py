"""Choosing elements by a condition: `where` in its two forms (ops Where, Select and SelectV2)."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor

__all__ = ["where", "where_v2"]


def _choose(operation: str, condition: Any, x: Any, y: Any, name: str | None) -> Tensor:
    if x is None and y is None:
        with get_default_graph().name_scope(name or "Where") as scope:
            return F.Where(convert_to_tensor(condition, name="condition"), name=scope)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return getattr(F, operation)(condition, x, y, name=name)  # type: ignore[no-any-return]


@dispatched("where")
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """`x` where `condition` is true and `y` elsewhere; without both, the places where it is true.

    `x` and `y` have one shape, that of the result; `condition` (bool) has it too, or is a vector of one item
    a row. Without `x` and `y` the result is int64 of shape [number of true elements, rank].

    Raises ValueError if only one of `x` and `y` is given or shapes contradict each other.
    """
    return _choose("Select", condition, x, y, name)


def where_v2(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """`where` whose `condition`, `x` and `y` are broadcast to a common shape.

    Raises ValueError if only one of `x` and `y` is given or shapes contradict each other.
    """
    return _choose("SelectV2", condition, x, y, name)
