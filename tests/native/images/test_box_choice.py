"""The choice of boxes by machine code, beside the one block by block."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.images import box_choice
from flowstone.ops.images.greedy_choice import chosen_boxes, softly_chosen

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
CODE = box_choice.ChoiceCode()
CASES = [(0, 1.0, 5), (30, 0.5, 0), (30, 0.5, 5), (300, 0.4, 100), (3000, 0.05, 700), (3000, 2.0, 9000)]


@pytest.fixture(autouse=True)
def without(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is compared with has no machine code."""
    monkeypatch.setattr(flags, "NATIVE", 0)
    yield


def given(count: int, size: float, is_strange: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Boxes of up to that size, of any diagonal corners, and scores of which some are equal; strange ones
    have infinities, NaN, and no area."""
    chance = torch.Generator().manual_seed(count)
    corner = torch.rand(count, 2, generator=chance)
    boxes = torch.cat([corner, corner + (torch.rand(count, 2, generator=chance) - 0.5) * size], 1)
    scores = torch.randint(0, max(count // 2, 1), (count,), generator=chance).float() / max(count, 1) - 0.2
    if is_strange and count > 20:
        boxes[5], boxes[7, 0], boxes[8, 3], boxes[9] = math.nan, math.nan, math.nan, math.inf
        boxes[11, 2], boxes[13, 0], boxes[15] = math.inf, -math.inf, 0
        scores[2], scores[3], scores[6], scores[10], scores[12] = math.nan, math.inf, -math.inf, 0.0, -0.0
    return boxes, scores


@pytest.mark.parametrize("is_strange", [False, True])
@pytest.mark.parametrize("least", [-math.inf, 0.1, math.nan])
@pytest.mark.parametrize("threshold", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("case", CASES)
def test_the_same_boxes(
    case: tuple[int, float, int], threshold: float, least: float, is_strange: bool
) -> None:
    count, size, limit = case
    boxes, scores = given(count, size, is_strange)
    expected = chosen_boxes(boxes, scores, limit, threshold, least)
    assert CODE.choose(boxes, scores, limit, threshold, least).tolist() == expected.tolist()


@pytest.mark.parametrize("is_strange", [False, True])
@pytest.mark.parametrize("least", [-math.inf, 0.1])
@pytest.mark.parametrize("sigma", [0.1, 0.5])
@pytest.mark.parametrize("case", CASES[:-2])
def test_the_same_boxes_softly(
    case: tuple[int, float, int], sigma: float, least: float, is_strange: bool
) -> None:
    count, size, limit = case
    boxes, scores = given(count, size, is_strange)
    if not host.has("Sleef_expf8_u10") and not host.has("Sleef_expf16_u10"):
        pytest.skip("no exponential function")
    numbers, lowered = softly_chosen(boxes, scores, limit, least, sigma)
    found, left = CODE.choose_softly(boxes, scores, limit, least, sigma)
    assert found.tolist() == numbers.tolist()
    torch.testing.assert_close(left, lowered, rtol=1e-5, atol=0, equal_nan=True)


def test_rows_and_scores_that_are_apart_in_memory() -> None:
    boxes, scores = given(300, 0.4, False)
    wide, every = torch.zeros(300, 3, 4), torch.zeros(300, 2)
    wide[:, 1], every[:, 1] = boxes, scores
    expected = chosen_boxes(boxes, scores, 50, 0.3, 0.0).tolist()
    assert CODE.choose(wide[:, 1], every[:, 1], 50, 0.3, 0.0).tolist() == expected
    assert CODE.choose(boxes.t().contiguous().t(), scores, 50, 0.3, 0.0).tolist() == expected


@pytest.mark.parametrize("sigma", [0.0, 0.3])
def test_sessions_give_the_same_with_and_without(monkeypatch: pytest.MonkeyPatch, sigma: float) -> None:
    boxes, scores = (each.numpy() for each in given(300, 0.4, True))
    boxes = np.nan_to_num(boxes, posinf=2, neginf=-2)
    results = []
    for native in (0, 1):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            chosen = tf.image.non_max_suppression_with_scores(boxes, scores, 40, 0.4, 0.01, sigma)
            results.append(session.run([*chosen, tf.image.non_max_suppression(boxes, scores, 9)]))
    assert len(results[0][0]) == 40
    for one, other in zip(*results):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_nothing_is_offered_without_the_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    assert box_choice.box_choice(False) is None
    monkeypatch.setattr(flags, "NATIVE", 1)
    assert box_choice.box_choice(False) is not None
