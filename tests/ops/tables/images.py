"""Cases of images resized, in all three ways of placing the result's pixels in the image."""

from collections.abc import Iterator

import numpy as np

from op_cases import case, normal

INVALID = "InvalidArgumentError"
MODES = ({}, {"align_corners": True}, {"half_pixel_centers": True})
SIZES = [(6, 8), (5, 3), (1, 2), (3, 4), (7, 12), (2, 1)]


def i32(*values: int) -> np.ndarray:
    """An int32 vector."""
    return np.array(values, np.int32)


def resized() -> Iterator:
    """Larger, smaller and the same; one row; and what cannot be asked for."""
    for mode in MODES:
        for size in SIZES:
            yield case("ResizeNearestNeighbor", normal(2, 3, 4, 2), i32(*size), **mode)
            yield case("ResizeBilinear", normal(2, 3, 4, 2), i32(*size), **mode)
            yield case("ResizeNearestNeighborGrad", normal(2, *size, 2), i32(3, 4), **mode)
            yield case(
                "ResizeBilinearGrad",
                normal(2, *size, 2, dtype="float32"),
                normal(2, 3, 4, 2),
                gradient=False,
                **mode,
            )
        many = "float32 float64 half int32 uint8 int64"
        yield case("ResizeNearestNeighbor", normal(1, 1, 3, 1), i32(3, 7), label="types", dtypes=many, **mode)
        single = {"rtol": 1e-5, "atol": 1e-6}  # whatever the images' type
        yield case(
            "ResizeBilinear", normal(1, 1, 3, 1), i32(3, 7), label="types", dtypes=many, **single, **mode
        )
    for op in ("ResizeNearestNeighbor", "ResizeBilinear"):
        yield case(op, normal(2, 3, 4), i32(2, 2), label="no image", error=INVALID)
        yield case(op, normal(1, 3, 4, 1), i32(0, 2), label="nothing", error=INVALID)
        both = {"align_corners": True, "half_pixel_centers": True}
        yield case(op, normal(1, 3, 4, 1), i32(2, 2), label="both", error=INVALID, **both)


CASES = [*resized()]
