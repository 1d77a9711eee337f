"""Non-maximum suppression of several images and classes at once.

In each image the boxes of each class are chosen apart (`greedy_choice`). What remains of all classes is
sorted by score, cut to the number that is asked for, and padded with zeros.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.node import Node
from flowstone.framework.operation import Shapes, op
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.images.greedy_choice import chosen_boxes, is_fraction
from flowstone.ops.networks.windows import require_rank

combined_non_max_suppression_op = op(
    "CombinedNonMaxSuppression",
    "boxes: float, scores: float, max_output_size_per_class: int32, max_total_size: int32, "
    "iou_threshold: float, score_threshold: float -> nmsed_boxes: float, nmsed_scores: float, "
    "nmsed_classes: float, valid_detections: int32",
    "pad_per_class: bool = false ; clip_boxes: bool = true",
    host=["max_output_size_per_class", "max_total_size", "iou_threshold", "score_threshold"],
    capturable=False,
)
combined_non_max_suppression_op.no_gradient()


@combined_non_max_suppression_op.infer
def _(node: Node) -> Shapes:
    boxes, scores = require_rank(node.dims(0), 4), require_rank(node.dims(1), 3)
    for i in range(2, 6):
        require_rank(node.dims(i), 0)
    if boxes[3] not in (None, 4):
        raise ValueError(f"Dimension must be 4 but is {boxes[3]}")
    for one, other in zip(boxes[:2], scores[:2]):
        if None not in (one, other) and one != other:
            raise ValueError(f"Dimensions must be equal, but are {one} and {other}")
    if None not in (boxes[2], scores[2]) and boxes[2] not in (1, scores[2]):
        raise ValueError(f"third dimension of boxes must be either 1 or {scores[2]}, but is {boxes[2]}")
    batch, size = boxes[0], _static_size(node, scores[2])
    return [(batch, size, 4), (batch, size), (batch, size), (batch,)]


def _static_size(node: Node, classes: int | None) -> int | None:
    total, each = node.constant(3), node.constant(2)
    if total is None:
        return None
    if int(total) <= 0:
        raise ValueError(f"max_total_size should be > 0, got {int(total)}")
    if not node.attributes["pad_per_class"]:
        return int(total)
    if each is None or classes is None:
        return None
    return min(int(total), int(each) * classes)


def _check(boxes: torch.Tensor, scores: torch.Tensor, each: int, total: int, threshold: float) -> None:
    if boxes.dim() != 4 or boxes.shape[3] != 4:
        raise invalid(f"boxes must be 4-D with 4 coordinates, got shape {list(boxes.shape)}")
    if scores.dim() != 3 or scores.shape[:2] != boxes.shape[:2]:
        raise invalid(f"scores has incompatible shape {list(scores.shape)} for boxes {list(boxes.shape)}")
    if boxes.shape[2] not in (1, scores.shape[2]):
        raise invalid(f"third dimension of boxes must be either 1 or num classes, got {list(boxes.shape)}")
    if each <= 0:
        raise invalid(f"max_size_per_class must be positive, got {each}")
    if total <= 0:
        raise invalid(f"max_total_size must be > 0, got {total}")
    if not is_fraction(threshold):
        raise invalid(f"iou_threshold must be in [0, 1], got {threshold}")


def _of_image(
    boxes: torch.Tensor, scores: torch.Tensor, each: int, total: int, threshold: float, least: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The boxes, scores and classes of one image; `boxes` [n, 1 or classes, 4], `scores` [n, classes]."""
    found = []
    for kind in range(scores.shape[1]):
        own, score = boxes[:, kind if boxes.shape[1] > 1 else 0], scores[:, kind]
        numbers = chosen_boxes(own, score, each, threshold, least)
        found.append((own[numbers], score[numbers], torch.full_like(score[numbers], kind)))
    kept, best, kinds = (torch.cat(parts) for parts in zip(*found))
    order = torch.sort(best, descending=True, stable=True).indices[:total]
    return kept[order], best[order], kinds[order]


@combined_non_max_suppression_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    pads, clips = node.attributes["pad_per_class"], node.attributes["clip_boxes"]

    def run(boxes: Any, scores: Any, each: Any, total: Any, threshold: Any, least: Any) -> list[torch.Tensor]:
        limits = [x.item() for x in (each, total, threshold, least)]
        _check(boxes, scores, *limits[:3])
        size = min(limits[1], limits[0] * scores.shape[2]) if pads else limits[1]
        batch = len(boxes)
        results = [boxes.new_zeros(batch, size, 4), *(boxes.new_zeros(batch, size) for _ in range(2))]
        counts = []
        for i in range(batch if scores.shape[2] else 0):
            parts = _of_image(boxes[i], scores[i], limits[0], size, *limits[2:])
            counts.append(len(parts[1]))
            for result, part in zip(results, parts):
                result[i, : len(part)] = part
        if clips:
            results[0].clamp_(0, 1)
        return [*results, torch.tensor(counts or [0] * batch, dtype=torch.int32, device=boxes.device)]

    return run
