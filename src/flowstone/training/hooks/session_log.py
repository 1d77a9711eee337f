"""What logs say of sessions: that one began, saved a checkpoint, or ended."""

from __future__ import annotations

from typing import Any

from flowstone.framework.types.tensor_proto import messages

__all__ = ["session_log"]


def session_log(status: str, checkpoint_path: str = "") -> Any:
    """A SessionLog message: `status` is ``"START"``, ``"STOP"`` or ``"CHECKPOINT"``."""
    message = messages("event_pb2").SessionLog
    return message(status=getattr(message, status), checkpoint_path=checkpoint_path)
