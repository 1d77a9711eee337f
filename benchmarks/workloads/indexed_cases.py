"""Larger inputs of ops whose indices, boxes, lengths and ranks stay few if only shapes grow, for the sweep.

`INDEXED` is to `scaled_cases.py` what `OWN` of `own_cases.py` is: there are as many segment numbers as rows,
crops that have together the size of the images, transforms along whole axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from own_cases import Draw, Held, Inputs

WIDTH = 64  # of a row


def _segments(*more: Any, is_sorted: bool = True) -> list[tuple[str, Callable[[Draw], Inputs]]]:
    """Rows in segments of four, and single numbers in long ones; `more` inputs are functions of the count."""

    def inputs(width: int, length: int) -> Callable[[Draw], Inputs]:
        def made(d: Draw) -> Inputs:
            rows = d.n // width
            count = max(1, rows // length)
            ids = d.ints(0, count, rows)
            ids = np.sort(ids) if is_sorted else ids
            return [d.normal(rows, *([width] if width > 1 else [])), ids, *(f(count) for f in more)], {}

        return made

    return [("of rows", inputs(WIDTH, 4)), ("of numbers", inputs(1, 100))]


def _picked(gradient: bool) -> Callable[[Draw], Inputs]:
    """Rows of a table, four a segment, or the gradient for them."""

    def made(d: Draw) -> Inputs:
        rows = d.n // WIDTH
        segments = rows // 4
        indices, ids = d.ints(0, rows, rows), np.repeat(np.arange(segments, dtype=np.int32), 4)
        indices = indices[: len(ids)]
        if not gradient:
            return [d.normal(rows, WIDTH), indices, ids], {}
        return [d.normal(segments, WIDTH), indices, ids, np.array(rows, np.int32)], {}

    return made


def _elements(d: Draw, axes: int, dtype: Any = np.int32) -> tuple[np.ndarray, np.ndarray]:
    """A table of rows, and as many indices of its rows, or of its elements."""
    rows = d.n // WIDTH
    indices = d.ints(0, rows, rows, 1) if axes == 1 else d.ints(0, WIDTH, d.n // 2, 2)
    return d.normal(rows, WIDTH), indices.astype(dtype)


def _gather_nd(resource: bool) -> list[tuple[str, Callable[[Draw], Inputs]]]:
    def inputs(axes: int) -> Callable[[Draw], Inputs]:
        def made(d: Draw) -> Inputs:
            table, indices = _elements(d, axes)
            if resource:
                return [Held(table, role="resource"), indices], {"dtype": "float32"}
            return [table, indices], {}

        return made

    return [("of rows", inputs(1)), ("of elements", inputs(2))]


def _scattered(d: Draw) -> Inputs:
    table, indices = _elements(d, 1)
    return [table, indices, d.normal(len(indices), WIDTH)], {}


def _crops(d: Draw) -> Inputs:
    images = max(1, d.n // (64 * 64 * 4))
    boxes = max(1, d.n // (14 * 14 * 4))
    corners = np.sort(d.uniform(0, 1, boxes, 2, 2), 1).reshape(boxes, 4)
    ids = d.ints(0, images, boxes)
    attributes = {"method": "bilinear", "extrapolation_value": 0.0}
    return [
        d.normal(images, 64, 64, 4),
        np.ascontiguousarray(corners),
        ids,
        np.array([14, 14], np.int32),
    ], attributes


def _suppressed(sigma: float) -> Callable[[Draw], Inputs]:
    def made(d: Draw) -> Inputs:
        count = d.n // 64
        places = d.uniform(0, 1, count, 2)
        boxes = np.concatenate([places, places + d.uniform(0.02, 0.2, count, 2)], 1).astype(np.float32)
        limits = [np.array(100, np.int32), *(np.array(x, np.float32) for x in (0.5, 0.1, sigma))]
        return [boxes, d.uniform(0, 1, count), *limits], {"pad_to_max_output_size": True}

    return made


def _transformed(d: Draw) -> list[Any]:
    images = max(1, d.n // (64 * 64 * 4))
    angles = d.uniform(-0.5, 0.5, images)
    rows = [np.cos(angles), -np.sin(angles), 10 + 0 * angles, np.sin(angles), np.cos(angles), -5 + 0 * angles]
    transforms = np.stack([*rows, 0 * angles, 0 * angles], 1).astype(np.float32)
    return [d.normal(images, 64, 64, 4), transforms, np.array([64, 64], np.int32)]


def _spectrum(axes: int, inverse: bool) -> Callable[[Draw], Inputs]:
    sides = {1: (512,), 2: (64, 64), 3: (16, 16, 16)}[axes]

    def made(d: Draw) -> Inputs:
        count = max(1, d.n // math.prod(sides))
        length = np.array(sides, np.int32)
        if not inverse:
            return [d.normal(count, *sides), length], {"Tcomplex": "complex64"}
        half = (count, *sides[:-1], sides[-1] // 2 + 1)
        return [(d.normal(*half) + 1j * d.normal(*half)).astype(np.complex64), length], {"Treal": "float32"}

    return made


def _systems(d: Draw) -> Inputs:
    count = d.n // (16 * 8)
    return [d.normal(count, 16, 8), d.normal(count, 16, 2), np.array(0.1)], {"fast": True}


INDEXED: dict[str, Callable[[Draw], Inputs] | list[tuple[str, Callable[[Draw], Inputs]]]] = {
    **{f"Segment{how}": _segments() for how in ("Sum", "Mean", "Min", "Max", "Prod")},
    **{
        f"UnsortedSegment{how}": _segments(lambda count: np.array(count, np.int32), is_sorted=False)
        for how in ("Sum", "Min", "Max", "Prod")
    },
    **{f"SparseSegment{how}": _picked(False) for how in ("Sum", "Mean", "SqrtN")},
    **{f"SparseSegment{how}GradV2": _picked(True) for how in ("Sum", "Mean", "SqrtN")},
    "GatherNd": _gather_nd(False),
    "ResourceGatherNd": _gather_nd(True),
    **{f"TensorScatter{how}": _scattered for how in ("Update", "Add", "Sub", "Min", "Max")},
    "CropAndResize": _crops,
    "NonMaxSuppressionV5": [("hard", _suppressed(0.0)), ("soft", _suppressed(0.5))],
    "ImageProjectiveTransformV2": lambda d: (_transformed(d), {"interpolation": "BILINEAR"}),
    "ImageProjectiveTransformV3": lambda d: (
        [*_transformed(d), np.array(0.5, np.float32)],
        {"interpolation": "NEAREST", "fill_mode": "REFLECT"},
    ),
    "DynamicPartition": lambda d: (
        [d.normal(d.n // WIDTH, WIDTH), d.ints(0, 4, d.n // WIDTH)],
        {"num_partitions": 4},
    ),
    **{f"RFFT{'' if n == 1 else f'{n}D'}": _spectrum(n, False) for n in (1, 2, 3)},
    **{f"IRFFT{'' if n == 1 else f'{n}D'}": _spectrum(n, True) for n in (1, 2, 3)},
    "MatrixSolveLs": _systems,
    "CTCGreedyDecoder": lambda d: (
        [d.normal(50, max(1, d.n // 1000), 20), np.full(max(1, d.n // 1000), 50, np.int32)],
        {"merge_repeated": True},
    ),
}
