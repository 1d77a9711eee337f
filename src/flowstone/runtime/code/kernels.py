"""Makes the kernel of a node by its declaration's factory for a device."""

from __future__ import annotations

from typing import Any

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.runtime.code.failures import located


def make_kernel(node: PlanNode, environment: Environment, fallback: str = "") -> Any:
    """The kernel for the environment's device type or, if there is none, for the type `fallback`.

    Raises InvalidArgumentError if there is neither; errors of the factory get the node's name and the user's
    line.
    """
    kernels = node.declaration.kernels
    factory = kernels.get(environment.device_type) or kernels.get(fallback)
    if factory is None:
        raise errors.InvalidArgumentError(
            lambda: node.origin.node_def,
            node.origin,
            f"No kernel of op {node.type} for device type {environment.device_type} (node {node.name})",
        )
    try:
        return factory(node, environment)
    except Exception as error:
        raise located(error, node) from error
