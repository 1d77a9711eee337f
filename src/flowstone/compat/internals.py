"""Functions that only TensorFlow's internal modules have and that programs import from there all the same.

`module_paths` says from which of those modules each is reached.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import flowstone as tf
from flowstone.layers.arguments import smart_cond as smart_cond
from flowstone.layers.arguments import smart_constant_value as smart_constant_value

Function = TypeVar("Function", bound=Callable[..., Any])


# tensorflow.python.ops.control_flow_ops, .framework.smart_cond, .layers.utils


def with_dependencies(dependencies: Sequence[Any], output_tensor: Any, name: str | None = None) -> Any:
    """`output_tensor`, which is not there before all `dependencies` (operations or tensors) have run."""
    name_scope = tf.name_scope(name, "control_dependency", [*dependencies, output_tensor])
    with name_scope as scope, tf.control_dependencies(dependencies):
        return tf.identity(output_tensor, name=scope)


def constant_value(tensor: Any, partial: bool = False) -> Any:
    """The value of a tensor as far as it is known without running a step: an array, or None."""
    return tf.get_static_value(tensor, partial)


# tensorflow.python.util.*


def remove_undocumented(
    module_name: str, allowed_exception_list: Any = None, doc_string_modules: Any = None
) -> None:
    """Does nothing: a program's own modules keep their names."""


def deprecated(date: str | None, instructions: str, warn_once: bool = True) -> Callable[[Function], Function]:
    """A decorator that leaves the function as it is."""
    return lambda function: function


def deprecated_args(
    date: str | None, instructions: str, *names: Any, **options: Any
) -> Callable[[Function], Function]:
    """A decorator that leaves the function as it is."""
    return lambda function: function


def deprecated_arg_values(
    date: str | None, instructions: str, warn_once: bool = True, **values: Any
) -> Callable[[Function], Function]:
    """A decorator that leaves the function as it is."""
    return lambda function: function


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """A context without deprecation warnings; flowstone issues none."""
    yield


def make_decorator(
    target: Callable[..., Any],
    decorator_func: Callable[..., Any],
    decorator_name: str | None = None,
    decorator_doc: str = "",
    decorator_argspec: Any = None,
) -> Callable[..., Any]:
    """`decorator_func`, made to look like the `target` that it wraps."""
    for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
        if hasattr(target, attribute):
            setattr(decorator_func, attribute, getattr(target, attribute))
    decorator_func.__dict__["__wrapped__"] = target
    return decorator_func


def unwrap(decorated: Any) -> tuple[list[Any], Any]:
    """The decorators around a function, outermost first, and the function within."""
    decorators = []
    while hasattr(decorated, "__wrapped__"):
        decorators.append(decorated)
        decorated = decorated.__wrapped__
    return decorators, decorated


def getargspec(function: Callable[..., Any]) -> inspect.FullArgSpec:
    """The arguments of a function, decorated or not."""
    return inspect.getfullargspec(inspect.unwrap(function))


# tensorflow.python.eager.context, tensorflow.python.tf2


def enabled() -> bool:
    """False: the behaviour is TensorFlow 1's."""
    return False


def in_graph_mode() -> bool:
    """True: operations build a graph."""
    return True


def in_eager_mode() -> bool:
    """False: operations build a graph."""
    return False


class Context:
    """What `tensorflow.python.eager.context.context()` returns, as far as graphs go."""

    def executing_eagerly(self) -> bool:
        """False: operations build a graph."""
        return False

    def in_graph_mode(self) -> bool:
        """True: operations build a graph."""
        return True

    def in_eager_mode(self) -> bool:
        """False: operations build a graph."""
        return False


def context() -> Context:
    """The state of eager execution: it is off."""
    return Context()
