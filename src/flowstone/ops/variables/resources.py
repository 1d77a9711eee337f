"""Resources other than variables that are initialised before use: ensembles of trees, and what programs
register.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import GraphKeys, Operation
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.masks import boolean_mask
from flowstone.ops.control.control_flow import group, no_op

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
    key = GraphKeys.RESOURCES if is_shared else GraphKeys.LOCAL_RESOURCES
    get_default_graph().add_to_collection(key, _Resource(handle, create_op, is_initialized_op))


def shared_resources() -> list[Any]:
    """The resources of the collection RESOURCES."""
    return list(get_default_graph().get_collection(GraphKeys.RESOURCES))


def local_resources() -> list[Any]:
    """The resources of the collection LOCAL_RESOURCES."""
    return list(get_default_graph().get_collection(GraphKeys.LOCAL_RESOURCES))


def initialize_resources(resource_list: Sequence[Any], name: str = "init") -> Operation:
    """An operation that initialises the resources; one that does nothing for an empty list."""
    if resource_list:
        return group(*[each.create for each in resource_list], name=name)
    return no_op(name=name)


def report_uninitialized_resources(
    resource_list: Sequence[Any] | None = None, name: str = "report_uninitialized_resources"
) -> Tensor:
    """A vector of the names of those resources that are not initialised.

    Args:
        resource_list: resources; None for all, shared and local ones.
        name: of the operation.
    """
    resources = shared_resources() + local_resources() if resource_list is None else resource_list
    graph = get_default_graph()
    with graph.name_scope(name), graph.device("/cpu:0"):
        if not resources:
            return constant([], dtype=dtypes.string)
        missing = F.LogicalNot(F.Pack([each.is_initialized for each in resources]))
        return boolean_mask(constant([each.handle.name for each in resources]), missing)
