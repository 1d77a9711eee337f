"""Random crops keep to what is demanded of them; seeds repeat them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.ops.images.distorted_boxes import sample_distorted_bounding_box

SIZE = [40, 80, 3]
BOX = np.array([[[0.2, 0.3, 0.6, 0.9], [0.9, 0.9, 1, 1]]], np.float32)
# Image sizes, ratios, areas, covered, attempts, boxes; what TensorFlow draws in runs with seed 3, and by
# the seeds [3, 2] and [4, 2]: y, x, height, width.
CROPS = json.loads((Path(__file__).parents[2] / "golden" / "images" / "crops.json").read_text())


def test_crops_have_the_area_the_ratio_and_a_part_of_an_object() -> None:
    ranges = {"aspect_ratio_range": [0.5, 2.0], "area_range": [0.1, 0.6], "min_object_covered": 0.4}
    crop = sample_distorted_bounding_box(SIZE, BOX, seed=7, **ranges)
    objects = BOX[0] * [40, 80, 40, 80]
    found = set()
    with tf.Session() as session:
        for _ in range(200):
            begin, size, box = session.run(list(crop))
            (top, left, zero), (rows, columns, rest) = begin, size
            assert (zero, rest) == (0, -1)
            assert 0 <= top <= 40 - rows and 0 <= left <= 80 - columns
            assert 0.1 <= rows * columns / 3200 <= 0.6
            assert (columns + 0.5) / rows >= 0.5 and (columns - 0.5) / rows <= 2.0
            edges = np.array([top, left, top + rows, left + columns])
            np.testing.assert_allclose(box, [[edges / [40, 80, 40, 80]]], rtol=1e-6)
            common = np.minimum(edges[2:], objects[:, 2:]) - np.maximum(edges[:2], objects[:, :2])
            area = (objects[:, 2] - objects[:, 0]) * (objects[:, 3] - objects[:, 1])
            assert (np.prod(np.maximum(common, 0), 1) / area).max() >= 0.39
            found.add((top, left, rows, columns))
    assert len(found) > 150


@pytest.mark.parametrize("case", CROPS)
def test_crops_are_those_of_tensorflow(case: Any) -> None:
    size, ratios, areas, covered, attempts, boxes, runs, by_seed = case
    size, boxes = [*size, 3], np.array(boxes, np.float32).reshape(1, -1, 4)
    given = {"aspect_ratio_range": ratios, "area_range": areas, "max_attempts": attempts}
    given |= {"min_object_covered": covered, "use_image_if_no_bounding_boxes": True}
    crop = sample_distorted_bounding_box(size, boxes, seed=3, **given)
    seed = tf.placeholder(tf.int32, [2])
    other = tf.raw_ops.StatelessSampleDistortedBoundingBox(
        image_size=size, bounding_boxes=boxes, seed=seed, **given
    )
    with tf.Session() as session:
        found = [session.run(crop[:2]) for _ in runs]
        found += [session.run(other[:2], {seed: [number, 2]}) for number in (3, 4)]
    assert [[*begin[:2], *extent[:2]] for begin, extent in found] == [*runs, *by_seed]


def test_equal_seeds_give_equal_crops() -> None:
    values = []
    for seed in (1, 1, 2):
        with tf.Graph().as_default(), tf.Session() as session:
            begin = sample_distorted_bounding_box(SIZE, BOX, seed=seed).begin
            values.append([session.run(begin).tolist() for _ in range(5)])
    assert values[0] == values[1] != values[2]


def test_crops_of_old_graphs_have_their_size_and_every_place() -> None:
    image = np.arange(4 * 5 * 2, dtype=np.int32).reshape(4, 5, 2)
    with tf.Graph().as_default() as graph:
        graph.producer = 7
        crop = F.RandomCrop(image, np.array([3, 4], np.int64), seed=3)
        negative = F.RandomCrop(image, np.array([3, -1], np.int64), seed=3)
    assert crop.shape.as_list() == [3, 4, 2]
    places = set()
    with tf.Session(graph=graph) as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="got -1"):
            session.run(negative)
        for _ in range(60):
            found = session.run(crop)
            top, left = divmod(int(found[0, 0, 0]) // 2, 5)
            np.testing.assert_array_equal(found, image[top : top + 3, left : left + 4])
            places.add((top, left))
    assert places == {(0, 0), (0, 1), (1, 0), (1, 1)}
