"""`tf.image.non_max_suppression_padded` of several images at once: the choices are TensorFlow 2.21's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

_random = np.random.RandomState(1)
_CORNERS = _random.rand(3, 15, 2) * 0.4
_SIZES = 0.2 + _random.rand(3, 15, 2) * 0.4
BOXES = np.concatenate([_CORNERS, _CORNERS + _SIZES], -1).astype(np.float32)
SCORES = _random.rand(3, 15).astype(np.float32)
HALVES = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.5], [0, 0.5, 1, 1]]], np.float32)


def chosen(boxes: Any, scores: Any, size: Any, feeds: Any = None, **options: Any) -> tuple[Any, Any]:
    nodes = tf.image.non_max_suppression_padded(boxes, scores, size, pad_to_max_output_size=True, **options)
    with tf.Session() as session:
        numbers, counts = session.run(nodes, feeds)
    assert numbers.dtype == counts.dtype == np.int32
    return numbers.tolist(), counts.tolist()


@pytest.mark.parametrize(
    ("options", "numbers", "counts"),
    [
        ({}, [[9, 14, 5, 2, 12, 8], [5, 4, 0, 13, 14, 7], [1, 7, 8, 13, 0, 14]], [6, 6, 6]),
        (
            {"iou_threshold": 0.2},
            [[9, 12, 0, 0, 0, 0], [5, 4, 0, 13, 0, 0], [1, 7, 13, 0, 0, 0]],
            [2, 4, 4],
        ),
        (
            {"score_threshold": 0.6},
            [[9, 14, 5, 2, 12, 0], [5, 4, 0, 13, 14, 7], [1, 7, 8, 13, 0, 0]],
            [5, 6, 4],
        ),
        (
            {"iou_threshold": 0.2, "score_threshold": 0.6, "canonicalized_coordinates": True},
            [[9, 12, 0, 0, 0, 0], [5, 4, 0, 13, 0, 0], [1, 7, 13, 0, 0, 0]],
            [2, 4, 3],
        ),
        (
            {"iou_threshold": 0.3, "tile_size": 4},
            [[9, 12, 0, 0, 0, 0], [5, 4, 0, 13, 8, 12], [1, 7, 13, 0, 14, 4]],
            [3, 6, 6],
        ),
    ],
)
def test_choices_are_tensorflows(options: Any, numbers: Any, counts: Any) -> None:
    assert chosen(BOXES, SCORES, 6, **options) == (numbers, counts)
    assert chosen(BOXES[None], SCORES[None], tf.constant(6), **options) == ([numbers], [counts])
    assert chosen(BOXES[..., [2, 1, 0, 3]], SCORES, 6, **options) == (numbers, counts)


def test_each_image_is_chosen_from_as_if_it_were_alone() -> None:
    numbers, counts = chosen(BOXES, SCORES, 20)
    for i in range(3):
        assert chosen(BOXES[i], SCORES[i], 20) == (numbers[i], counts[i])


def test_an_overlap_of_just_the_threshold_is_too_large() -> None:
    scores = np.array([[0.9, 0.8, 0.7]], np.float32)
    assert chosen(HALVES, scores, 3, iou_threshold=0.5) == ([[0, 0, 0]], [1])  # TensorFlow's
    assert chosen(HALVES, scores, 3, iou_threshold=0.6) == ([[0, 1, 2]], [3])
    assert chosen(HALVES, scores, 3, iou_threshold=0.6, score_threshold=np.float32(0.8)) == ([[0, 0, 0]], [1])


def test_shapes() -> None:
    function = tf.image.non_max_suppression_padded
    boxes, scores = tf.placeholder(tf.float32, [None, None, 4]), tf.placeholder(tf.float32, [None, None])
    numbers, counts = function(boxes, scores, 5, pad_to_max_output_size=True)
    assert numbers.shape.as_list() == [None, 5]
    assert counts.shape.as_list() == [None]
    with tf.Session() as session:
        found = session.run([numbers, counts], {boxes: BOXES[:, :2], scores: SCORES[:, :2]})
        assert [each.shape for each in found] == [(3, 5), (3,)]
        found = session.run([numbers, counts], {boxes: BOXES[:0], scores: SCORES[:0]})
        assert [each.shape for each in found] == [(0, 5), (0,)]
        found = session.run([numbers, counts], {boxes: BOXES[:, :0], scores: SCORES[:, :0]})
        assert [each.tolist() for each in found] == [[[0] * 5] * 3, [0] * 3]
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(numbers, {boxes: BOXES, scores: SCORES[:2]})
    with pytest.raises(ValueError, match="must be True for batched input"):
        function(BOXES, SCORES, 5)


def test_boxes_have_four_numbers_also_where_their_number_is_unknown() -> None:
    boxes = tf.placeholder(tf.float32, [None, 5])
    with pytest.raises(ValueError, match="4"):
        tf.image.non_max_suppression(boxes, tf.placeholder(tf.float32, [None]), 3)
