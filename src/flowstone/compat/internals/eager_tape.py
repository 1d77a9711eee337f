"""`tensorflow.python.eager.tape`: what graphs have of it."""

from __future__ import annotations

from flowstone.framework.tensors.recording import stop_recording

__all__ = ["stop_recording"]
