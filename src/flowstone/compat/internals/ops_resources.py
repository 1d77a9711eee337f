"""`tensorflow.python.ops.resources`: tables, iterators and the like, which are initialised before use."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import flowstone as tf

__all__ = [
    "initialize_resources",
    "local_resources",
    "register_resource",
    "report_uninitialized_resources",
    "shared_resources",
]

_Resource = namedtuple("_Resource", ["handle", "create", "is_initialized"])


def register_resource(handle: Any, create_op: Any, is_initialized_op: Any, is_shared: bool = True) -> None:
    """Adds a resource to the collection RESOURCES, or to LOCAL_RESOURCES if it is not shared.

    Args:
        handle: the resource's tensor; the operation that makes it names the resource.
        create_op: the operation that initialises it.
        is_initialized_op: a scalar tensor of bool: whether it has been initialised.
        is_shared: whether other sessions see it.
    """
    key = tf.GraphKeys.RESOURCES if is_shared else tf.GraphKeys.LOCAL_RESOURCES
    tf.add_to_collection(key, _Resource(handle, create_op, is_initialized_op))


def shared_resources() -> list[Any]:
    """The resources of the collection RESOURCES."""
    return tf.get_collection(tf.GraphKeys.RESOURCES)


def local_resources() -> list[Any]:
    """The resources of the collection LOCAL_RESOURCES."""
    return tf.get_collection(tf.GraphKeys.LOCAL_RESOURCES)


def initialize_resources(resource_list: Any, name: str = "init") -> Any:
    """An operation that initialises the resources; one that does nothing for an empty list."""
    if resource_list:
        return tf.group(*[each.create for each in resource_list], name=name)
    return tf.no_op(name=name)


def report_uninitialized_resources(
    resource_list: Any = None, name: str = "report_uninitialized_resources"
) -> Any:
    """A vector of the names of those resources that are not initialised.

    Args:
        resource_list: resources; None for all, shared and local ones.
        name: of the operation.
    """
    resources = shared_resources() + local_resources() if resource_list is None else resource_list
    with tf.name_scope(name), tf.device("/cpu:0"):
        if not resources:
            return tf.constant([], dtype=tf.string)
        ready = tf.stack([each.is_initialized for each in resources])
        names = tf.constant([each.handle.name for each in resources])
        return tf.boolean_mask(names, tf.logical_not(ready))
