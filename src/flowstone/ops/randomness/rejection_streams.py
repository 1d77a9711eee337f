"""Streams of random numbers, one for each value drawn by rejection; gamma, Poisson and binomial values.

A value has its own place in the sequence of blocks that a state gives, so that it does not matter how many
numbers the others reject. A block is two uniform or two normal numbers of float64, of which the second is
taken first. These layouts, and the algorithms below, give TensorFlow's own values for a state. On a CPU
machine code draws gamma and Poisson values, if there is any: the same but for rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from flowstone.framework.machine.machine_code import rejection_values
from flowstone.ops.randomness import philox
from flowstone.ops.randomness.philox import State

RESERVED = 256  # blocks kept for a value
_FEW = 10  # below this mean, Poisson and binomial values are counted one by one


class Streams:
    """As many streams as `places`, int64 [n], each the number of blocks that are skipped before the stream.

    `uniform(rows)` and `normal(rows)` are the next numbers, float64, of the streams of these positions.
    """

    def __init__(self, state: State, places: torch.Tensor) -> None:
        self._state = state
        self._next = places.clone()
        # Of each stream the numbers of its last block of a kind, and whether the first of them is left.
        self._kept = torch.zeros(2, len(places), dtype=torch.float64, device=places.device)
        self._left = torch.zeros(2, len(places), dtype=torch.bool, device=places.device)

    def uniform(self, rows: torch.Tensor) -> torch.Tensor:
        """Numbers of [0, 1)."""
        return self._draw(0, rows)

    def normal(self, rows: torch.Tensor) -> torch.Tensor:
        """Standard normal numbers."""
        return self._draw(1, rows)

    def _draw(self, kind: int, rows: torch.Tensor) -> torch.Tensor:
        kept, left = self._kept[kind], self._left[kind]
        values = kept[rows]
        fresh = ~left[rows]
        drawn = rows[fresh]
        words = philox.blocks_after(self._state, self._next[drawn])
        pairs = philox.doubles(words).view(-1, 2)
        if kind:
            pairs = philox.box_muller(pairs)
        values[fresh] = pairs[:, 1]
        kept[drawn] = pairs[:, 0]
        self._next[drawn] += 1
        left[rows] = fresh
        return values


def cast(values: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """Values of float64 in a type; 0 instead of what integers can't be."""
    return values.to(kind) if kind.is_floating_point else values.nan_to_num(0, 0, 0).to(kind)


Method = Callable[[State, torch.Tensor, torch.Tensor], torch.Tensor]


def gamma_values(state: State, alpha: torch.Tensor, samples: int) -> torch.Tensor:
    """[samples, n] values of gamma distributions; `alpha`: float64 [n]."""
    return _values("gamma", _gamma, state, alpha, samples)


def poisson_values(state: State, rate: torch.Tensor, samples: int) -> torch.Tensor:
    """[samples, n] values of Poisson distributions in float64; `rate`: float64 [n]."""
    return _values("poisson", _poisson, state, rate, samples)


def _values(how: str, method: Method, state: State, parameters: torch.Tensor, samples: int) -> torch.Tensor:
    """Those of a distribution after those of the one before it, by machine code or by a method."""
    code = rejection_values(how) if parameters.device.type == "cpu" else None
    if code is not None:
        return code(*state, parameters, samples)
    each = parameters.repeat_interleave(samples)
    places = RESERVED * torch.arange(len(each), device=each.device)
    return method(state, places, each).view(len(parameters), samples).t()


def _gamma(state: State, places: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    """Values of gamma distributions (Marsaglia and Tsang, 2000) in float64; `alpha` is one number a stream.

    Exponential values where alpha is 1; below 1, a value for alpha + 1 times a power of a uniform number.
    """
    streams = Streams(state, places)
    result = torch.where(alpha == 0, alpha, math.nan)
    exponential = (alpha == 1).nonzero().reshape(-1)
    result[exponential] = -torch.log1p(-streams.uniform(exponential))
    rows = (alpha != 1).nonzero().reshape(-1)
    rows = rows[alpha[rows] > 0]
    while len(rows):
        shape = alpha[rows]
        d = torch.where(shape < 1, shape + 1, shape) - 1 / 3
        x = streams.normal(rows)
        v = 1 + x / (9 * d).sqrt()
        positive = v > 0
        tried, d, x, v = rows[positive], d[positive], x[positive], v[positive] ** 3
        u = streams.uniform(tried)
        squeezed = u < 1 - 0.0331 * x.square().square()
        taken = squeezed | (u.log() < 0.5 * x.square() + d * (1 - v + v.log()))
        done = tried[taken]
        result[done] = (d * v)[taken]
        small = done[alpha[done] < 1]
        result[small] *= streams.uniform(small) ** (1 / alpha[small])
        left = torch.ones_like(rows, dtype=torch.bool)
        left[positive] = ~taken
        rows = rows[left]
    return result


def _poisson(state: State, places: torch.Tensor, rate: torch.Tensor) -> torch.Tensor:
    """Values of Poisson distributions in float64; `rate` is one number a stream.

    Below 10 by products of uniform numbers (Knuth), else by transformed rejection (Hörmann, 1993, PTRS).
    A rate below zero counts as zero, and an infinite one gives infinity.
    """
    streams = Streams(state, places)
    result = torch.where(rate <= 0, 0, rate)
    rows = ((rate > 0) & (rate < _FEW)).nonzero().reshape(-1)
    product, count = torch.ones_like(rate), torch.zeros_like(rate)
    while len(rows):
        product[rows] *= streams.uniform(rows)
        over = product[rows] > (-rate[rows]).exp()
        result[rows[~over]] = count[rows[~over]]
        rows = rows[over]
        count[rows] += 1
    rows = ((rate >= _FEW) & rate.isfinite()).nonzero().reshape(-1)
    while len(rows):
        mean = rate[rows]
        b = 0.931 + 2.53 * mean.sqrt()
        a = -0.059 + 0.02483 * b
        u, v = streams.uniform(rows) - 0.5, streams.uniform(rows)
        us = 0.5 - u.abs()
        k = ((2 * a / us + b) * u + mean + 0.43).floor()
        inside = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
        tested = (k >= 0) & ~((us < 0.013) & (v > us))
        height = (v * (1.1239 + 1.1328 / (b - 3.4)) / (a / us.square() + b)).log()
        taken = inside | tested & (height <= k * mean.log() - mean - torch.lgamma(k + 1))
        result[rows[taken]] = k[taken]
        rows = rows[~taken]
    return result


def binomial(
    state: State, sparse: torch.Tensor, places: torch.Tensor, counts: torch.Tensor, probs: torch.Tensor
) -> torch.Tensor:
    """Values of binomial distributions in float64; `counts` and `probs` are one number a stream.

    Where the rarer outcome is expected less than 10 times by the gaps between those (Devroye, 1986, X.4.3),
    in streams at `sparse`; else by transformed rejection (Hörmann, 1993, BTRS), in those at `places`. Counts
    below zero are zero, probabilities out of range their nearest bound; NaN gives NaN.
    """
    rare = torch.where(probs > 0.5, 1 - probs, probs)
    result = torch.full_like(rare, math.nan)
    nothing = (counts <= 0) | (rare <= 0)
    result[nothing] = 0
    possible = ~nothing & counts.isfinite() & ~rare.isnan()
    few = counts * rare < _FEW
    _by_gaps(Streams(state, sparse), (possible & few).nonzero().reshape(-1), counts, rare, result)
    _by_rejection(Streams(state, places), (possible & ~few).nonzero().reshape(-1), counts, rare, result)
    return torch.where(probs > 0.5, counts.clamp_min(0) - result, result)


def _by_gaps(
    streams: Streams, rows: torch.Tensor, counts: torch.Tensor, rare: torch.Tensor, result: torch.Tensor
) -> None:
    passed, found = torch.zeros_like(rare), torch.zeros_like(rare)
    while len(rows):
        passed[rows] += (streams.uniform(rows).log() / torch.log1p(-rare[rows])).ceil()
        over = passed[rows] > counts[rows]
        result[rows[over]] = found[rows[over]]
        rows = rows[~over]
        found[rows] += 1


def _by_rejection(
    streams: Streams, rows: torch.Tensor, counts: torch.Tensor, rare: torch.Tensor, result: torch.Tensor
) -> None:
    while len(rows):
        n, p = counts[rows], rare[rows]
        deviation = (n * p * (1 - p)).sqrt()
        b = 1.15 + 2.53 * deviation
        a = -0.0873 + 0.0248 * b + 0.01 * p
        u, v = streams.uniform(rows) - 0.5, streams.uniform(rows)
        us = 0.5 - u.abs()
        k = ((2 * a / us + b) * u + n * p + 0.5).floor()
        inside = (us >= 0.07) & (v <= 0.92 - 4.2 / b)
        mode = ((n + 1) * p).floor()
        height = (v * (2.83 + 5.1 / b) * deviation / (a / us.square() + b)).log()
        bound = (
            torch.lgamma(mode + 1)
            + torch.lgamma(n - mode + 1)
            - torch.lgamma(k + 1)
            - torch.lgamma(n - k + 1)
            + (k - mode) * (p / (1 - p)).log()
        )
        taken = inside | (k >= 0) & (k <= n) & (height <= bound)
        result[rows[taken]] = k[taken]
        rows = rows[~taken]
