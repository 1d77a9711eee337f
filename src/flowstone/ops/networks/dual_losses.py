"""Losses of linear models, with what stochastic dual coordinate ascent asks of them.

Of an example with label `y` and prediction `wx`, a loss has its primal value, its dual value at the dual
variable `a`, and the `a` that maximises the dual objective over this one variable (S. Shalev-Shwartz,
T. Zhang, Stochastic Dual Coordinate Ascent Methods for Regularized Loss Minimization, 2013): that where

    a' = -loss'(wx + c (a' - a))

with the curvature `c`, the squared norm of the example's features over the strength of regularisation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
_STEPS = 64
_CLOSE = 1e-14


class DualLoss(NamedTuple):
    """A loss: `primal(wx, y)`, `dual(a, y)` and `slope(wx, y)`, which is -loss', of arrays, and of numbers
    `best(a, y, wx, c)`. `labels` gives the labels that the functions take, and whether each is allowed;
    `message` is what is wrong with others.
    """

    primal: Callable[[Array, Array], Array]
    dual: Callable[[Array, Array], Array]
    slope: Callable[[Array, Array], Array]
    best: Callable[[float, float, float, float], float]
    labels: Callable[[Array], tuple[Array, Array]]
    message: str


def _any(labels: Array) -> tuple[Array, Array]:
    return labels, np.ones(labels.shape, bool)


def _signs(labels: Array) -> tuple[Array, Array]:
    """-1 for the label 0."""
    return np.where(labels == 0, -1.0, labels), (labels == 0) | (labels == 1)


def _counts(labels: Array) -> tuple[Array, Array]:
    return labels, ~(labels < 0)


def _entropy(x: Array) -> Array:
    """x log x, 0 where `x` is not positive."""
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1)), 0)


def _within(a: Array, y: Array, value: Array) -> Array:
    """`value`, infinite where the dual variable is not between 0 and the label."""
    return np.where((a * y >= 0) & (a * y <= 1), value, np.inf)


def _clipped(numerator: float, denominator: float, a: float, y: float) -> float:
    """The dual variable a step of numerator / denominator away from `a`, between 0 and the label."""
    if not denominator:
        return y if numerator * y > 0 else a
    if math.isnan(numerator) or math.isnan(denominator):
        return math.nan
    return y * min(max((a + numerator / denominator) * y, 0.0), 1.0) + 0.0  # not -0


# ---- the root of an increasing function


def _logistic_root(c: float, b: float) -> float:
    """The z with z + c / (1 + exp(-z)) = b, by Newton's steps kept within a bracket."""
    low, high = min(b, b - c), max(b, b - c)
    z = min(max(0.0, low), high)
    for _ in range(_STEPS):
        part = 1 / (1 + math.exp(-z)) if z > -700 else 0.0
        excess = z + c * part - b
        low, high = (low, z) if excess > 0 else (z, high)
        step = excess / (1 + c * part * (1 - part))
        following = z - step if low <= z - step <= high else (low + high) / 2
        if abs(following - z) <= _CLOSE * max(abs(z), 1.0):
            return following
        z = following
    return z


def _exponential_root(c: float, b: float) -> float:
    """The z with z + c exp(z) = b, by Newton's steps from above, where the function is convex."""
    if b <= 0:
        z = b
    elif b <= c:
        z = 0.0
    else:
        z = min(b, math.log(b / c)) if c > 0 else b
    for _ in range(_STEPS):
        rise = c * math.exp(z)
        following = z - (z + rise - b) / (1 + rise)
        if abs(following - z) <= _CLOSE * max(abs(z), 1.0):
            return following
        z = following
    return z


def _best_logistic(a: float, y: float, wx: float, c: float) -> float:
    z = _logistic_root(c, c * y * a - y * wx)
    if math.isnan(z):
        return math.nan
    return y / (1 + math.exp(-z)) if z > -700 else 0.0


def _best_poisson(a: float, y: float, wx: float, c: float) -> float:
    b = wx + c * (y - a)
    if not math.isfinite(b):
        return math.nan
    return y - math.exp(_exponential_root(c, b))


LOSSES = {
    "squared_loss": DualLoss(
        primal=lambda wx, y: (wx - y) ** 2 / 2,
        dual=lambda a, y: a * (a / 2 - y),
        slope=lambda wx, y: y - wx,
        best=lambda a, y, wx, c: a + (y - wx - a) / (1 + c),
        labels=_any,
        message="",
    ),
    "hinge_loss": DualLoss(
        primal=lambda wx, y: np.maximum(1 - y * wx, 0),
        dual=lambda a, y: _within(a, y, -a * y),
        slope=lambda wx, y: np.where(y * wx < 1, y, 0),
        best=lambda a, y, wx, c: _clipped(y - wx, c, a, y),
        labels=_signs,
        message="Only labels of 0.0 or 1.0 are supported right now. Found example with label: ",
    ),
    "smooth_hinge_loss": DualLoss(
        primal=lambda wx, y: np.where(y * wx <= 0, 0.5 - y * wx, np.maximum(1 - y * wx, 0) ** 2 / 2),
        dual=lambda a, y: _within(a, y, a * a / 2 - a * y),
        slope=lambda wx, y: y * np.clip(1 - y * wx, 0, 1),
        best=lambda a, y, wx, c: _clipped(y - wx - a, 1 + c, a, y),
        labels=_signs,
        message="Only labels of 0.0 or 1.0 are supported right now. Found example with label: ",
    ),
    "logistic_loss": DualLoss(
        primal=lambda wx, y: np.logaddexp(0, -y * wx),
        dual=lambda a, y: _entropy(1 - a * y) + _entropy(a * y),
        slope=lambda wx, y: y * np.exp(-np.logaddexp(0, y * wx)),
        best=_best_logistic,
        labels=_signs,
        message="Only labels of 0.0 or 1.0 are supported right now. Found example with label: ",
    ),
    "poisson_loss": DualLoss(
        primal=lambda wx, y: np.exp(wx) - y * wx,
        dual=lambda a, y: np.where(y >= a, _entropy(y - a) - (y - a), np.inf),
        slope=lambda wx, y: y - np.exp(wx),
        best=_best_poisson,
        labels=_counts,
        message="Only non-negative labels can be used with the Poisson log loss. Found example with label: ",
    ),
}
