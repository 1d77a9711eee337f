"""The greedy choice of boxes that overlap little.

The best box comes first, then the next best that no chosen one overlaps too much:
A. Neubeck, L. Van Gool, "Efficient non-maximum suppression", 2006.

Float32 boxes on a host are chosen by machine code, where there is the native tier. Elsewhere candidates come
in the order of their scores, equal ones in that of their numbers. They are compared block by block: a matrix
of overlaps with the boxes chosen before, and one within the block, of which only the rows of chosen boxes are
looked at one by one. The choice ends with the number of boxes that is asked for.

With a `sigma`, overlaps lower scores instead: by ``exp(-overlap² / (2 sigma))`` for each chosen box (N. Bodla
and others, "Soft-NMS – improving object detection with one line of code", 2017).

>>> boxes = torch.tensor([[0.0, 0, 1, 1], [0, 0, 1, 0.9], [0, 2, 1, 3]])
>>> chosen_boxes(boxes, torch.tensor([0.7, 0.9, 0.8]), 3, 0.5, -1.0).tolist()
[1, 2]
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from flowstone.framework.machine.image_code import BoxChoice, box_choice

_BLOCK = 256
_TILE = 1024  # chosen boxes that a block is compared with at once
_SOFT_TILE = 64

Overlaps = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # of candidates and chosen ones, as a matrix


class Corners:
    """Boxes [..., 4] with their lower and upper corners sorted, and their areas."""

    def __init__(self, boxes: torch.Tensor) -> None:
        y1, x1, y2, x2 = boxes.unbind(-1)
        self.top, self.bottom = torch.minimum(y1, y2), torch.maximum(y1, y2)
        self.left, self.right = torch.minimum(x1, x2), torch.maximum(x1, x2)
        self.area = (self.bottom - self.top) * (self.right - self.left)

    def overlaps(self, rows: Any, columns: Any) -> torch.Tensor:
        """The intersection of each two boxes over their union, [rows, columns]; 0 for boxes of no area.

        `rows` and `columns` are numbers of boxes; slices, where the boxes have more dimensions than two, of
        the first, of which one chooses a single box.
        """
        if isinstance(rows, torch.Tensor):
            rows = (rows, None)
        height = torch.minimum(self.bottom[rows], self.bottom[columns])
        height.sub_(torch.maximum(self.top[rows], self.top[columns])).clamp_(min=0)
        width = torch.minimum(self.right[rows], self.right[columns])
        width.sub_(torch.maximum(self.left[rows], self.left[columns])).clamp_(min=0)
        common = height.mul_(width)
        area, other = self.area[rows], self.area[columns]
        ratio = common / (area + other).sub_(common)
        return ratio.masked_fill_((area <= 0) | (other <= 0), 0)


def candidates(scores: torch.Tensor, least: float, first: int) -> Iterator[torch.Tensor]:
    """The numbers of the scores above `least`, the best first, in parts: few are looked at if few are chosen.

    The first part has at least `first` of them, if there are that many. Nothing is above NaN.
    """
    numbers = torch.nonzero(scores > least).squeeze(1)
    while len(numbers) > 2 * first:
        values = scores[numbers]
        is_best = values >= torch.topk(values, first, sorted=False).values.min()
        yield _sorted(numbers[is_best], scores)
        numbers = numbers[~is_best]
        first *= 8
    yield _sorted(numbers, scores)


def _sorted(numbers: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    return numbers[torch.sort(scores[numbers], descending=True, stable=True).indices]


def chosen_boxes(
    boxes: torch.Tensor, scores: torch.Tensor, limit: int, threshold: float, least: float
) -> torch.Tensor:
    """The numbers of at most `limit` boxes [n, 4] whose overlaps are at most `threshold`; int64.

    Overlaps of float16 boxes are computed in float32 and rounded to float16.
    """
    if boxes.dtype is torch.float16:
        boxes, scores, threshold = boxes.float(), scores.float(), before_rounding(threshold)
    if (code := _machine_code(boxes, scores, False)) is not None:
        return code.choose(boxes, scores, limit, threshold, least)
    return chosen(Corners(boxes).overlaps, scores, least, limit, threshold)


@functools.lru_cache(64)
def before_rounding(threshold: float) -> float:
    """The number that those of float32 are above whose float16 is above `threshold`."""
    below = np.float16(threshold)
    if float(below) > threshold:
        below = np.nextafter(below, np.float16(-1))
    above = np.nextafter(below, np.float16(np.inf))
    between = np.float32((float(below) + float(above)) / 2)
    goes_down = int(below.view(np.uint16)) % 2 == 0  # a tie is rounded to the even one
    return float(between if goes_down else np.nextafter(between, np.float32(-1)))


def _machine_code(boxes: torch.Tensor, scores: torch.Tensor, softly: bool) -> BoxChoice | None:
    both = boxes.dtype is scores.dtype is torch.float32
    return box_choice(softly) if both and boxes.device.type == "cpu" else None


def chosen(
    overlaps: Overlaps, scores: torch.Tensor, least: float, limit: int, threshold: float
) -> torch.Tensor:
    """At most `limit` numbers of scores above `least` whose overlaps are at most `threshold`; int64."""
    parts: list[torch.Tensor] = []
    found = 0
    for rest in _blocks(scores, least, limit):
        if found >= limit:
            break
        for part in parts:
            if not len(rest):
                break
            rest = rest[~(overlaps(rest, part) > threshold).any(1)]
        rest = _chosen_within(rest, overlaps, limit - found, threshold)
        if len(rest):
            found += len(rest)
            _append(parts, rest)
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.int64, device=scores.device)


def chosen_in_columns(
    boxes: torch.Tensor, scores: torch.Tensor, limit: int, threshold: float, least: float
) -> torch.Tensor:
    """Which of the boxes [n, columns, 4] `chosen_boxes` chooses in each column; bool [n, columns].

    The scores [n, columns] descend in each column. It is a walk over few boxes in all columns at once.
    """
    corners = Corners(boxes)
    alive = scores > least
    left = torch.full_like(alive[0], limit, dtype=torch.int32)
    for i in range(len(alive)):
        alive[i] &= left > 0
        left -= alive[i].int()
        if i + 1 >= limit and scores.device.type == "cpu" and not bool((left > 0).any()):
            alive[i + 1 :] = False
            break
        if i + 1 < len(alive):
            ruled_out = corners.overlaps(slice(i + 1, None), slice(i, i + 1)) > threshold
            alive[i + 1 :] &= ~ruled_out.logical_and_(alive[i])
    return alive


_FEW = 64  # boxes that are chosen one by one from a matrix


def chosen_from_matrix(
    overlaps: torch.Tensor, scores: torch.Tensor, least: float, limit: int, threshold: float
) -> torch.Tensor:
    """`chosen` with the overlaps [n, n] of candidates (rows) and chosen ones at hand."""
    if limit > _FEW or scores.device.type != "cpu":
        return chosen(lambda rows, columns: overlaps[rows[:, None], columns], scores, least, limit, threshold)
    values, matrix = scores.numpy(), overlaps.numpy()
    rest = np.flatnonzero(values > least)
    rest = rest[np.argsort(-values[rest], kind="stable")]
    kept: list[int] = []
    while len(rest) and len(kept) < limit:
        best, rest = rest[0], rest[1:]
        kept.append(int(best))
        rest = rest[~(matrix[rest, best] > threshold)]
    return torch.tensor(kept, dtype=torch.int64)


def _blocks(scores: torch.Tensor, least: float, limit: int) -> Iterator[torch.Tensor]:
    size = min(_BLOCK, max(2 * limit, 16))
    for part in candidates(scores, least, max(2 * limit, 1024)):
        yield from part.split(size)


def _append(parts: list[torch.Tensor], new: torch.Tensor) -> None:
    """Adds to the parts, which stay long enough for few comparisons and short enough for the cache."""
    if parts and len(parts[-1]) + len(new) <= _TILE:
        parts[-1] = torch.cat([parts[-1], new])
    else:
        parts.append(new)


def _chosen_within(rest: torch.Tensor, overlaps: Overlaps, limit: int, threshold: float) -> torch.Tensor:
    """The choice among candidates that no earlier one rules out."""
    if not len(rest):
        return rest
    above = (overlaps(rest, rest) > threshold).t().contiguous()  # of each candidate, those that it rules out
    bits = np.packbits(above.cpu().numpy(), axis=1, bitorder="little")
    width, rows = bits.shape[1], bits.tobytes()
    alive = (1 << len(rest)) - 1  # a bit a candidate
    kept: list[int] = []
    while alive and len(kept) < limit:
        first = alive & -alive
        i = first.bit_length() - 1
        kept.append(i)
        alive &= ~(int.from_bytes(rows[i * width : (i + 1) * width], "little") | first)
    return rest[torch.tensor(kept, device=rest.device)]


class _SoftPool:
    """The best candidates, and what the chosen ones leave of their scores; on the host, for it is a walk.

    `seen` is each one's score when it was looked at last, -inf where it is out; `now` is what is left.
    """

    def __init__(self, boxes: torch.Tensor, scores: torch.Tensor, least: float, sigma: float) -> None:
        self._corners, self._scores, self._least, self._factor = Corners(boxes), scores, least, -0.5 / sigma
        self._numbers = torch.zeros(0, dtype=torch.int64)
        self.seen = self._now = np.zeros(0, np.float32)
        self._matrix: np.ndarray[Any, Any] | None = None
        self.chosen: list[int] = []
        self.lowered: list[float] = []

    def _weights(self, rows: torch.Tensor, columns: torch.Tensor) -> np.ndarray[Any, Any]:
        overlaps = self._corners.overlaps(rows, columns)
        found: np.ndarray[Any, Any] = overlaps.square_().mul_(self._factor).exp_().float().numpy()
        return found

    def add(self, part: torch.Tensor) -> None:
        """More candidates, whose scores those chosen so far lower in their order."""
        seen = self._scores[part].float().numpy()
        now = seen
        for tile in torch.tensor(self.chosen, dtype=torch.int64).split(_SOFT_TILE):
            now = np.multiply.reduce(np.concatenate((now[None], self._weights(tile, part))), axis=0)
        kept = self.seen > -math.inf
        self._numbers = torch.cat((self._numbers[torch.from_numpy(kept)], part))
        self.seen, self._now = np.append(self.seen[kept], seen), np.append(self._now[kept], now)
        is_small = len(self._numbers) <= _TILE
        self._matrix = self._weights(self._numbers, self._numbers) if is_small else None

    def look(self, best: float) -> None:
        """Chooses the first candidate that was seen with the score `best`, if it still has it."""
        at = (self.seen == best).nonzero()[0]
        i = int(at[0]) if len(at) == 1 else int(at[np.argmin(self._numbers.numpy()[at])])
        if self._now[i] != best:
            self._see_again(i)
            return
        number = int(self._numbers[i])
        self.chosen.append(number)
        self.lowered.append(best)
        self.seen[i] = -math.inf
        if self._matrix is None:
            weights = self._weights(self._numbers, self._numbers[i : i + 1])[:, 0]
        else:
            weights = self._matrix[i]
        self._now = self._now * weights

    def _see_again(self, i: int) -> None:
        """Of the candidate, and of those whose scores are positive: what will be seen is at most that."""
        again = self.seen > 0
        again[i] = True
        left = np.where(self._now > self._least, self._now, np.float32(-math.inf))
        self.seen = np.where(again, left, self.seen)


def softly_chosen(
    boxes: torch.Tensor, scores: torch.Tensor, limit: int, least: float, sigma: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The numbers of the boxes and their lowered scores; no overlap rules a box out."""
    if (code := _machine_code(boxes, scores, True)) is not None:
        return code.choose_softly(boxes, scores, limit, least, sigma)
    host = scores.cpu()
    pool = _SoftPool(boxes.cpu(), host, least, sigma)
    parts = candidates(host, least, max(2 * limit, _SOFT_TILE))
    following = next(parts)
    while len(pool.chosen) < limit:
        best = float(pool.seen.max(initial=-math.inf))
        if len(following) and best <= float(host[following[0]]):
            pool.add(following)
            following = next(parts, following[:0])
        elif best == -math.inf:
            break
        else:
            pool.look(best)
    numbers = torch.tensor(pool.chosen, dtype=torch.int64, device=scores.device)
    return numbers, torch.tensor(pool.lowered, dtype=scores.dtype, device=scores.device)


def is_fraction(value: float) -> bool:
    """Whether a threshold of overlaps is in [0, 1]."""
    return not math.isnan(value) and 0 <= value <= 1
