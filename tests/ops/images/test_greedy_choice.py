"""Choices among many boxes, block by block and by machine code, against the plain definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from flowstone.framework import flags
from flowstone.native.offers import offer_all
from flowstone.ops.images.greedy_choice import before_rounding, chosen_boxes, chosen_in_columns, softly_chosen

offer_all()


@pytest.fixture(autouse=True, params=[0, 1])
def native(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without and with machine code."""
    monkeypatch.setattr(flags, "NATIVE", request.param)


def random_boxes(count: int, size: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Boxes of up to that size in the unit square, and scores of which some are equal."""
    random = np.random.default_rng(seed)
    corner = random.uniform(0, 1, (count, 2))
    other = corner + random.uniform(-size, size, (count, 2))
    boxes = np.concatenate([corner, other], 1).astype(np.float32)
    return boxes, (random.integers(0, count // 2, count) / count).astype(np.float32)


def overlaps_with(boxes: np.ndarray, one: int) -> np.ndarray:
    """The intersection of each box with one, over their union."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    area = (high - low).prod(1)
    common = np.maximum(np.minimum(high, high[one]) - np.maximum(low, low[one]), 0).prod(1)
    return np.where((area > 0) & (area[one] > 0), common / np.maximum(area + area[one] - common, 1e-30), 0)


def reference(boxes: np.ndarray, scores: np.ndarray, limit: int, threshold: float, least: float) -> list[int]:
    """The choice one by one."""
    left = [int(i) for i in np.argsort(-scores, kind="stable") if scores[i] > least]
    found: list[int] = []
    while left and len(found) < limit:
        found.append(left[0])
        ruled_out = overlaps_with(boxes, left[0]) > threshold
        left = [i for i in left[1:] if not ruled_out[i]]
    return found


@pytest.mark.parametrize("size", [0.02, 0.2, 2.0])
@pytest.mark.parametrize("threshold", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("limit", [3, 700, 10_000])
def test_blocks_give_the_choice_one_by_one(size: float, threshold: float, limit: int) -> None:
    boxes, scores = random_boxes(2500, size)
    found = chosen_boxes(torch.from_numpy(boxes), torch.from_numpy(scores), limit, threshold, 0.05)
    assert found.tolist() == reference(boxes, scores, limit, threshold, 0.05)


@pytest.mark.parametrize("threshold", [0.0, 0.25, 0.3, 0.5, float(np.float16(0.3)), 2.0**-24, 1.0])
def test_a_limit_before_rounding_decides_as_one_after_it(threshold: float) -> None:
    """By all pairs of neighbours of float16, the middles between them, and what is next to these."""
    halves = np.arange(0x4000, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = (halves[1:] + halves[:-1]) / 2
    near = [np.nextafter(middles, np.float32(side)) for side in (0, 9)]
    found = np.concatenate([halves, middles, *near])
    np.testing.assert_array_equal(
        found > before_rounding(threshold), found.astype(np.float16).astype(float) > threshold
    )


@pytest.mark.parametrize("threshold", [0.25, 0.5, float(np.float16(0.3))])
def test_overlaps_of_float16_are_rounded_once(threshold: float) -> None:
    boxes, scores = (x.astype(np.float16) for x in random_boxes(300, 0.8))
    exact = boxes.astype(np.float32)
    ratios = np.stack([overlaps_with(exact, i) for i in range(len(boxes))]).astype(np.float16)
    left = [int(i) for i in np.argsort(-scores, kind="stable")]
    expected: list[int] = []
    while left:
        expected.append(left[0])
        left = [i for i in left[1:] if ratios[expected[-1], i] <= threshold]
    found = chosen_boxes(torch.from_numpy(boxes), torch.from_numpy(scores), 300, threshold, -1.0)
    assert found.tolist() == expected


def test_more_boxes_are_chosen_than_one_comparison_takes() -> None:
    places = np.arange(10_000, dtype=np.float32)[:, None] * 2
    boxes = np.concatenate([places, places, places + 1, places + 1], 1)
    twice = torch.from_numpy(np.concatenate([boxes, boxes + 0.1]))
    found = chosen_boxes(twice, torch.arange(20_000, 0, -1).float(), 20_000, 0.5, 0.0)
    assert found.tolist() == list(range(10_000))


@pytest.mark.parametrize(("count", "size", "limit"), [(300, 0.4, 100), (3000, 0.05, 700), (3000, 2.0, 20)])
def test_overlaps_lower_scores_softly(count: int, size: float, limit: int) -> None:
    boxes, _ = random_boxes(count, size)
    scores = np.random.default_rng(2).permutation(np.linspace(0, 1, count)).astype(np.float32)
    numbers, lowered = softly_chosen(torch.from_numpy(boxes), torch.from_numpy(scores), limit, 0.02, 0.3)
    current, found = scores.astype(np.float64), []
    alive = current > 0.02
    while alive.any() and len(found) < limit:
        best = int(np.argmax(np.where(alive, current, -1)))
        found.append(best)
        alive[best] = False
        weight = np.exp(-(overlaps_with(boxes, best) ** 2) / 0.6)
        expected = current[best]
        assert abs(lowered[len(found) - 1] - expected) < 1e-5
        current = np.where(alive, current * weight, current)
        alive &= current > 0.02
    assert len(found) == len(numbers)


def test_columns_are_chosen_as_each_alone() -> None:
    random = np.random.RandomState(5)
    corners = random.rand(20, 9, 2)
    boxes = np.concatenate([corners, corners + random.rand(20, 9, 2)], -1)
    scores = torch.from_numpy(random.rand(20, 9)).sort(dim=0, descending=True).values
    found = chosen_in_columns(torch.from_numpy(boxes), scores, 5, 0.3, 0.2)
    for i in range(9):
        alone = chosen_boxes(torch.from_numpy(boxes[:, i]), scores[:, i], 5, 0.3, 0.2)
        assert found[:, i].nonzero().squeeze(1).tolist() == alone.tolist()
    assert 1 < int(found.sum(0).max()) <= 5
