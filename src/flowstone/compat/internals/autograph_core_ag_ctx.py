"""`tensorflow.python.autograph.core.ag_ctx`: is code being converted? A thread has a stack."""

from __future__ import annotations

import enum
import threading
from typing import Any

__all__ = ["ControlStatusCtx", "Status", "control_status_ctx"]


class Status(enum.Enum):
    """What a context says of conversion."""

    UNSPECIFIED = 0
    ENABLED = 1
    DISABLED = 2


class ControlStatusCtx:
    """A context, for `tf_convert`; `status` and `options` are what it was made with."""

    def __init__(self, status: Status, options: Any = None) -> None:
        self.status, self.options = status, options

    def __enter__(self) -> ControlStatusCtx:
        _stacks.items.append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _stacks.items.pop()


class _Stacks(threading.local):
    def __init__(self) -> None:
        self.items = [ControlStatusCtx(Status.UNSPECIFIED)]


_stacks = _Stacks()


def control_status_ctx() -> ControlStatusCtx:
    """The innermost context of this thread."""
    return _stacks.items[-1]
