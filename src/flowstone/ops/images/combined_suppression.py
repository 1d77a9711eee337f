"""Non-maximum suppression of several images and classes at once.

In each image the boxes of each class are chosen apart (`greedy_choice`). What remains of all classes is
sorted by score, cut to the number that is asked for, and padded with zeros. On a host machine code chooses in
all of them, where there is the native tier. Elsewhere the best boxes of all images and
classes are looked at together; an image for which they do not suffice is computed by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.machine.image_code import BoxChoice, box_choice
from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.images.greedy_choice import chosen_boxes, chosen_in_columns, is_fraction
from flowstone.ops.networks.windows import require_rank

combined_non_max_suppression_op = op(
    "CombinedNonMaxSuppression",
    "boxes: float, scores: float, max_output_size_per_class: int32[], max_total_size: int32[], "
    "iou_threshold: float[], score_threshold: float[] -> nmsed_boxes: float, nmsed_scores: float, "
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


_TOGETHER = 64  # boxes of a class, the best ones, that are looked at in all images and classes at once
_FEW_COLUMNS = 8  # classes of all images, of which fewer are computed one by one
_AT_ONCE = 2**17  # scores that are


def _images_at_once(batch: int, boxes: int, classes: int, limit: int) -> Iterator[slice]:
    """The images that are computed together: some, where the best boxes are likely enough."""
    each = boxes * classes
    step = max(_AT_ONCE // each, 1) if each > 0 and min(boxes, 2 * limit) <= _TOGETHER else 1
    for first in range(0, batch if each else 0, step):
        yield slice(first, first + step)


def _fill(
    results: list[torch.Tensor],
    counts: torch.Tensor,
    boxes: torch.Tensor,
    scores: torch.Tensor,
    limits: list[Any],
) -> None:
    """Writes the boxes, scores and classes of some images over the zeros of `results`, and their numbers."""
    each, _, threshold, least = limits
    size, (batch, count, classes) = results[1].shape[1], scores.shape
    rest = list(range(batch))
    if batch * classes >= _FEW_COLUMNS and min(count, 2 * each) <= _TOGETHER:
        *parts, is_whole = _of_images(boxes, scores, each, size, threshold, least)
        kept = parts[1] > -math.inf
        counts.copy_(kept.sum(1))
        for result, part in zip(results, parts):
            shown = kept[:, :, None] if part.dim() == 3 else kept
            result[:, : part.shape[1]] = torch.where(shown, part, 0)
        rest = torch.nonzero(~is_whole).squeeze(1).tolist()
    for i in rest:
        parts = [*_of_image(boxes[i], scores[i], each, size, threshold, least)]
        counts[i] = len(parts[1])
        for result, part in zip(results, parts):
            result[i, : len(part)] = part
            result[i, len(part) :] = 0


def _best(scores: torch.Tensor, least: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The best scores [boxes, …] in their order, -inf where others that are left out are as good; the numbers
    of their boxes; and whether any above `least` are left out."""
    order = scores.topk(min(len(scores), _TOGETHER + 1), 0, sorted=False).indices.sort(0).values
    best, places = scores.gather(0, order).sort(dim=0, descending=True, stable=True)
    order = order.gather(0, places)
    if len(scores) <= _TOGETHER:
        return best, order, torch.zeros_like(best[0], dtype=torch.bool)
    best, next_best = best[:-1], best[-1]
    return best.masked_fill(best <= next_best, -math.inf), order[:-1], next_best > least


def _of_images(
    boxes: torch.Tensor, scores: torch.Tensor, each: int, total: int, threshold: float, least: float
) -> tuple[torch.Tensor, ...]:
    """`_of_image` of images [batch, …], with the score -inf in the places that are left, and of which images
    that is the whole answer: only the best boxes of each class are looked at."""
    batch, count, classes = scores.shape
    scores = scores.nan_to_num(-math.inf, math.inf, -math.inf)  # NaN would be the best
    best, order, more = _best(scores.permute(1, 0, 2), least)
    count = len(best)
    own = boxes.permute(1, 0, 2, 3).expand(-1, -1, classes, -1)
    own = own.gather(0, order.unsqueeze(3).expand(-1, -1, -1, 4))
    columns = (own.reshape(count, -1, 4), best.reshape(count, -1))
    chosen = chosen_in_columns(*columns, each, threshold, least).view(best.shape)
    is_whole = ~(more & (chosen.sum(0) < each)).any(1)
    best = best.masked_fill(~chosen, -math.inf)
    flat = best.permute(1, 2, 0).reshape(batch, -1)
    found, places = flat.sort(dim=1, descending=True, stable=True)
    found, places = found[:, :total], places[:, :total]
    own = own.permute(1, 2, 0, 3).reshape(batch, -1, 4)
    kept = own.gather(1, places.unsqueeze(2).expand(-1, -1, 4))
    return kept, found, (places // count).to(scores.dtype), is_whole


def _fill_at_once(
    native: BoxChoice,
    results: list[torch.Tensor],
    counts: torch.Tensor,
    boxes: torch.Tensor,
    scores: torch.Tensor,
    limits: list[Any],
) -> None:
    """`_fill` by machine code, of all images."""
    batch = len(scores)
    numbers, found = native.choose_each(boxes, scores, limits[0], *limits[2:])
    left = torch.arange(numbers.shape[2]) >= found.unsqueeze(2)
    numbers.masked_fill_(left, 0)
    best = scores.transpose(1, 2).gather(2, numbers).masked_fill_(left, -math.inf)
    best, places = best.view(batch, -1).sort(dim=1, descending=True, stable=True)
    size = min(results[1].shape[1], best.shape[1])
    best, places = best[:, :size], places[:, :size]
    shown, kinds = best > -math.inf, places // max(numbers.shape[2], 1)
    rows = numbers.view(batch, -1).gather(1, places)
    own = boxes.flatten(1, 2)
    rows = rows * boxes.shape[2] + (kinds if boxes.shape[2] > 1 else 0)
    own = own.gather(1, rows.unsqueeze(2).expand(-1, -1, 4))
    for result, part in zip(results, (own, best, kinds.to(best.dtype))):
        result[:, :size] = torch.where(shown.unsqueeze(2) if part.dim() == 3 else shown, part, 0)
    counts.copy_(shown.sum(1))


@combined_non_max_suppression_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    pads, clips = node.attributes["pad_per_class"], node.attributes["clip_boxes"]

    def run(boxes: Any, scores: Any, each: Any, total: Any, threshold: Any, least: Any) -> list[torch.Tensor]:
        limits = [x.item() for x in (each, total, threshold, least)]
        _check(boxes, scores, *limits[:3])
        size = min(limits[1], limits[0] * scores.shape[2]) if pads else limits[1]
        batch = len(boxes)
        results = [boxes.new_zeros(batch, size, 4), *(boxes.new_zeros(batch, size) for _ in range(2))]
        counts = torch.zeros(batch, dtype=torch.int32, device=boxes.device)
        native = box_choice(False) if boxes.device.type == "cpu" and scores.numel() else None
        if native is not None:
            _fill_at_once(native, results, counts, boxes, scores, limits)
        for images in () if native else _images_at_once(batch, scores.shape[1], scores.shape[2], limits[0]):
            some = [result[images] for result in results]
            _fill(some, counts[images], boxes[images], scores[images], limits)
        if clips:
            results[0].clamp_(0, 1)
        return [*results, counts]

    return run
