"""`flowstone.autograph`: Python's control flow on tensors as nodes; see the room `conversion`."""

from __future__ import annotations

from typing import Any

from flowstone.framework.names.late_names import late_names as _late_names

__getattr__, __dir__ = _late_names(
    globals(),
    {
        "flowstone.conversion.converted_functions": "do_not_convert",
        "flowstone.conversion.entities": "experimental to_code to_graph",
    },
)


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """How much is said about conversions; here only what could not be converted is, as a warning."""


def trace(*args: Any) -> None:
    """Prints its arguments while the graph is built."""
    print(*args)
