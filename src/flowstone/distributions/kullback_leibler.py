"""Kullback-Leibler divergences: a table from two classes of distributions to a function.

KL(a || b) is the expectation under a of log a(x) - log b(x). The function of the closest base classes is
used, where closeness is the sum of both distances in the method resolution orders.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.arrays.identities import identity
from flowstone.ops.control.conditionals import Assert
from flowstone.ops.numbers.reductions import reduce_any

__all__ = ["RegisterKL", "cross_entropy", "kl_divergence"]

KLFunction = Callable[..., Any]
_functions: dict[tuple[type, type], KLFunction] = {}


class RegisterKL:
    """A decorator that registers ``f(a, b, name=None)`` as the divergence of two classes of distributions.

    TypeError if what is decorated is not callable, ValueError if the pair has a function already.
    """

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: KLFunction) -> KLFunction:
        if not callable(kl_fn):
            raise TypeError(f"kl_fn must be callable, received: {kl_fn}")
        if self._key in _functions:
            first, second = self._key
            raise ValueError(
                f"KL({first.__name__} || {second.__name__}) has already been registered to: "
                f"{_functions[self._key]}"
            )
        _functions[self._key] = kl_fn
        return kl_fn


def _registered(class_a: type, class_b: type) -> KLFunction | None:
    best: KLFunction | None = None
    closest: int | None = None
    for distance_a, parent_a in enumerate(inspect.getmro(class_a)):
        for distance_b, parent_b in enumerate(inspect.getmro(class_b)):
            function = _functions.get((parent_a, parent_b))
            distance = distance_a + distance_b
            if function is not None and (closest is None or distance < closest):
                best, closest = function, distance
    return best


def kl_divergence(
    distribution_a: Any, distribution_b: Any, allow_nan_stats: bool = True, name: str | None = None
) -> Tensor:
    """KL(distribution_a || distribution_b) for every member of the batch.

    With ``allow_nan_stats=False`` a NaN among the results is an InvalidArgumentError of the step.
    NotImplementedError if no function is registered for the two classes.
    """
    function = _registered(type(distribution_a), type(distribution_b))
    if function is None:
        raise NotImplementedError(
            "No KL(distribution_a || distribution_b) registered for distribution_a type "
            f"{type(distribution_a).__name__} and distribution_b type {type(distribution_b).__name__}"
        )
    graph = get_default_graph()
    with graph.name_scope("KullbackLeibler"):
        divergence: Tensor = function(distribution_a, distribution_b, name=name)
        if allow_nan_stats:
            return divergence
        divergence = identity(divergence, name="kl")
        words = (
            f"The KL divergence of {distribution_a.name} from {distribution_b.name} has NaN values, "
            "which allow_nan_stats=False forbids:"
        )
        check = Assert(F.LogicalNot(reduce_any(F.IsNan(divergence))), [words, divergence])
        with graph.control_dependencies([check]):
            return identity(divergence, name="checked_kl")


def cross_entropy(ref: Any, other: Any, allow_nan_stats: bool = True, name: str | None = None) -> Tensor:
    """The expectation under `ref` of -log other(x): its entropy and its divergence from `other`."""
    with get_default_graph().name_scope(name or "cross_entropy"):
        entropy: Tensor = ref.entropy()
        return entropy + kl_divergence(ref, other, allow_nan_stats=allow_nan_stats)
