"""`flowstone.autograph`: marks of functions whose Python is not converted; here none is."""

from types import SimpleNamespace as _SimpleNamespace
from typing import Any

from flowstone.framework.refusals import refused_function

__all__ = ["experimental", "set_verbosity", "to_code", "to_graph", "trace"]

_INSTEAD = "tf.cond and tf.while_loop in the Python function itself"
to_graph = refused_function("tf.autograph.to_graph", _INSTEAD)
to_code = refused_function("tf.autograph.to_code", _INSTEAD)


def do_not_convert(func: Any = None) -> Any:
    """The function itself; without one, a decorator that returns what it is given."""
    return func if func is not None else lambda function: function


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Changes nothing: no Python is converted, so there is nothing to say about it."""


def trace(*args: Any) -> None:
    """Prints its arguments while the graph is built."""
    print(*args)


experimental = _SimpleNamespace(
    do_not_convert=do_not_convert,
    set_loop_options=refused_function(
        "tf.autograph.experimental.set_loop_options", "tf.while_loop's arguments"
    ),
)
"""`do_not_convert`, and what conversion would need."""
