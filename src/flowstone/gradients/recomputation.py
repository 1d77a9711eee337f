"""Functions whose gradients are others than their graph says: `tf.recompute_grad`, `tf.grad_pass_through`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.gradients.custom_gradients import custom_gradient
from flowstone.gradients.gradient_computation import gradients
from flowstone.ops.variables.variable_scope import get_variable_scope, variable_scope

__all__ = ["grad_pass_through", "recompute_grad"]


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a function of tensors that gives one result: gradients go through it unchanged.

    Variables that the function uses get none.
    """

    @custom_gradient
    def with_gradient(*args: Any) -> Any:
        def unchanged(*dys: Any, variables: Any = None) -> Any:
            return (dys, [None] * len(variables)) if variables is not None else dys

        return f(*args), unchanged

    return functools.wraps(f)(with_gradient)


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a function of tensors whose values the gradient computes once more, not to keep them.

    Variables that it uses must be resource variables. Keyword arguments of a call are passed on.
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        scope = get_variable_scope()

        @custom_gradient
        def inner(*tensors: Any) -> Any:
            def gradient(*dys: Any, variables: Any = None) -> Any:
                return _recomputed(f, tensors, kwargs, dys, variables, scope)

            return f(*tensors, **kwargs), gradient

        return inner(*args)

    return decorated


def _recomputed(f: Any, tensors: Any, kwargs: Any, dys: Any, variables: Any, scope: Any) -> Any:
    flows = [dy for dy in nest.flatten(dys) if dy is not None]
    with (
        get_default_graph().control_dependencies(flows),
        variable_scope(scope, reuse=True if variables else None),
    ):
        inputs = [F.Identity(each) for each in nest.flatten(tensors)]
        results = f(*nest.pack_sequence_as(list(tensors), inputs), **kwargs)
    sources = inputs + list(variables or [])
    found = gradients(nest.flatten(results), sources, list(dys))
    own, others = found[: len(inputs)], found[len(inputs) :]
    return own if variables is None else (own, others)
