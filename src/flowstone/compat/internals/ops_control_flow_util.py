"""`tensorflow.python.ops.control_flow_util`: questions about where nodes are built."""

from __future__ import annotations

from typing import Any

__all__ = ["GraphOrParentsInXlaContext", "IsInXLAContext"]


def GraphOrParentsInXlaContext(graph: Any) -> bool:
    """False: there is no context of TensorFlow's compiler."""
    return False


def IsInXLAContext(op: Any) -> bool:
    """False: there is no context of TensorFlow's compiler."""
    return False
