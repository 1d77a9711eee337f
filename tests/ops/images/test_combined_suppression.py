"""`tf.image.combined_non_max_suppression`: images that are computed together give what each alone does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags

_random = np.random.RandomState(3)
BATCH, COUNT, CLASSES = 7, 12, 3
SCORES = _random.randint(0, 9, [BATCH, COUNT, CLASSES]).astype(np.float32) / 10  # some are equal


def _boxes(columns: int) -> Any:
    corners = _random.rand(BATCH, COUNT, columns, 2)
    return np.concatenate([corners, corners + _random.rand(BATCH, COUNT, columns, 2)], -1).astype(np.float32)


@pytest.fixture(autouse=True, params=[0, 1])
def native(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without and with machine code."""
    monkeypatch.setattr(flags, "NATIVE", request.param)


def combined(boxes: Any, scores: Any, each: int, total: int, **options: Any) -> list[Any]:
    nodes = tf.image.combined_non_max_suppression(boxes, scores, each, total, **options)
    with tf.Session() as session:
        found: list[Any] = session.run(list(nodes))
    return found


@pytest.mark.parametrize("columns", [1, CLASSES])
@pytest.mark.parametrize(
    ("each", "total", "options"),
    [
        (4, 6, {}),
        (2, 20, {"iou_threshold": 0.3, "score_threshold": 0.25}),
        (20, 50, {"iou_threshold": 0.1, "pad_per_class": True, "clip_boxes": False}),
    ],
)
def test_images_together_are_as_each_alone(columns: int, each: int, total: int, options: Any) -> None:
    boxes = _boxes(columns)
    boxes[2, :, :, 2:] = boxes[2, :, :, :2]  # of no area
    together = combined(boxes, SCORES, each, total, **options)
    assert 0 < together[3].min() <= together[3].max() <= min(total, CLASSES * each)
    for i in range(BATCH):
        alone = combined(boxes[i : i + 1], SCORES[i : i + 1], each, total, **options)
        for one, other in zip(together, alone):
            np.testing.assert_array_equal(one[i], other[0])


def test_scores_that_are_no_numbers_are_left_out() -> None:
    scores = SCORES.copy()
    scores[:, ::2], scores[3] = np.nan, -np.inf
    boxes = _boxes(1)
    counts = combined(boxes, scores, 20, 50, iou_threshold=1.0)[3]
    assert counts.tolist() == [COUNT // 2 * CLASSES if i != 3 else 0 for i in range(BATCH)]


@pytest.mark.parametrize("columns", [1, CLASSES])
@pytest.mark.parametrize("each", [1, 5, 32, 33])
def test_many_boxes_are_chosen_as_in_each_image_alone(columns: int, each: int) -> None:
    """Also where the best boxes of an image rule each other out, or are no numbers."""
    count = 150
    random = np.random.RandomState(4)
    corners = random.rand(BATCH, count, columns, 2)
    boxes = np.concatenate([corners, corners + 0.1 + random.rand(BATCH, count, columns, 2)], -1)
    scores = random.randint(0, 40, [BATCH, count, CLASSES]) / 40.0
    boxes[1, :100], scores[1, :100] = boxes[1, :1], 2.0  # one box a hundred times, and it is the best
    scores[2, :80], scores[3, 1:], scores[4, ::2] = np.nan, np.nan, np.inf
    given = boxes.astype(np.float32), scores.astype(np.float32)
    options = {"iou_threshold": 0.4, "score_threshold": 0.2, "clip_boxes": False}
    together = combined(*given, each, 60, **options)
    assert together[3][1] > 1 or each == 1
    assert together[3][2] > 0
    for i in range(BATCH):
        alone = combined(given[0][i : i + 1], given[1][i : i + 1], each, 60, **options)
        for one, other in zip(together, alone):
            np.testing.assert_array_equal(one[i], other[0])
