"""How the values of replicas become one."""

from __future__ import annotations

import enum
from typing import Any

__all__ = ["ReduceOp", "reduce_op_of"]


class ReduceOp(enum.Enum):
    """How the values of replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"


def reduce_op_of(given: Any) -> ReduceOp:
    """The member that `given`, it or its name in any case, means. ValueError for others."""
    try:
        return ReduceOp[str(getattr(given, "name", given)).upper()]
    except KeyError:
        raise ValueError(f"values are reduced by their sum or their mean, not by {given!r}") from None
