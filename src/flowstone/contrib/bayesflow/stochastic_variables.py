"""Variables that are draws of distributions whose parameters are variables."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flowstone.contrib.bayesflow import stochastic_tensor as st
from flowstone.contrib.bayesflow import variational_inference as vi

__all__ = ["get_stochastic_variable", "make_stochastic_variable_getter"]


def get_stochastic_variable(
    getter: Callable[..., Any],
    name: str,
    shape: Any = None,
    dist_cls: Any = None,
    dist_kwargs: dict[str, Any] | None = None,
    param_initializers: dict[str, Any] | None = None,
    prior: Any = None,
    **kwargs: Any,
) -> Any:
    """A stochastic tensor of a distribution whose parameters are variables ``name_parameter``.

    Args:
        getter: makes variables, as `tf.get_variable`.
        name: the first part of the variables' names.
        shape: of a draw.
        dist_cls: the class of the distribution.
        dist_kwargs: other arguments of the class.
        param_initializers: the variables' initialisers by parameters.
        prior: the distribution that is noted by `register_prior`, or None.
        kwargs: other arguments of the getter.
    """
    initializers, parameters = param_initializers or {}, {}
    default = kwargs.pop("initializer", None)
    for parameter, parameter_shape in dist_cls.param_static_shapes(shape).items():
        initializer = initializers.get(parameter, default)
        parameters[parameter] = getter(
            f"{name}_{parameter}", shape=parameter_shape, initializer=initializer, **kwargs
        )
    tensor = st.StochasticTensor(dist_cls(**parameters, **(dist_kwargs or {})))
    if prior is not None:
        vi.register_prior(tensor, prior)
    return tensor


def make_stochastic_variable_getter(
    dist_cls: Any,
    dist_kwargs: dict[str, Any] | None = None,
    param_initializers: dict[str, Any] | None = None,
    prior: Any = None,
) -> Callable[..., Any]:
    """`get_stochastic_variable` of these arguments, as the custom getter of a variable scope."""
    return functools.partial(
        get_stochastic_variable,
        dist_cls=dist_cls,
        dist_kwargs=dist_kwargs,
        param_initializers=param_initializers,
        prior=prior,
    )
