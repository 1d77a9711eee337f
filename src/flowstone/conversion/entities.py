"""`tf.autograph`: conversion by name. The functions that it makes add to the graph where they are called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType, MethodType, SimpleNamespace
from typing import Any

from flowstone.conversion import converted_functions
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.control.program_order import order_effects

__all__ = ["Feature", "experimental", "set_loop_options", "to_code", "to_graph"]


class Feature:
    """What `experimental_optional_features` names: EQUALITY_OPERATORS, or ALL, has ``==`` of tensors compare
    their elements, where it else asks whether they are the same tensor. The others are always on.
    """

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All names."""
        return tuple(name for name in vars(cls) if name.isupper())

    @classmethod
    def all_but(cls, exclude: Any) -> tuple[str, ...]:
        """All names but some."""
        left_out = exclude if isinstance(exclude, (list, tuple, set)) else (exclude,)
        return tuple(name for name in cls.all() if name not in left_out)


def to_graph(
    entity: Any,
    recursive: bool = True,
    arg_values: Any = None,
    arg_types: Any = None,
    experimental_optional_features: Any = None,
) -> Any:
    """The converted function, or class of converted methods.

    Args:
        entity: a Python function, method or class.
        recursive: whether what it calls is converted too.
        arg_values, arg_types: accepted, and say nothing here.
        experimental_optional_features: a `Feature`, or several.

    Effects happen in the order of the program, before what the function returns. NotImplementedError for
    other things, `NoSourceError` for a function whose source is not there.
    """
    if inspect.isclass(entity):
        return _converted_class(entity, recursive, experimental_optional_features)
    function = _function_of(entity)
    inner: Any = converted_functions.converted_function(function, recursive, experimental_optional_features)
    if isinstance(entity, MethodType):
        inner = MethodType(inner, entity.__self__)
    return _in_order(inner, function)


def _in_order(inner: Callable[..., Any], function: FunctionType) -> Callable[..., Any]:
    @functools.wraps(function)
    def ordered(*args: Any, **kwargs: Any) -> Any:
        graph = get_default_graph()
        before = len(graph.get_operations())
        result = inner(*args, **kwargs)
        if graph.building_function:
            return result  # ordered with the rest of the function
        return _after(
            order_effects(graph.get_operations()[before:], graph._scopes.control_flow_context), result
        )

    ordered.__name__ = ordered.__qualname__ = f"tf__{function.__name__.strip('<>')}"
    return ordered


def _after(effects: list[Any], result: Any) -> Any:
    """The result, whose tensors wait for the effects."""
    if not effects:
        return result
    with get_default_graph().control_dependencies(effects):
        return nest.map_structure(lambda leaf: F.Identity(leaf) if isinstance(leaf, Tensor) else leaf, result)


def _function_of(entity: Any) -> FunctionType:
    function = getattr(entity, "python_function", entity)
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType):
        raise NotImplementedError(
            f'cannot convert entity "{entity}": object conversion is not yet supported.'
        )
    return function


def _converted_class(entity: type, recursive: bool, options: Any) -> type:
    methods = {
        name: converted_functions.converted_function(method, recursive, options)
        for base in reversed(entity.__mro__[:-1])
        for name, method in vars(base).items()
        if isinstance(method, FunctionType) and not converted_functions.is_left_alone(method)
    }
    return type(entity)(f"Tf{entity.__name__}", (entity,), methods)


def to_code(
    entity: Any,
    recursive: bool = True,
    arg_values: Any = None,
    arg_types: Any = None,
    indentation: str = "  ",
    experimental_optional_features: Any = None,
) -> str:
    """The source of what `to_graph` makes."""
    return converted_functions.to_code(_function_of(entity))


def set_loop_options(
    parallel_iterations: Any = None,
    back_prop: Any = None,
    swap_memory: Any = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> None:
    """As the first statement of a loop's body: the arguments of the `tf.while_loop` that the loop becomes.

    `shape_invariants`: pairs of a variable and its shape. Elsewhere it does nothing.
    """


experimental = SimpleNamespace(
    Feature=Feature, do_not_convert=converted_functions.do_not_convert, set_loop_options=set_loop_options
)
"""`tf.autograph.experimental`."""
