"""The resources of boosted trees: names that their shared ones bear, and how they are registered."""

from __future__ import annotations

import re
from typing import Any

from flowstone.contrib.tensor_forest.forest_resources import forest_resource
from flowstone.ops.checkpoints.saveable_object import SaveableObject

__all__ = ["TrackedResource", "plain_name"]


def plain_name(name: str) -> str:
    """The letters and digits of a name: resources of features have theirs."""
    return re.sub("[^0-9a-zA-Z]+", "", name)


class TrackedResource:
    """A resource with what makes it, found by what initialises resources, and by Savers."""

    def __init__(self, handle: Any, create: Any, is_initialized: Any, saveable: SaveableObject) -> None:
        self._handle, self._create, self._ready = handle, create, is_initialized
        self.saveable = saveable
        forest_resource(handle, create, is_initialized, saveable)

    @property
    def resource_handle(self) -> Any:
        """The handle: resource, []."""
        return self._handle

    @property
    def initializer(self) -> Any:
        """The operation that makes the resource."""
        return self._create

    def is_initialized(self) -> Any:
        """Whether it has been made: bool, []."""
        return self._ready
