"""TensorFlow's modules ``gen_…_ops``: a function for each op, named in snake case; one module is all of them.

A leading underscore, which TensorFlow 1.4 puts before functions that a public one wraps, is left out. As in
TensorFlow 1.15, an op's own name is its function, too, and the functions `…_eager_fallback` are there to
refuse: they compute eager values.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from flowstone.framework.declarations.op_functions import (
    function_names,
    parameters,
    positional,
    public_types,
    type_named,
)
from flowstone.framework.declarations.operation import registry
from flowstone.framework.names.refusals import refused_function

_EAGER = "_eager_fallback"


def __getattr__(name: str) -> Any:
    if name.endswith(_EAGER):
        op_type = type_named(name.removesuffix(_EAGER))
        found = None if op_type is None else _refusal(name, op_type)
    else:
        op_type = _op_named(name)
        found = None if op_type is None else positional(op_type)
    if found is None:
        raise AttributeError(f"no op has the function {name!r}")
    globals()[name] = found
    return found


def _op_named(name: str) -> str | None:
    if name.startswith("__"):
        return None
    is_op = name[:1].isupper() and registry.get(name) is not None
    return name if is_op else type_named(name)


def _refusal(name: str, op_type: str) -> Callable[..., Any]:
    refused = refused_function(name, f"{name.removesuffix(_EAGER)}, which adds a node to the graph")
    context = Parameter("ctx", Parameter.POSITIONAL_OR_KEYWORD, default=None)
    refused.__dict__["__signature__"] = Signature([*parameters(registry[op_type]), context])
    return refused


def __dir__() -> list[str]:
    return sorted([*function_names(), *public_types()])
