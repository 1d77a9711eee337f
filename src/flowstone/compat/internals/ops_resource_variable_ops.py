"""`tensorflow.python.ops.resource_variable_ops`: questions of variables."""

from __future__ import annotations

from typing import Any

from flowstone.ops.variables.resource_variable import ResourceVariable

__all__ = ["is_resource_variable"]


def is_resource_variable(var: Any) -> bool:
    """Whether it is a resource variable, or is to be taken for one."""
    return isinstance(var, ResourceVariable) or hasattr(var, "_should_act_as_resource_variable")
