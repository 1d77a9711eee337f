"""`tf.contrib.boosted_trees.python.ops.batch_ops_utils`: one operation for what several resources are asked.

Handlers say which operations they need; those of one kind are made as one, which takes all the handles.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flowstone as tf

__all__ = ["ScheduledOp", "ScheduledStampedResourceOp", "run_handler_scheduled_ops"]


class ScheduledOp(metaclass=abc.ABCMeta):
    """An operation that is yet to be made, together with others of its key."""

    @abc.abstractmethod
    def batching_key(self) -> Any:
        """What the operations have in common that may be made together."""

    @abc.abstractmethod
    def batch_runner_fn(self) -> Callable[[Sequence[Any], Any], Sequence[Any]]:
        """The function of (operations, stamp) that makes them, and gives the results of each."""


class ScheduledStampedResourceOp(ScheduledOp):
    """An operation on one stamped resource.

    Args:
        resource_handle: the resource.
        op: the function of (handles, stamp, **lists) that makes the operation.
        **kwargs: what the lists have for this resource.
    """

    def __init__(self, resource_handle: Any, op: Callable[..., Any], **kwargs: Any) -> None:
        self.resource_handle, self.op, self.args = resource_handle, op, kwargs

    def batching_key(self) -> Any:
        """The function, and the names of its arguments."""
        return self.op, tuple(sorted(self.args))

    def batch_runner_fn(self) -> Callable[[Sequence[Any], Any], Sequence[Any]]:
        """What makes one operation for all the resources."""
        return _run_together


def _run_together(batch: Sequence[Any], stamp: Any) -> Sequence[Any]:
    lists = {name: [each.args[name] for each in batch] for name in batch[0].args}
    found = batch[0].op([each.resource_handle for each in batch], stamp, **lists)
    if isinstance(found, tf.Operation) or found is None:
        return [found] * len(batch)
    return list(zip(*found, strict=True))


def run_handler_scheduled_ops(
    per_handler_ops: Mapping[Any, Sequence[ScheduledOp]], stamp: Any, worker_device: Any
) -> dict[Any, list[Any]]:
    """Makes the operations of all handlers; the results of each, in the order of its operations.

    Args:
        per_handler_ops: operations by handler.
        stamp: of the resources, int64, [].
        worker_device: where their inputs are.
    """
    batches: dict[Any, list[tuple[Any, int, ScheduledOp]]] = {}
    found: dict[Any, list[Any]] = {handler: [None] * len(each) for handler, each in per_handler_ops.items()}
    for handler, scheduled in per_handler_ops.items():
        for place, each in enumerate(scheduled):
            batches.setdefault(each.batching_key(), []).append((handler, place, each))
    for batch in batches.values():
        results = batch[0][2].batch_runner_fn()([each for _, _, each in batch], stamp)
        for (handler, place, _), result in zip(batch, results, strict=True):
            found[handler][place] = result
    return found
