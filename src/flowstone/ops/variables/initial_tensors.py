"""The initial value of a variable: a tensor made before its node, outside control flow and near it."""

from __future__ import annotations

import contextlib
from typing import Any

from flowstone.framework.graphs.graph import Graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.dtypes import DType

__all__: list[str] = []


class _Placed:
    """Stands for a variable's node, before it exists, in the colocation of its initial value."""

    device = ""

    def __init__(self, name: str) -> None:
        self._groups = [b"loc:@" + name.encode()]

    def colocation_groups(self) -> list[bytes]:
        """The colocation class of the node to be."""
        return self._groups


def colocated_with_name(graph: Graph, name: str, **fields: Any) -> contextlib.AbstractContextManager[None]:
    """Within the context operations carry the colocation class of the node `name`, which need not exist yet.

    An enclosing colocation scope wins: slots of a variable live where it does, under its class alone.
    """
    colocation = graph._scopes.colocation or (_Placed(name),)
    return graph._scopes.having(colocation=colocation, **fields)


def initial_tensor(graph: Graph, name: str, initial_value: Any, dtype: DType | None) -> Tensor:
    """The initial value made in the name scope ``Initializer``, on no device, colocated with the variable
    `name`.
    """
    with graph.name_scope("Initializer"), colocated_with_name(graph, name, devices=()):
        value = initial_value() if callable(initial_value) else initial_value
        return convert_to_tensor(value, dtype, name="initial_value")


def check_outside_control_flow(name: str, value: Tensor) -> None:
    """Raises ValueError if the initial value was made inside a conditional or loop."""
    if value.op._get_control_flow_context() is not None:
        raise ValueError(
            f"Initializer for variable {name} is from inside a control-flow construct, such as a "
            "loop or conditional. "
            "When creating a variable inside a loop or conditional, use a lambda as the initializer."
        )
