"""The intervals that numbers are in."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F

__all__ = ["bucketize"]


def bucketize(input_tensor: Any, boundaries: Any, name: str | None = None) -> Any:
    """The number, int32, of the interval between `boundaries`, a growing list, in which each element is.

    Interval 0 is below the first boundary; a number that is a boundary is above it.
    """
    return F.Bucketize(input_tensor, boundaries=list(boundaries), name=name)
