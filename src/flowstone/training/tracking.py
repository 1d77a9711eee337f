"""Objects whose attributes are checkpointed, as TensorFlow's modules `training.tracking` have them.

Which attributes those are is asked when a checkpoint is made, so that nothing is tracked before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from flowstone.training.object_graph import Root

__all__ = ["AutoTrackable", "NoDependency", "Trackable", "no_automatic_dependency_tracking"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Kept = TypeVar("_Kept")
AutoTrackable = Trackable = Root


def NoDependency(value: _Kept) -> _Kept:
    """The value itself: what an attribute that was given so holds."""
    return value


def no_automatic_dependency_tracking(method: _Function) -> _Function:
    """The method itself."""
    return method
