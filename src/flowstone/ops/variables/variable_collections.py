"""The collections of a graph's variables, and operations on all of them: initialise, ask which are not
initialised.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import GraphKeys, Operation
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.masks import boolean_mask

__all__ = [
    "all_variables",
    "assert_variables_initialized",
    "global_variables",
    "global_variables_initializer",
    "initialize_all_variables",
    "initialize_local_variables",
    "initialize_variables",
    "is_variable_initialized",
    "local_variables",
    "local_variables_initializer",
    "model_variables",
    "moving_average_variables",
    "report_uninitialized_variables",
    "trainable_variables",
    "variables_initializer",
]


def global_variables(scope: str | None = None) -> list[Any]:
    """The default graph's variables that are shared between machines; `scope`: a regular expression for the
    names.
    """
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def all_variables() -> list[Any]:
    """The older name of `global_variables`."""
    return global_variables()


def local_variables(scope: str | None = None) -> list[Any]:
    """The variables of this process alone."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Any]:
    """The variables that a model uses for inference."""
    return get_default_graph().get_collection(GraphKeys.MODEL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """The variables that optimisers change by default."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """The variables that keep moving averages."""
    return get_default_graph().get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def variables_initializer(var_list: Iterable[Any], name: str = "init") -> Operation:
    """An operation that runs the initializers of these variables (one that does nothing for none)."""
    initializers = [variable.initializer for variable in var_list or ()]
    graph = get_default_graph()
    with graph.control_dependencies(initializers):
        return F.NoOp.operation(name=name)


def global_variables_initializer() -> Operation:
    """An operation that initialises all global variables."""
    return variables_initializer(global_variables())


def local_variables_initializer() -> Operation:
    """An operation that initialises all local variables."""
    return variables_initializer(local_variables())


def initialize_variables(var_list: Iterable[Any], name: str = "init") -> Operation:
    """The older name of `variables_initializer`."""
    return variables_initializer(var_list, name=name)


def initialize_all_variables() -> Operation:
    """The older name of `global_variables_initializer`."""
    return global_variables_initializer()


def initialize_local_variables() -> Operation:
    """The older name of `local_variables_initializer`."""
    return local_variables_initializer()


def is_variable_initialized(variable: Any) -> Tensor:
    """A bool scalar: whether the variable (or reference tensor) has been assigned a value."""
    if variable.dtype.is_ref:
        return F.IsVariableInitialized(variable)
    return variable.is_initialized()  # type: ignore[no-any-return]


def assert_variables_initialized(var_list: Iterable[Any] | None = None) -> Tensor | None:
    """A tensor whose evaluation fails with FailedPreconditionError unless all these variables are
    initialised.

    `var_list`: by default the global and the local variables. None if there is no variable.
    """
    variables = _chosen(var_list)
    if not variables:
        return None
    graph = get_default_graph()
    ranks = []
    for variable in variables:
        with graph.colocate_with(variable.op):
            value = F.PlaceholderWithDefault(variable, shape=None)  # of a known rank no value would be read
            ranks.append(F.Rank(value))
    return ranks[0] if len(ranks) == 1 else F.Pack(ranks, name="stack")


def _chosen(var_list: Iterable[Any] | None) -> list[Any]:
    if var_list is not None:
        return list(var_list)
    found = global_variables() + local_variables()
    if found:
        return found
    variable_types = ("Variable", "VariableV2", "AutoReloadVariable")
    return [op.outputs[0] for op in get_default_graph().get_operations() if op.type in variable_types]


def report_uninitialized_variables(
    var_list: Iterable[Any] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """A string vector: the names of those variables that are not initialised.

    `var_list`: by default the global and the local variables.
    """
    variables = _chosen(var_list)
    graph = get_default_graph()
    with graph.name_scope(name):
        flags = [is_variable_initialized(variable) for variable in variables]
        with graph.device("/cpu:0"):
            if not flags:
                return constant([], dtype=dtypes.string)
            missing = F.LogicalNot(F.Pack(flags, name="stack"))
            return boolean_mask(constant([variable.op.name for variable in variables]), missing)
