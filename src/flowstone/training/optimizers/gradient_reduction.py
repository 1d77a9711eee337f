"""What is done to gradients before an optimiser applies them, such as adding up those of replicas."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["reduced", "reducing_gradients"]

Pairs = list[tuple[Any, Any]]  # gradients and variables


class _Reductions(threading.local):
    def __init__(self) -> None:
        self.stack: list[Callable[[Pairs], Pairs]] = []


_reductions = _Reductions()


@contextmanager
def reducing_gradients(function: Callable[[Pairs], Pairs]) -> Iterator[None]:
    """Within, optimisers apply what `function` gives for the pairs of gradients and variables."""
    _reductions.stack.append(function)
    try:
        yield
    finally:
        _reductions.stack.pop()


def reduced(pairs: Pairs) -> Pairs:
    """The pairs as they are to be applied."""
    return _reductions.stack[-1](pairs) if _reductions.stack else pairs
