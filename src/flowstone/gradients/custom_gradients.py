"""`tf.custom_gradient`: a Python function with its own gradient.

The function's results and arguments pass through one ``IdentityN`` node, whose gradient function is
`grad_fn`. No gradient flows into the nodes that the function added."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import convert_to_tensor
from flowstone.gradients.registration import register

_numbers = itertools.count(1)


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for ``f(*tensors)`` that returns ``(results, grad_fn)``; gradients with respect to its
    results come from `grad_fn`.

    ``grad_fn(*dys)`` gives a gradient (or None) for each argument; if `f` uses resource variables,
    ``grad_fn(*dys, variables=[...])`` gives ``(gradients of arguments, gradients of variables)``. Raises
    ValueError for keyword arguments of the call and for gradients of wrong number, TypeError if `f` uses
    variables but `grad_fn` takes none."""

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise ValueError(
                "The custom_gradient decorator currently supports keywords arguments only "
                "when eager execution is enabled."
            )
        return _traced(f, args)

    return decorated


def _traced(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    arguments = [convert_to_tensor(x) for x in nest.flatten(args)]
    graph = arguments[0].graph if arguments else get_default_graph()
    before = graph.version
    result, grad_fn = f(*nest.pack_sequence_as(list(args), arguments))
    results = [convert_to_tensor(x) for x in nest.flatten(result)]
    variables = _variables_used(graph, before, arguments)
    for value in results:
        F.Identity(value)
    originals = results + arguments
    name = f"CustomGradient-{next(_numbers)}"
    register(name, _gradient(grad_fn, len(results), len(arguments), variables))
    with graph.gradient_override_map({"IdentityN": name}):
        passed = F.IdentityN.several(originals + variables)
    return nest.pack_sequence_as(result, passed[: len(results)])


def _variables_used(graph: Any, before: int, arguments: list[Any]) -> list[Any]:
    """The trainable resource variables that the new operations read."""
    by_handle = {getattr(v, "handle", None): v for v in graph.get_collection("trainable_variables")}
    found: dict[Any, None] = {}
    for op in graph.get_operations()[before:]:
        if op.declaration.role == "read" and op.inputs[0] not in arguments and op.inputs[0] in by_handle:
            found[by_handle[op.inputs[0]]] = None
    return list(found)


def _gradient(grad_fn: Any, results: int, arguments: int, variables: list[Any]) -> Callable[..., Any]:
    def gradient(op: Operation, *dys: Any) -> list[Any]:
        given = dys[:results]
        if variables:
            found, by_variable = grad_fn(*given, variables=variables)
            by_variable = nest.flatten(by_variable)
            if len(by_variable) != len(variables):
                raise ValueError("Must return gradient for each variable from @custom_gradient grad_fn.")
        else:
            found, by_variable = grad_fn(*given), []
        found = nest.flatten(found)
        if len(found) != arguments:
            raise ValueError(
                f"custom_gradient function expected to return {arguments} gradients, "
                f"but returned {len(found)} instead."
            )
        return [None] * results + found + by_variable

    return gradient
