"""Points of the plane in classes that no line parts: circles and spirals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.contrib.learn.datasets.base import Dataset

__all__ = ["Dataset", "circles", "spirals"]

_RADII: dict[str, Callable[[Any], Any]] = {
    "archimedes": lambda theta: theta,
    "bernoulli": lambda theta: np.exp(0.1 * theta),
    "fermat": np.sqrt,
}


def _drawn(points: Any, labels: Any, noise: float | None) -> Dataset:
    """The points with noise, in random order."""
    order = np.random.permutation(len(points))
    if noise is not None:
        points = points + np.random.normal(scale=noise, size=points.shape)
    return Dataset(data=points[order], target=labels[order])


def circles(
    n_samples: int = 100,
    noise: float | None = None,
    seed: int | None = None,
    factor: float = 0.8,
    n_classes: int = 2,
    *args: Any,
    **kwargs: Any,
) -> Dataset:
    """Points on circles around the origin, each a class.

    Args:
        n_samples: how many points; noise: the standard deviation of what is added to them.
        seed: of NumPy's own generator; None: the generator goes on.
        factor: each circle's radius over that of the one before, the first of which is 1.
        n_classes: how many circles.
    """
    if seed is not None:
        np.random.seed(seed)
    count, extra = divmod(n_samples, n_classes)
    angles = np.linspace(0, 2 * np.pi, count)
    radii = [factor**each for each in range(n_classes)]
    x = np.concatenate([radius * np.cos(angles) for radius in radii])
    y = np.concatenate([radius * np.sin(angles) for radius in radii])
    labels = np.repeat(np.arange(n_classes), count)
    if extra:
        x = np.append(x, np.cos(np.random.rand(extra) * 2 * np.pi))
        y = np.append(y, np.sin(np.random.rand(extra) * 2 * np.pi))
        labels = np.append(labels, np.zeros(extra, int))
    return _drawn(np.column_stack([x, y]), labels.astype(np.int32), noise)


def spirals(
    n_samples: int = 100,
    noise: float | None = None,
    seed: int | None = None,
    mode: str = "archimedes",
    n_loops: int = 2,
    *args: Any,
    **kwargs: Any,
) -> Dataset:
    """Points on two spirals around the origin, each a class.

    Args:
        mode: the spiral of "archimedes", "bernoulli" or "fermat"; ValueError for others.
        n_loops: how often each goes around.
        n_samples, noise, seed: see `circles`.

    The coordinates of each spiral are divided by the largest of them.
    """
    if mode not in _RADII:
        raise ValueError(f"Cannot generate spiral with mode {mode}")
    if seed is not None:
        np.random.seed(seed)
    count, extra = divmod(n_samples, 2)
    angles = np.linspace(0, 2 * n_loops * np.pi, count)
    parts = [_spiral(angles, mode, 0.0), _spiral(angles, mode, np.pi)]
    labels = np.repeat([0, 1], count)
    if extra:
        parts.append(_spiral(np.random.rand(extra) * 2 * np.pi, mode, 0.0))
        labels = np.append(labels, np.zeros(extra, int))
    return _drawn(np.concatenate(parts), labels.astype(np.int32), noise)


def _spiral(angles: Any, mode: str, turn: float) -> Any:
    """The points [n, 2] at these angles, turned."""
    radii = _RADII[mode](angles)
    points = np.column_stack([radii * np.cos(angles + turn), radii * np.sin(angles + turn)])
    return points / np.abs(points).max(0)
