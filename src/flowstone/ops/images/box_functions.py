"""The public functions of boxes: drawn, chosen, cut out.

A box is ``[y1, x1, y2, x2]``, for `draw_bounding_boxes` and `crop_and_resize` in shares of the image.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.control.functional import map_fn
from flowstone.ops.images.box_crops import crop_and_resize_op
from flowstone.ops.images.box_drawing import draw_bounding_boxes_op, draw_bounding_boxes_v2_op
from flowstone.ops.images.box_suppression import (
    non_max_suppression_v3_op,
    non_max_suppression_v4_op,
    non_max_suppression_v5_op,
    non_max_suppression_with_overlaps_op,
)
from flowstone.ops.images.combined_suppression import combined_non_max_suppression_op

_LOWEST = -math.inf


def draw_bounding_boxes(images: Any, boxes: Any, name: str | None = None, colors: Any = None) -> Tensor:
    """Images [batch, height, width, 1, 3 or 4] with `boxes` [batch, n, 4] drawn into them.

    float32 or float16. `colors` [m, channels], of which each box takes the next; ten by default.
    InvalidArgumentError for shapes that do not fit.
    """
    if colors is None:
        return draw_bounding_boxes_op(images, boxes, name=name)
    return draw_bounding_boxes_v2_op(images, boxes, colors, name=name)


def crop_and_resize(
    image: Any,
    boxes: Any,
    box_ind: Any = None,
    crop_size: Any = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: str | None = None,
    box_indices: Any = None,
) -> Tensor:
    """`boxes` [n, 4] cut out of images [batch, height, width, channels] and resized.

    The result is float32, [n, *crop_size, channels].
    `box_ind` (also `box_indices`), int32 [n], names the image of each box. `method`: bilinear or nearest.
    What lies beyond the image has the `extrapolation_value`. Gradients flow to the image and to the boxes.
    OutOfRangeError for a number of no image, InvalidArgumentError for shapes or boxes that cannot be.
    """
    return crop_and_resize_op(
        image,
        boxes,
        box_ind if box_indices is None else box_indices,
        crop_size,
        method=method,
        extrapolation_value=extrapolation_value,
        name=name,
    )


def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    name: str | None = None,
) -> Tensor:
    """The numbers, int32, of the best of `boxes` [n, 4] by `scores` [n] that overlap little.

    From the best score downwards, a box is chosen if its intersection with each chosen one is at most
    `iou_threshold` of their union, its score is above `score_threshold`, and fewer than `max_output_size` are
    chosen. InvalidArgumentError for shapes that do not fit, or a threshold outside [0, 1].
    """
    with get_default_graph().name_scope(name or "non_max_suppression"):
        iou_threshold = convert_to_tensor(iou_threshold, name="iou_threshold")
        score_threshold = convert_to_tensor(score_threshold, name="score_threshold")
        return non_max_suppression_v3_op(boxes, scores, max_output_size, iou_threshold, score_threshold)


def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
    sorted_input: bool = False,
    canonicalized_coordinates: bool = False,
    tile_size: int = 512,
) -> tuple[Tensor, Tensor]:
    """`non_max_suppression`, and how many boxes were chosen.

    On request zeros follow them, up to `max_output_size` numbers.
    `sorted_input`, `canonicalized_coordinates` and `tile_size` have no influence on the result.
    `boxes` [..., n, 4] and `scores` [..., n] of several images give numbers [..., max_output_size] and counts
    [...]; these must be padded, else ValueError, and overlaps of just the threshold are too large there.
    """
    with get_default_graph().name_scope(name or "non_max_suppression_padded"):
        boxes = convert_to_tensor(boxes, name="boxes")
        if boxes.dims is not None and len(boxes.dims) > 2:
            if not pad_to_max_output_size:
                raise ValueError("'pad_to_max_output_size' (value False) must be True for batched input")
            scores = convert_to_tensor(scores, name="scores")
            return _of_images(boxes, scores, max_output_size, iou_threshold, score_threshold)
        result = non_max_suppression_v4_op.several(
            boxes,
            scores,
            max_output_size,
            convert_to_tensor(iou_threshold, name="iou_threshold"),
            convert_to_tensor(score_threshold, name="score_threshold"),
            pad_to_max_output_size=pad_to_max_output_size,
        )
        return result.selected_indices, result.valid_outputs


def _of_images(
    boxes: Tensor, scores: Tensor, max_output_size: Any, iou_threshold: Any, score_threshold: Any
) -> tuple[Tensor, Tensor]:
    """The choice in each image [..., n, 4] apart: numbers [..., max_output_size], and how many they are."""
    batch = F.Shape(scores)[:-1]
    images = F.Reshape(boxes, F.ConcatV2([[-1], F.Shape(boxes)[-2:]], 0))
    rows = F.Reshape(scores, F.ConcatV2([F.Shape(images)[:1], F.Shape(scores)[-1:]], 0))
    size = convert_to_tensor(max_output_size, dtypes.int32, name="max_output_size")
    # Overlaps above the number before the threshold are those from the threshold on.
    threshold = F.Maximum(F.NextAfter(convert_to_tensor(iou_threshold, dtypes.float32), np.float32(-1)), 0.0)
    least = convert_to_tensor(score_threshold, dtypes.float32)

    def choose(image: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        chosen = non_max_suppression_v4_op.several(
            *image, size, threshold, least, pad_to_max_output_size=True
        )
        return chosen.selected_indices, chosen.valid_outputs

    numbers, counts = map_fn(choose, (images, rows), dtype=(dtypes.int32, dtypes.int32))
    numbers = F.Reshape(numbers, F.ConcatV2([batch, F.Reshape(size, [1])], 0))
    return numbers, F.Reshape(counts, batch)


def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    soft_nms_sigma: Any = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """`non_max_suppression` with the scores of the chosen boxes.

    With a `soft_nms_sigma` above 0, overlaps lower scores, and `iou_threshold` has no influence.
    """
    with get_default_graph().name_scope(name or "non_max_suppression_with_scores"):
        result = non_max_suppression_v5_op.several(
            boxes,
            scores,
            max_output_size,
            convert_to_tensor(iou_threshold, name="iou_threshold"),
            convert_to_tensor(score_threshold, name="score_threshold"),
            convert_to_tensor(soft_nms_sigma, name="soft_nms_sigma"),
            pad_to_max_output_size=False,
        )
        return result.selected_indices, result.selected_scores


def non_max_suppression_overlaps(
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    name: str | None = None,
) -> Tensor:
    """`non_max_suppression` by the overlap of each two, a float32 matrix, in place of boxes."""
    with get_default_graph().name_scope(name or "non_max_suppression_overlaps"):
        overlap_threshold = convert_to_tensor(overlap_threshold, name="overlap_threshold")
        return non_max_suppression_with_overlaps_op(
            overlaps, scores, max_output_size, overlap_threshold, score_threshold
        )


def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> Any:
    """`non_max_suppression` of each class in each image: a named tuple, whose parts are padded with zeros.

    `boxes` [batch, n, 1 or classes, 4], `scores` [batch, n, classes]. Returns nmsed_boxes [batch, m, 4],
    nmsed_scores and nmsed_classes [batch, m], the best first, all float32, and valid_detections, int32
    [batch]. m is `max_total_size`, with `pad_per_class` at most `max_output_size_per_class` times the
    classes. `clip_boxes`: coordinates are cut to [0, 1].
    """
    with get_default_graph().name_scope(name or "combined_non_max_suppression"):
        return combined_non_max_suppression_op.several(
            boxes,
            scores,
            max_output_size_per_class,
            max_total_size,
            convert_to_tensor(iou_threshold, dtypes.float32, name="iou_threshold"),
            convert_to_tensor(score_threshold, dtypes.float32, name="score_threshold"),
            pad_per_class=pad_per_class,
            clip_boxes=clip_boxes,
        )


def extract_patches(
    images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Tensor:
    """The patches of `images` [n, h, w, c] as [n, rows, columns, kh·kw·c].

    `sizes`, `strides`, `rates`: [1, height, width, 1]; `padding`: SAME or VALID.
    """
    return F.ExtractImagePatches(
        images, ksizes=sizes, strides=strides, rates=rates, padding=padding, name=name
    )
