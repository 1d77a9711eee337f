"""Random hyperparameters and mathematics for `eval_params`: uniform (U), log-uniform (L), normal (N)."""

from __future__ import annotations

import math
import random
from math import *  # noqa: F403

__all__ = ["Lf", "Li", "Nt", "Uf", "Ui"]


def Uf(lo: float = 0.0, hi: float = 1.0) -> float:
    """A float drawn uniformly from lo to hi."""
    return random.uniform(lo, hi)


def Lf(lo: float, hi: float) -> float:
    """A float whose logarithm is drawn uniformly from log(lo) to log(hi), both above 0."""
    return math.exp(random.uniform(math.log(lo), math.log(hi)))


def Ui(lo: int, hi: int) -> int:
    """An integer drawn uniformly from lo to hi, both among them."""
    return random.randint(lo, hi)


def Li(lo: int, hi: int) -> int:
    """An integer from lo to hi, both among them, drawn uniformly on a logarithmic scale."""
    return min(math.floor(Lf(lo, hi + 1)), hi)


def Nt(mu: float, sigma: float, limit: float = 3.0) -> float:
    """A float drawn from a normal distribution, cut at `limit` standard deviations from its mean."""
    return min(max(random.gauss(mu, sigma), mu - limit * sigma), mu + limit * sigma)
