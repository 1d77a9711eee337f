"""TensorFlow's modules ``gen_…_ops``: a function for each op, named in snake case; one module is all of them.

A leading underscore, which TensorFlow 1.4 puts before functions that a public one wraps, is left out.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.op_functions import function_names, positional, type_named


def __getattr__(name: str) -> Any:
    op_type = None if name.startswith("__") else type_named(name)
    if op_type is None:
        raise AttributeError(f"no op has the function {name!r}")
    function = globals()[name] = positional(op_type)
    return function


def __dir__() -> list[str]:
    return function_names()
