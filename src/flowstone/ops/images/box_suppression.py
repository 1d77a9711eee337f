"""Boxes chosen by score among those that overlap: all versions of non-maximum suppression.

===========================  ===========================================================================
NonMaxSuppression            with the threshold of overlaps as an attribute
NonMaxSuppressionV2          as an input
NonMaxSuppressionV3          and a score that boxes must exceed
NonMaxSuppressionV4          also the number of boxes, and the numbers padded with zeros on request
NonMaxSuppressionV5          also the scores, which overlaps lower softly on request
…WithOverlaps                with a matrix of overlaps in place of boxes
CombinedNonMaxSuppression    of several images and classes at once, all classes of an image together sorted
===========================  ===========================================================================

`greedy_choice` has the algorithm. Boxes are ``[y1, x1, y2, x2]``, of any diagonal corners.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.images.greedy_choice import (
    chosen_boxes,
    chosen_from_matrix,
    is_fraction,
    softly_chosen,
)

_TYPES = "T: type in [half, float] = float"
_THRESHOLDS = "T_threshold: type in [half, float] = float"
_LIMITS = ["max_output_size", "iou_threshold", "score_threshold"]

# ---- what all versions check


def _infer_numbers(node: Node) -> tuple[None]:
    _infer_candidates(node)
    return (None,)


def _infer_candidates(node: Node) -> None:
    """ValueError if boxes, scores or limits have shapes that cannot be."""
    columns = None if node.type == "NonMaxSuppressionWithOverlaps" else 4
    boxes, scores = node.dims(0), node.dims(1)
    for dims, rank in ((boxes, 2), (scores, 1), *((node.dims(i), 0) for i in range(2, len(node.inputs)))):
        if dims is not None and len(dims) != rank:
            raise ValueError(f"Shape must be rank {rank} but is rank {len(dims)}")
    if boxes and scores and None not in (boxes[0], scores[0]) and boxes[0] != scores[0]:
        raise ValueError(f"Dimensions must be equal, but are {boxes[0]} and {scores[0]}")
    width = columns or (boxes[0] if boxes else None)
    if boxes and None not in (boxes[1], width) and boxes[1] != width:
        raise ValueError(f"Dimension must be {width} but is {boxes[1]}")


def _check_candidates(boxes: torch.Tensor, scores: torch.Tensor, columns: int | None) -> None:
    if boxes.dim() != 2:
        raise invalid(f"boxes must be 2-D, got shape {list(boxes.shape)}")
    wanted = boxes.shape[0] if columns is None else columns
    if boxes.shape[1] != wanted:
        raise invalid(f"boxes must have {wanted} columns, got shape {list(boxes.shape)}")
    if scores.dim() != 1:
        raise invalid(f"scores must be 1-D, got shape {list(scores.shape)}")
    if scores.shape[0] != boxes.shape[0]:
        raise invalid(f"scores has incompatible shape: {list(scores.shape)} for {len(boxes)} boxes")


def _scalar(value: torch.Tensor, what: str) -> Any:
    if value.dim():
        raise invalid(f"{what} must be 0-D, got shape {list(value.shape)}")
    return value.item()


def _limit(value: torch.Tensor) -> int:
    limit = int(_scalar(value, "max_output_size"))
    if limit < 0:
        raise invalid(f"max_output_size must be non-negative, got {limit}")
    return limit


def _threshold(value: float) -> float:
    if not is_fraction(value):
        raise invalid(f"iou_threshold must be in [0, 1], got {value}")
    return value


# ---- numbers alone

non_max_suppression_op = op(
    "NonMaxSuppression",
    "boxes: float, scores: float, max_output_size: int32 -> selected_indices: int32",
    "iou_threshold: float = 0.5",
    host=["max_output_size"],
    capturable=False,
)
non_max_suppression_op.infer(_infer_numbers)
non_max_suppression_op.not_differentiable()


@non_max_suppression_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    threshold = node.attributes["iou_threshold"]

    def run(boxes: torch.Tensor, scores: torch.Tensor, limit: torch.Tensor) -> torch.Tensor:
        count, least = _limit(limit), _threshold(threshold)
        _check_candidates(boxes, scores, 4)
        return chosen_boxes(boxes, scores, count, least, -math.inf).int()

    return run


def _chosen_of(
    boxes: torch.Tensor,
    scores: torch.Tensor,
    limit: torch.Tensor,
    threshold: torch.Tensor,
    least: torch.Tensor | None,
) -> torch.Tensor:
    lowest = -math.inf if least is None else _scalar(least, "score_threshold")
    overlap = _threshold(_scalar(threshold, "iou_threshold"))
    count = _limit(limit)
    _check_candidates(boxes, scores, 4)
    return chosen_boxes(boxes, scores, count, overlap, lowest)


non_max_suppression_v2_op = op(
    "NonMaxSuppressionV2",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold -> selected_indices: int32",
    f"{_TYPES} ; {_THRESHOLDS}",
    host=_LIMITS[:2],
    capturable=False,
)
non_max_suppression_v2_op.infer(_infer_numbers)
non_max_suppression_v2_op.not_differentiable()


@non_max_suppression_v2_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return lambda boxes, scores, limit, threshold: _chosen_of(boxes, scores, limit, threshold, None).int()


_SCORED = (
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold "
    "-> selected_indices: int32"
)
non_max_suppression_v3_op = op(
    "NonMaxSuppressionV3", _SCORED, f"{_TYPES} ; {_THRESHOLDS}", host=_LIMITS, capturable=False
)
non_max_suppression_v3_op.infer(_infer_numbers)
non_max_suppression_v3_op.no_gradient()


@non_max_suppression_v3_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    return lambda *given: _chosen_of(*given).int()


non_max_suppression_with_overlaps_op = op(
    "NonMaxSuppressionWithOverlaps",
    "overlaps: float, scores: float, max_output_size: int32, overlap_threshold: float, "
    "score_threshold: float -> selected_indices: int32",
    host=["max_output_size", "overlap_threshold", "score_threshold"],
    capturable=False,
)
non_max_suppression_with_overlaps_op.infer(_infer_numbers)
non_max_suppression_with_overlaps_op.not_differentiable()


@non_max_suppression_with_overlaps_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def run(
        overlaps: torch.Tensor,
        scores: torch.Tensor,
        limit: torch.Tensor,
        threshold: torch.Tensor,
        least: torch.Tensor,
    ) -> torch.Tensor:
        _check_candidates(overlaps, scores, None)
        lowest, bound = _scalar(least, "score_threshold"), _scalar(threshold, "overlap_threshold")
        return chosen_from_matrix(overlaps, scores, lowest, _limit(limit), bound).int()

    return run


# ---- with the number of boxes, and their scores


def _infer_padded(node: Node) -> Shapes:
    _infer_candidates(node)
    limit = node.constant(2) if node.attributes["pad_to_max_output_size"] else None
    numbers = (None if limit is None else int(limit),)
    return [numbers, ()] if node.type == "NonMaxSuppressionV4" else [numbers, numbers, ()]


def _padded(values: torch.Tensor, limit: int, pads: bool) -> torch.Tensor:
    missing = limit - values.shape[0]
    return torch.constant_pad_nd(values, [0, missing]) if pads and missing > 0 else values


def _count(values: torch.Tensor) -> torch.Tensor:
    return torch.scalar_tensor(values.shape[0], dtype=torch.int32, device=values.device)


non_max_suppression_v4_op = op(
    "NonMaxSuppressionV4",
    f"{_SCORED}, valid_outputs: int32",
    f"{_TYPES} ; {_THRESHOLDS} ; pad_to_max_output_size: bool = false",
    host=_LIMITS,
    capturable=False,
)
non_max_suppression_v4_op.infer(_infer_padded)
non_max_suppression_v4_op.no_gradient()


@non_max_suppression_v4_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    pads = node.attributes["pad_to_max_output_size"]

    def run(boxes: Any, scores: Any, limit: Any, threshold: Any, least: Any) -> tuple[torch.Tensor, ...]:
        numbers = _chosen_of(boxes, scores, limit, threshold, least).int()
        return _padded(numbers, int(limit), pads), _count(numbers)

    return run


non_max_suppression_v5_op = op(
    "NonMaxSuppressionV5",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: T, soft_nms_sigma: T -> "
    "selected_indices: int32, selected_scores: T, valid_outputs: int32",
    f"{_TYPES} ; pad_to_max_output_size: bool = false",
    host=[*_LIMITS, "soft_nms_sigma"],
    capturable=False,
)
non_max_suppression_v5_op.infer(_infer_padded)
non_max_suppression_v5_op.no_gradient()


@non_max_suppression_v5_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    pads = node.attributes["pad_to_max_output_size"]

    def run(
        boxes: Any, scores: Any, limit: Any, threshold: Any, least: Any, sigma: Any
    ) -> tuple[torch.Tensor, ...]:
        softness = _scalar(sigma, "soft_nms_sigma")
        if not softness >= 0:
            raise invalid(f"soft_nms_sigma must be non-negative, got {softness}")
        if softness:
            _threshold(_scalar(threshold, "iou_threshold"))
            _check_candidates(boxes, scores, 4)
            found = softly_chosen(boxes, scores, _limit(limit), _scalar(least, "score_threshold"), softness)
            numbers, kept = found
        else:
            numbers = _chosen_of(boxes, scores, limit, threshold, least)
            kept = scores.index_select(0, numbers)
        size = int(limit)
        return _padded(numbers.int(), size, pads), _padded(kept, size, pads), _count(numbers)

    return run
