"""Objects whose attributes are checkpointed, as TensorFlow's modules `training.tracking` have them.

Which attributes those are is asked when a checkpoint is made, so that nothing is tracked before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from flowstone.ops.lookup.assets import Asset as TrackableAsset
from flowstone.training.checkpoints.object_graph import Root

__all__ = [
    "AutoTrackable",
    "NoDependency",
    "Trackable",
    "TrackableAsset",
    "TrackableReference",
    "no_automatic_dependency_tracking",
    "no_automatic_dependency_tracking_scope",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Kept = TypeVar("_Kept")
AutoTrackable = Trackable = Root


def NoDependency(value: _Kept) -> _Kept:
    """The value itself: what an attribute that was given so holds."""
    return value


def no_automatic_dependency_tracking(method: _Function) -> _Function:
    """The method itself."""
    return method


@contextmanager
def no_automatic_dependency_tracking_scope(obj: Any) -> Iterator[None]:
    """Attributes that are set within are tracked as all others are."""
    yield


class TrackableReference(NamedTuple):
    """An object that another one holds, and the name by which it does."""

    name: str
    ref: Any
