"""What k-means needs: NearestNeighbors, KmeansPlusPlusInitialization, KMC2ChainInitialization.

Points and centres are the rows of matrices, distances the squares of Euclidean ones. The draws are those of
TensorFlow for the same seed: Philox counters from zero, the seed as their key.
"""

from __future__ import annotations

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.randomness.philox import State, words

_CPU_DEVICE = torch.device("cpu")
_FRACTION_BITS = 23  # of a float32
_BLOCK = 1024  # words that are drawn at once

nearest_neighbors_op = op(
    "NearestNeighbors",
    "points: float, centers: float, k: int64 "
    "-> nearest_center_indices: int64, nearest_center_distances: float",
    capturable=False,
)
nearest_neighbors_op.no_gradient()


@nearest_neighbors_op.infer
def _(node: Node) -> Shapes:
    return [None, None]


def _require_matrix(value: torch.Tensor, name: str) -> None:
    if value.dim() != 2:
        raise invalid(f"{name} must be a matrix, got the shape {list(value.shape)}")


def _require_scalar(value: torch.Tensor, name: str) -> int:
    if value.dim() != 0:
        raise invalid(f"{name} must be a scalar, got the shape {list(value.shape)}")
    return int(value)


def _squared_distances(points: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    squares = (points * points).sum(1, keepdim=True)
    return (squares + (centers * centers).sum(1) - 2 * (points @ centers.t())).clamp_min_(0)


@nearest_neighbors_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def run(points: torch.Tensor, centers: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, ...]:
        _require_matrix(points, "points")
        _require_matrix(centers, "centers")
        count = _require_scalar(k, "k")
        if count < 0:
            raise invalid(f"k must not be negative, got {count}")
        if not points.shape[0]:
            raise invalid("points must have at least one row")
        if points.shape[1] != centers.shape[1]:
            raise invalid(f"points have {points.shape[1]} dimensions, but centers have {centers.shape[1]}")
        distances = _squared_distances(points, centers)
        if count == 1 and centers.shape[0]:
            least, index = distances.min(1, keepdim=True)
            return index, least
        least, index = distances.sort(dim=1, stable=True)
        return index[:, :count].contiguous(), least[:, :count].contiguous()

    return run


nearest_neighbors_op.check_complete()


class _Draws:
    """The random numbers of one seed, in turn."""

    def __init__(self, seed: int) -> None:
        self._seed, self._words, self._next = seed % (1 << 64), np.zeros(0, np.int64), 0

    def _word(self) -> int:
        if self._next == len(self._words):
            self._words = words(State(self._seed, 0), len(self._words) + _BLOCK, _CPU_DEVICE).numpy()
        self._next += 1
        return int(self._words[self._next - 1])

    def below(self, count: int) -> int:
        """An integer of [0, count)."""
        low, high = self._word(), self._word()
        return (low | high << 32) % count

    def fraction(self) -> float:
        """A number of [0, 1)."""
        return float((self._word() & ((1 << _FRACTION_BITS) - 1)) * 2.0**-_FRACTION_BITS)


kmeans_plus_plus_initialization_op = op(
    "KmeansPlusPlusInitialization",
    "points: float, num_to_sample: int64, seed: int64, num_retries_per_sample: int64 -> samples: float",
)
kmeans_plus_plus_initialization_op.no_gradient()


@kmeans_plus_plus_initialization_op.infer
def _(node: Node) -> Shapes:
    return [None]


def _sample(points: np.ndarray, count: int, draws: _Draws, candidates: int) -> list[int]:
    """The rows of k-means++: each the best of some candidates, which are drawn by their distance."""
    chosen: list[int] = []
    left = np.full(len(points), np.inf, np.float32)
    while len(chosen) < count:
        best = np.inf, -1, left
        for _ in range(candidates):
            if chosen:
                sums = np.cumsum(left)
                found = int(np.searchsorted(sums, draws.fraction() * sums[-1], "right"))
                row = min(found, len(points) - 1)
            else:
                row = draws.below(len(points))
            now = np.minimum(left, np.square(points - points[row]).sum(1))
            rest = float(now.sum(dtype=np.float64))
            if best[1] < 0 or rest < best[0]:
                best = rest, row, now
        chosen.append(best[1])
        left = best[2]
    return chosen


@kmeans_plus_plus_initialization_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    def run(
        points: torch.Tensor, num_to_sample: torch.Tensor, seed: torch.Tensor, num_retries: torch.Tensor
    ) -> torch.Tensor:
        _require_matrix(points, "points")
        count = _require_scalar(num_to_sample, "num_to_sample")
        key = _require_scalar(seed, "seed")
        retries = _require_scalar(num_retries, "num_retries_per_sample")
        if not 0 < count <= points.shape[0]:
            raise invalid(
                f"num_to_sample must be between 1 and the number of points {points.shape[0]}, got {count}"
            )
        if retries < 0:
            raise invalid(f"num_retries_per_sample must not be negative, got {retries}")
        rows = _sample(points.numpy(), count, _Draws(key), retries + 1)
        return points[torch.tensor(rows)]

    return run


kmeans_plus_plus_initialization_op.check_complete()

kmc2_chain_initialization_op = op("KMC2ChainInitialization", "distances: float, seed: int64 -> index: int64")
kmc2_chain_initialization_op.no_gradient()


@kmc2_chain_initialization_op.infer
def _(node: Node) -> Shapes:
    return [()]


@kmc2_chain_initialization_op.kernel(CPU)
def _(node: Node, env: Environment) -> Kernel:
    def run(distances: torch.Tensor, seed: torch.Tensor) -> torch.Tensor:
        if distances.dim() != 1:
            raise invalid(f"distances must be a vector, got the shape {list(distances.shape)}")
        draws = _Draws(_require_scalar(seed, "seed"))
        if not len(distances):
            raise invalid("distances must have at least one element")
        at, *candidates = distances.tolist()
        index = 0
        for place, candidate in enumerate(candidates, 1):
            if at * draws.fraction() < candidate or at <= 0:
                index, at = place, candidate
        return torch.tensor(index)

    return run


kmc2_chain_initialization_op.check_complete()
