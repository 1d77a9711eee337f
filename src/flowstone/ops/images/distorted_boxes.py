"""Random crops: of a size that is given, or of random sizes and aspect ratios that still show an object.

Crops that show an object are TensorFlow's own for the same seeds: attempts are drawn one by one, with its
roundings, and the first that meets the demands counts.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.windows import require_rank
from flowstone.ops.randomness.op_seeds import SEEDS, generator_of, own_sequence
from flowstone.ops.randomness.philox import State
from flowstone.ops.randomness.random_words import RandomWords
from flowstone.ops.randomness.stateless import state_of_seed

_AT_ONCE = 4  # blocks of random words; an attempt takes one at the most


class Demands(NamedTuple):
    """What a crop must fulfil; the ranges are (least, greatest), areas in shares of the image."""

    ratios: tuple[float, float]  # width / height
    areas: tuple[float, float]
    covered: float  # the least share of some object
    attempts: int
    allows_no_object: bool


def _pair(values: list[float], what: str, greatest: float) -> tuple[float, float]:
    if len(values) != 2:
        raise invalid(f"{what} field must specify 2 dimensions, got {values}")
    low, high = values
    if not (0 < low <= greatest and 0 < high <= greatest):
        raise invalid(f"{what} must be positive and at most {greatest}: {values}")
    return low, high


def _demands(node: Node, covered: float) -> Demands:
    a = node.attributes
    if a["max_attempts"] <= 0:
        raise invalid(f"Max attempts must be positive: {a['max_attempts']}")
    if not covered >= 0:
        raise invalid(f"Min object covered must be non-negative: {covered}")
    return Demands(
        _pair(list(a["aspect_ratio_range"]), "Aspect ratio range", math.inf),
        _pair(list(a["area_range"]), "Area range", 1.0),
        covered,
        a["max_attempts"],
        a["use_image_if_no_bounding_boxes"],
    )


def _image_size(size: torch.Tensor) -> tuple[int, int]:
    if size.dim() != 1:
        raise invalid(f"image_size must be 1-dimensional: {list(size.shape)}")
    if len(size) != 3:
        raise invalid(f"image_size must contain 3 elements: {list(size.shape)}")
    height, width, _ = size.tolist()
    if height < 0 or width < 0:
        raise invalid(f"Image height and width must not be negative, got {height} and {width}")
    return height, width


def _objects(boxes: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """The boxes in pixels, [n, 4]: y1, x1, y2, x2."""
    if boxes.dim() != 3:
        raise invalid(f"input boxes must be 3-dimensional [batch, num_boxes, coords]: {list(boxes.shape)}")
    if boxes.shape[2] != 4:
        raise invalid(f"bounding boxes must have shape [4], got {list(boxes.shape)}")
    flat = boxes.reshape(-1, 4)
    if not bool(((flat >= 0) & (flat <= 1)).all()):
        raise invalid(f"All bounding box coordinates must be in [0.0, 1.0]: {flat.tolist()}")
    return (flat * torch.tensor([height, width, height, width])).long()


Crop = tuple[int, int, int, int]  # y, x, height, width


def _columns(rows: int, ratio: np.float32) -> int:
    return int(np.rint(np.float32(rows) * ratio))


def _area(rows: int, ratio: np.float32) -> int:
    return rows * _columns(rows, ratio)


def _attempt(words: RandomWords, sizes: tuple[int, int], demands: Demands) -> Crop | None:
    """A random crop; None where it does not fit the image or has no allowed area. All in float32."""
    height, width = sizes
    low, high = map(np.float32, demands.ratios)
    ratio = np.float32(words.fraction()) * (high - low) + low
    least, most = (np.float32(share) * np.float32(width) * np.float32(height) for share in demands.areas)
    shortest, tallest = (int(np.rint(np.sqrt(area / ratio))) for area in (least, most))
    if _columns(tallest, ratio) > width:
        tallest = int(np.float32(width + 0.5 - 1e-7) / ratio)
    tallest = min(tallest, height)
    rows = min(shortest, tallest)
    if rows < tallest:
        rows += words.below(tallest - rows + 1)
    if _area(rows, ratio) < least:
        rows += 1
    if _area(rows, ratio) > most:
        rows -= 1
    columns = _columns(rows, ratio)
    if not (0 < rows <= height and 0 < columns <= width and least <= rows * columns <= most):
        return None
    top = words.below(height - rows) if rows < height else 0
    left = words.below(width - columns) if columns < width else 0
    return top, left, rows, columns


def _shows_object(crop: Crop, objects: list[list[int]], covered: float) -> bool:
    """Whether a crop has at least this share of one of the objects."""
    top, left, rows, columns = crop
    for y1, x1, y2, x2 in objects:
        high, wide = min(top + rows, y2) - max(top, y1), min(left + columns, x2) - max(left, x1)
        area = (y2 - y1) * (x2 - x1)
        if area > 0 and np.float32(max(high, 0) * max(wide, 0)) / np.float32(area) >= np.float32(covered):
            return True
    return False


def _crop(words: RandomWords, sizes: tuple[int, int], objects: list[list[int]], demands: Demands) -> Crop:
    """The first attempt that meets the demands, or the whole image."""
    if 0 in sizes:
        return 0, 0, *sizes
    if not objects:
        if not demands.allows_no_object:
            raise invalid(
                "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you "
                "wish to not provide any bounding boxes."
            )
        objects = [[0, 0, *sizes]]
    for _ in range(demands.attempts):
        crop = _attempt(words, sizes, demands)
        if crop is not None and _shows_object(crop, objects, demands.covered):
            return crop
    return 0, 0, *sizes


def _sample(size: torch.Tensor, boxes: torch.Tensor, demands: Demands, state: State) -> list[torch.Tensor]:
    height, width = sizes = _image_size(size)
    words = RandomWords(state, _AT_ONCE)
    top, left, rows, columns = _crop(words, sizes, _objects(boxes, height, width).tolist(), demands)
    edges = torch.tensor([top, left, top + rows, left + columns], dtype=torch.float32)
    box = edges / torch.tensor([height, width, height, width])
    begin = torch.tensor([top, left, 0], dtype=size.dtype)
    extent = torch.tensor([rows, columns, -1]).to(size.dtype)
    return [begin, extent, box.view(1, 1, 4)]


_TYPES = "T: type in [uint8, int8, int16, int32, int64]"
_RANGES = (
    "aspect_ratio_range: list(float) = [0.75, 1.33] ; area_range: list(float) = [0.05, 1] ; "
    "max_attempts: int = 100 ; use_image_if_no_bounding_boxes: bool = false"
)
_RESULTS = "begin: T, size: T, bboxes: float"


def _infer_sample(node: Node) -> Shapes:
    sizes, boxes = require_rank(node.dims(0), 1), require_rank(node.dims(1), 3)
    if sizes[0] not in (None, 3):
        raise ValueError(f"Dimension must be 3 but is {sizes[0]}")
    if boxes[2] not in (None, 4):
        raise ValueError(f"Dimension must be 4 but is {boxes[2]}")
    if len(node.inputs) > 2:
        require_rank(node.dims(2), 0)
    return [(3,), (3,), (1, 1, 4)]


# Sizes and places are the host's, as in TensorFlow: these have no GPU kernel.
sample_distorted_bounding_box_op = op(
    "SampleDistortedBoundingBox",
    f"image_size: T, bounding_boxes: float -> {_RESULTS}",
    f"{_TYPES} ; {SEEDS} ; min_object_covered: float = 0.1 ; {_RANGES}",
    stateful=True,
)
sample_distorted_bounding_box_v2_op = op(
    "SampleDistortedBoundingBoxV2",
    f"image_size: T, bounding_boxes: float, min_object_covered: float -> {_RESULTS}",
    f"{_TYPES} ; {SEEDS} ; {_RANGES}",
    stateful=True,
)
stateless_sample_distorted_bounding_box_op = op(
    "StatelessSampleDistortedBoundingBox",
    f"image_size: T, bounding_boxes: float, min_object_covered: float, seed: Tseed -> {_RESULTS}",
    f"{_TYPES} ; Tseed: type in [int32, int64] ; {_RANGES}",
)
for _declaration in (
    sample_distorted_bounding_box_op,
    sample_distorted_bounding_box_v2_op,
    stateless_sample_distorted_bounding_box_op,
):
    _declaration.infer(_infer_sample)
    _declaration.not_differentiable()


@sample_distorted_bounding_box_op.kernel(CPU)  # a box is four numbers, drawn until one fits
def _(node: Node, env: Environment) -> Kernel:
    sequence, covered = own_sequence(node, env), node.attributes["min_object_covered"]

    def run(size: torch.Tensor, boxes: torch.Tensor) -> list[torch.Tensor]:
        demands = _demands(node, covered)
        return _sample(size, boxes, demands, sequence.take_blocks(demands.attempts))

    return run


@sample_distorted_bounding_box_v2_op.kernel(CPU)  # a box is four numbers, drawn until one fits
def _(node: Node, env: Environment) -> Kernel:
    sequence = own_sequence(node, env)

    def run(size: torch.Tensor, boxes: torch.Tensor, covered: torch.Tensor) -> list[torch.Tensor]:
        if covered.dim():
            raise invalid(f"min_object_covered must be 0-D, got {list(covered.shape)}")
        demands = _demands(node, float(covered))
        return _sample(size, boxes, demands, sequence.take_blocks(demands.attempts))

    return run


@stateless_sample_distorted_bounding_box_op.kernel(CPU)  # a box is four numbers, drawn until one fits
def _(node: Node, env: Environment) -> Kernel:
    def run(
        size: torch.Tensor, boxes: torch.Tensor, covered: torch.Tensor, seed: torch.Tensor
    ) -> list[torch.Tensor]:
        if covered.dim():
            raise invalid(f"min_object_covered must be 0-D, got {list(covered.shape)}")
        return _sample(size, boxes, _demands(node, float(covered)), state_of_seed(seed))

    return run


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: Any = None,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> Any:
    """A random crop of an image that shows enough of an object: a named tuple (begin, size, bboxes).

    `image_size`: three integers, height, width and channels. `bounding_boxes`: the objects, float32
    [batch, n, 4] of ``[y1, x1, y2, x2]`` in [0, 1]. The crop has at least `min_object_covered` (0.1) of one
    object, a ratio of width to height in `aspect_ratio_range` (0.75, 1.33) and a share of the image in
    `area_range` (0.05, 1), or is the whole image after `max_attempts` (100). Without objects,
    `use_image_if_no_bounding_boxes` says that the image is one; else InvalidArgumentError, as for boxes and
    ranges that cannot be. The graph's seed has no influence, these two have. `begin` and `size` are for
    `tf.slice`; `bboxes` [1, 1, 4] is the crop as a box.
    """
    given = {
        "aspect_ratio_range": aspect_ratio_range,
        "area_range": area_range,
        "max_attempts": max_attempts,
        "use_image_if_no_bounding_boxes": use_image_if_no_bounding_boxes,
    }
    attributes = {key: value for key, value in given.items() if value is not None}
    with get_default_graph().name_scope(name or "sample_distorted_bounding_box"):
        return sample_distorted_bounding_box_v2_op.several(
            image_size,
            bounding_boxes,
            0.1 if min_object_covered is None else min_object_covered,
            seed=seed or 0,
            seed2=seed2 or 0,
            **attributes,
        )


# ---- of a given size

random_crop_op = op(
    "RandomCrop",
    "image: T, size: int64 -> output: T",
    f"T: type in [uint8, int8, int16, int32, int64, float, double] ; {SEEDS}",
    stateful=True,
    host=["size"],
    deprecated=(8, "tf.random_crop"),
)
random_crop_op.not_differentiable()


@random_crop_op.infer
def _(node: Node) -> Dims:
    channels = require_rank(node.dims(0), 3)[2]
    size = node.constant_dims(1)
    if size is not None and len(size) != 2:
        raise ValueError(f"Dimension must be 2 but is {len(size)}")
    return (*(size or (None, None)), channels)


@random_crop_op.kernel(CPU)  # a box is four numbers, drawn until one fits
def _(node: Node, env: Environment) -> Kernel:
    generator = generator_of(node, env)

    def run(image: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
        if image.dim() != 3:
            raise invalid(f"input must be 3-dimensional [height, width, channels]: {list(image.shape)}")
        if tuple(size.shape) != (2,):
            raise invalid(f"size must be a vector of size 2 (height, width): {list(size.shape)}")
        wanted = size.tolist()
        for what, length, count in zip(("height", "width"), image.shape, wanted):
            if count < 0:
                raise invalid(f"{what} must not be negative, got {count}")
            if count > length:
                raise errors.FailedPreconditionError(None, None, f"{what} must be <= {length}, got {count}")
        spans = zip(image.shape, wanted, torch.rand(2, generator=generator, dtype=torch.float64).tolist())
        for axis, (length, count, share) in enumerate(spans):
            image = image.narrow(axis, int(share * (length - count + 1)), count)
        return image.clone(memory_format=torch.contiguous_format)

    return run
