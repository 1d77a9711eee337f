"""The switches between TensorFlow 1 and TensorFlow 2, of which flowstone has one position: graphs.

What asks for TensorFlow 1 does nothing; what asks for TensorFlow 2 is an error, since a program that relies
on eager values or element-wise `==` would go wrong later and further away. Resource variables are the
exception: both kinds exist, and the default can be chosen.
"""

from __future__ import annotations

from flowstone.framework.tensors.scope import get_default_graph
from flowstone.ops.variables import variable_creation

__all__ = [
    "control_flow_v2_enabled",
    "disable_control_flow_v2",
    "disable_eager_execution",
    "disable_resource_variables",
    "disable_tensor_equality",
    "disable_v2_behavior",
    "disable_v2_tensorshape",
    "enable_control_flow_v2",
    "enable_eager_execution",
    "enable_resource_variables",
    "enable_tensor_equality",
    "enable_v2_behavior",
    "enable_v2_tensorshape",
    "executing_eagerly",
    "executing_eagerly_outside_functions",
    "resource_variables_enabled",
]


def disable_v2_behavior() -> None:
    """Does nothing but choose reference variables, which TensorFlow 1 has by default."""
    disable_resource_variables()


def disable_eager_execution() -> None:
    """Does nothing: operations always build a graph."""


def disable_tensor_equality() -> None:
    """Does nothing: `==` of tensors always compares identity."""


def disable_v2_tensorshape() -> None:
    """Does nothing: items of a shape are always `Dimension`s."""


def disable_control_flow_v2() -> None:
    """Does nothing: `cond` and `while_loop` always make Switch and Merge nodes."""


def enable_control_flow_v2() -> None:
    """Does nothing: the form of conditionals in the graph changes no result."""


def control_flow_v2_enabled() -> bool:
    """False: `cond` and `while_loop` make Switch and Merge nodes."""
    return False


def enable_eager_execution(
    config: object = None, device_policy: object = None, execution_mode: object = None
) -> None:
    """Raises RuntimeError: there is no eager execution."""
    raise RuntimeError("flowstone builds graphs and runs them in sessions: it has no eager execution")


def enable_v2_behavior() -> None:
    """Raises RuntimeError: there is no eager execution."""
    raise RuntimeError(
        "flowstone has the behaviour of TensorFlow 1 only: enable_v2_behavior() cannot be obeyed"
    )


def enable_tensor_equality() -> None:
    """Raises RuntimeError: `==` of tensors compares identity."""
    raise RuntimeError("flowstone compares tensors by identity: use tf.equal for the elements")


def enable_v2_tensorshape() -> None:
    """Raises RuntimeError: items of a shape are `Dimension`s."""
    raise RuntimeError("flowstone's shapes hold Dimensions, as in TensorFlow 1: use shape.as_list()")


def executing_eagerly() -> bool:
    """Whether operations are computed at once: in functions of `tf.py_function` alone."""
    return bool(get_default_graph().computes_at_once)


def executing_eagerly_outside_functions() -> bool:
    """As `executing_eagerly`."""
    return executing_eagerly()


def enable_resource_variables() -> None:
    """Makes resource variables the default of `Variable` and `get_variable`."""
    variable_creation.set_default_use_resource(True)


def disable_resource_variables() -> None:
    """Makes reference variables the default of `Variable` and `get_variable`, as at the start."""
    variable_creation.set_default_use_resource(False)


def resource_variables_enabled() -> bool:
    """Whether `Variable` and `get_variable` make resource variables by default."""
    return bool(variable_creation.default_use_resource())
