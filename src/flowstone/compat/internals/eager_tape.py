"""`tensorflow.python.eager.tape`: what graphs need of the record of eager operations, which is nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["stop_recording"]


@contextmanager
def stop_recording() -> Iterator[None]:
    """Changes nothing: no operation of a graph is recorded."""
    yield
