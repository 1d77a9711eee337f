"""The resources of boosted trees: names that their shared ones bear, and how they are registered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib.tensor_forest.forest_resources import forest_resource
from flowstone.ops.checkpoints.saveable_object import SaveableObject, SaveSpec

__all__ = ["StampedSaveable", "TrackedResource", "plain_name"]


def plain_name(name: str) -> str:
    """The letters and digits of a name: resources of features have theirs."""
    return re.sub("[^0-9a-zA-Z]+", "", name)


class StampedSaveable(SaveableObject):
    """A resource that is saved as the outputs of an operation; restoring makes it first.

    Args:
        handle: the resource.
        create_op: makes it.
        serialized: the tensors that are saved, and the ends of their names.
        name: the start of their names; `own_name` that of the object.
    """

    def __init__(
        self, handle: Any, create_op: Any, serialized: Sequence[tuple[Any, str]], name: str, own_name: str
    ) -> None:
        specs = [SaveSpec(tensor, "", name + end) for tensor, end in serialized]
        super().__init__(handle, specs, own_name)
        self._create_op = create_op

    def _deserialize(self, *restored: Any) -> Any:
        raise NotImplementedError

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Sequence[Any] | None) -> Any:
        """The operation that puts what was saved in place of what is there."""
        with tf.control_dependencies([self._create_op]):
            return self._deserialize(*restored_tensors)


class TrackedResource:
    """A resource with what makes it, found by what initialises resources, and by Savers."""

    def __init__(self, handle: Any, create: Any, is_initialized: Any, saveable: SaveableObject) -> None:
        self._handle, self._create, self._ready = handle, create, is_initialized
        self.saveable = saveable
        forest_resource(handle, create, is_initialized, saveable)  # type: ignore[arg-type]

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
