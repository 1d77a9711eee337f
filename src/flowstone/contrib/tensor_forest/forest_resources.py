"""The resources of trees and forests: how they are made, registered to be initialised, and saved."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import flowstone as tf
from flowstone.ops.checkpoints.saveable_object import SaveableObject, SaveSpec

__all__ = ["ForestSavable", "forest_resource"]

_Resource = namedtuple("_Resource", ["handle", "create", "is_initialized"])


class ForestSavable(SaveableObject):
    """A resource that is saved as tensors; restoring makes it first.

    Args:
        handle: the resource.
        serialized: what is saved, with the names in checkpoints.
        create_op: makes the resource.
        name: of the object.
        deserialize: the operation that puts what was saved, in this order, in place of what is there.
    """

    def __init__(
        self,
        handle: Any,
        serialized: Iterable[tuple[Any, str]],
        create_op: Any,
        name: str,
        deserialize: Callable[..., Any],
    ) -> None:
        super().__init__(handle, [SaveSpec(tensor, "", key) for tensor, key in serialized], name)
        self._create_op, self._deserialize = create_op, deserialize

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Sequence[Any] | None) -> Any:
        """The operation that puts what was saved in place of what is there."""
        with tf.control_dependencies([self._create_op]):
            return self._deserialize(*restored_tensors)


def forest_resource(handle: Any, create: Any, is_initialized: Any, savable: SaveableObject) -> Any:
    """The handle; the resource is found by what initialises resources, and by Savers."""
    tf.add_to_collection(tf.GraphKeys.RESOURCES, _Resource(handle, create, is_initialized))
    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, savable)
    return handle
