"""Learning-rate schedules: tensors that follow from the global step.

All take the initial rate (a number or scalar Tensor, float32 or float64; the schedule has its dtype), the
global step (a scalar, usually a variable of an integer type) and a number of steps, and raise ValueError
without a global step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import constant
from flowstone.ops.control.conditionals import case, cond
from flowstone.ops.numbers.casts import cast
from flowstone.ops.randomness.random import random_normal

__all__ = [
    "cosine_decay",
    "cosine_decay_restarts",
    "exponential_decay",
    "inverse_time_decay",
    "linear_cosine_decay",
    "natural_exp_decay",
    "noisy_linear_cosine_decay",
    "piecewise_constant",
    "piecewise_constant_decay",
    "polynomial_decay",
]


def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """``learning_rate · decay_rate^(global_step / decay_steps)``; with `staircase` the exponent is rounded
    down.
    """
    _check_step(global_step)
    with get_default_graph().name_scope(name or "ExponentialDecay") as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        steps, base = cast(decay_steps, rate.dtype), cast(decay_rate, rate.dtype)
        progress = cast(global_step, rate.dtype) / steps
        if staircase:
            progress = F.Floor(progress)
        return F.Mul(rate, F.Pow(base, progress), name=scope)


def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """``learning_rate · e^(−decay_rate · global_step / decay_steps)``; `staircase` rounds it down."""
    base = F.Exp(F.Neg(decay_rate))
    return exponential_decay(learning_rate, global_step, decay_steps, base, staircase=staircase, name=name)


def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """``learning_rate / (1 + decay_rate · global_step / decay_steps)``; `staircase` rounds it down."""
    _check_step(global_step)
    with get_default_graph().name_scope(name or "InverseTimeDecay") as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        steps, factor = cast(decay_steps, rate.dtype), cast(decay_rate, rate.dtype)
        progress = cast(global_step, rate.dtype) / steps
        if staircase:
            progress = F.Floor(progress)
        one = cast(constant(1), rate.dtype)
        return F.RealDiv(rate, F.Add(one, F.Mul(factor, progress)), name=scope)


def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """From `learning_rate` to `end_learning_rate` in `decay_steps`, along ``(1 − progress)^power``.

    Afterwards the rate stays; with `cycle` it starts anew, over the next multiple of `decay_steps`.
    """
    _check_step(global_step)
    with get_default_graph().name_scope(name or "PolynomialDecay") as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        end, exponent = cast(end_learning_rate, rate.dtype), cast(power, rate.dtype)
        step, steps = cast(global_step, rate.dtype), cast(decay_steps, rate.dtype)
        if cycle:
            cycles = cond(F.Equal(step, 0), lambda: 1.0, lambda: F.Ceil(step / decay_steps))
            steps = F.Mul(steps, cycles)
        else:
            step = F.Minimum(step, decay_steps)
        progress = step / steps
        return F.Add(F.Mul(rate - end, F.Pow(1 - progress, exponent)), end, name=scope)


def piecewise_constant(
    x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
) -> Tensor:
    """``values[i]`` while `x` is at most ``boundaries[i]``, ``values[-1]`` above all; boundaries must
    increase.

    Raises ValueError unless there is one value more than boundaries, all values have one dtype and the
    boundaries that of `x` (int32 boundaries also serve int64).
    """
    if len(boundaries) != len(values) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")
    limits = [convert_to_tensor(boundary) for boundary in boundaries]
    results = [convert_to_tensor(value) for value in values]
    step = convert_to_tensor(x)
    for i, limit in enumerate(limits):
        if limit.dtype.base_dtype is step.dtype.base_dtype:
            continue
        if limit.dtype.base_dtype is dtypes.int32 and step.dtype.base_dtype is dtypes.int64:
            limits[i] = cast(limit, step.dtype.base_dtype)
        else:
            raise ValueError(
                f"Boundaries ({limit.dtype!r}) must have the same dtype as x ({step.dtype.base_dtype!r})."
            )
    for value in results[1:]:
        if value.dtype.base_dtype is not results[0].dtype.base_dtype:
            raise ValueError(
                f"Values must have elements all with the same dtype ({results[0].dtype.base_dtype!r} vs "
                f"{value.dtype.base_dtype!r})."
            )
    with get_default_graph().name_scope(name or "PiecewiseConstant"):
        pieces = [(F.LessEqual(step, limits[0]), results[0]), (F.Greater(step, limits[-1]), results[-1])]
        for low, high, value in zip(limits[:-1], limits[1:], results[1:-1]):
            above, not_beyond = F.Greater(step, low), F.LessEqual(step, high)
            pieces.append((F.LogicalAnd(above, not_beyond, name="and"), value))
        branches = [(pred, lambda value=value: value) for pred, value in pieces]
        rate: Tensor = case(branches, lambda: results[0], exclusive=True)
        return rate


piecewise_constant_decay = piecewise_constant


def cosine_decay(
    learning_rate: Any, global_step: Any, decay_steps: Any, alpha: Any = 0.0, name: str | None = None
) -> Tensor:
    """Half a cosine from `learning_rate` to ``alpha · learning_rate`` in `decay_steps` (Loshchilov and
    Hutter, 2016).
    """
    _check_step(global_step)
    with get_default_graph().name_scope(name or "CosineDecay"):
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        steps = cast(decay_steps, rate.dtype)
        progress = F.Minimum(cast(global_step, rate.dtype), steps) / steps
        cosine = 0.5 * (1.0 + F.Cos(constant(math.pi, dtype=rate.dtype) * progress))
        return F.Mul(rate, (1 - alpha) * cosine + alpha)


def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: Any = 2.0,
    m_mul: Any = 1.0,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Tensor:
    """Half cosines with warm restarts (Loshchilov and Hutter, 2016).

    The first lasts `first_decay_steps`, each next `t_mul` times as long, from `m_mul` times the rate.
    """
    _check_step(global_step)
    with get_default_graph().name_scope(name or "SGDRDecay") as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        first, low = cast(first_decay_steps, rate.dtype), cast(alpha, rate.dtype)
        longer, lower = cast(t_mul, rate.dtype), cast(m_mul, rate.dtype)
        completed = cast(global_step, rate.dtype) / first
        restart, progress = cond(
            F.Equal(longer, 1.0),
            lambda: _equal_periods(completed),
            lambda: _geometric_periods(completed, longer),
        )
        factor = lower**restart
        cosine = 0.5 * factor * (1.0 + F.Cos(constant(math.pi, dtype=rate.dtype) * progress))
        return F.Mul(rate, (1 - low) * cosine + low, name=scope)


def _equal_periods(completed: Tensor) -> tuple[Tensor, Tensor]:
    """(number of the period, progress in it) when all last equally long."""
    restart = F.Floor(completed)
    return restart, completed - restart


def _geometric_periods(completed: Tensor, ratio: Tensor) -> tuple[Tensor, Tensor]:
    """(number of the period, progress in it) when each lasts `ratio` times the one before."""
    restart = F.Floor(F.Log(1.0 - completed * (1.0 - ratio)) / F.Log(ratio))
    earlier = (1.0 - ratio**restart) / (1.0 - ratio)
    return restart, (completed - earlier) / ratio**restart


def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """A falling line times a cosine of `num_periods`: ``rate · ((alpha + line) · cosine + beta)`` (Bello et
    al., 2017).
    """
    _check_step(global_step)
    with get_default_graph().name_scope(name or "LinearCosineDecay") as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        steps, periods = cast(decay_steps, rate.dtype), cast(num_periods, rate.dtype)
        low, floor = cast(alpha, rate.dtype), cast(beta, rate.dtype)
        step = F.Minimum(cast(global_step, rate.dtype), steps)
        line = (steps - step) / steps
        cosine = _cosine_of_progress(step / steps, periods, rate.dtype)
        return F.Mul(rate, (low + line) * cosine + floor, name=scope)


def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: Any = 1.0,
    variance_decay: Any = 0.55,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """`linear_cosine_decay` with noise on the line, of variance ``initial_variance / (1 +
    step)^variance_decay``.
    """
    _check_step(global_step)
    with get_default_graph().name_scope(name or "NoisyLinearCosineDecay") as scope:
        rate = convert_to_tensor(learning_rate, name="initial_learning_rate")
        dtype = rate.dtype
        steps, variance, fading = (
            cast(decay_steps, dtype),
            cast(initial_variance, dtype),
            cast(variance_decay, dtype),
        )
        periods, low, floor = cast(num_periods, dtype), cast(alpha, dtype), cast(beta, dtype)
        step = F.Minimum(cast(global_step, dtype), steps)
        line = (steps - step) / steps
        deviation = F.Sqrt(variance / F.Pow(1.0 + step, fading))
        noisy = line + random_normal(line.shape, stddev=deviation)
        cosine = _cosine_of_progress(step / steps, periods, dtype)
        return F.Mul(rate, (low + noisy) * cosine + floor, name=scope)


def _cosine_of_progress(progress: Tensor, periods: Tensor, dtype: Any) -> Tensor:
    angle = 2.0 * periods * progress
    return 0.5 * (1.0 + F.Cos(constant(math.pi, dtype=dtype) * angle))


def _check_step(global_step: Any) -> None:
    if global_step is None:
        raise ValueError("None values not supported.")
