"""Resources that dataset ops of later versions take and that no container names: caches, sources of seeds.

Such a resource lives as long as a dataset or an edge holds it. The second output of an op that makes one is a
value that the op which deletes it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.kernel import CPU, Environment
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node

__all__: list[str] = []


def resource_op(name: str, make: Callable[..., Any], inputs: str = "", has_deleter: bool = False) -> None:
    """Declares the op `name`, whose resource is ``make(*inputs)``."""
    deleter = ", deleter: variant" if has_deleter else ""
    declaration = op(name, f"{inputs} -> handle: resource{deleter}", "", stateful=True, capturable=False)
    declaration.infer(lambda node: [(), ()] if has_deleter else ())
    declaration.not_differentiable()

    @declaration.kernel(CPU)
    def _(node: Node, env: Environment) -> Callable[..., Any]:
        if not has_deleter:
            return make

        def pair(*values: Any) -> tuple[Any, Any]:
            resource = make(*values)
            return resource, resource

        return pair


def deleting_op(name: str) -> None:
    """Declares the op `name`, which ends a resource: nothing to do, as the last reference does it."""
    declaration = op(name, "handle: resource, deleter: variant ->", "", stateful=True, capturable=False)
    declaration.infer(lambda node: [])
    declaration.not_differentiable()

    @declaration.kernel(CPU)
    def _(node: Node, env: Environment) -> Callable[..., None]:
        return lambda handle, deleter: None
