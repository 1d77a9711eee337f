"""What is done to gradients before an optimiser applies them, such as adding up those of replicas."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flowstone.framework.tensors.scope import get_default_graph
from flowstone.ops.variables.replicas import current_replica

__all__ = ["reduced", "reducing_gradients", "scaled_loss"]

Pairs = list[tuple[Any, Any]]  # gradients and variables


class _Reductions(threading.local):
    def __init__(self) -> None:
        self.stack: list[Callable[[Pairs], Pairs]] = []


reductions = _Reductions()


@contextmanager
def reducing_gradients(function: Callable[[Pairs], Pairs]) -> Iterator[None]:
    """Within, optimisers apply what `function` gives for the pairs of gradients and variables."""
    reductions.stack.append(function)
    try:
        yield
    finally:
        reductions.stack.pop()


def reduced(pairs: Pairs) -> Pairs:
    """The pairs as they are to be applied."""
    return reductions.stack[-1](pairs) if reductions.stack else pairs


def scaled_loss(loss: Any) -> Any:
    """The loss of which gradients are taken: where a strategy's replicas apply the sum of their gradients
    although their losses become one by the mean, a replica's part of that mean."""
    replica = current_replica()
    if replica is None:
        return loss
    parts = replica.strategy.parts_of_loss()
    get_default_graph().scales_losses = parts > 1
    return loss if parts == 1 else loss * (1.0 / parts)
