"""Cases of boxes: cut out of images, drawn into them, and chosen among many."""

from collections.abc import Iterator

import numpy as np

from op_cases import case, ints, normal, uniform

INVALID, BEYOND = "InvalidArgumentError", "OutOfRangeError"
SINGLE = {"rtol": 1e-5, "atol": 1e-5}


def i32(*values: int) -> np.ndarray:
    """An int32 vector."""
    return np.array(values, np.int32)


def f32(values: object) -> np.ndarray:
    """A float32 array."""
    return np.array(values, np.float32)


NONE = (np.zeros((0, 4), np.float32), i32())
# Within, mirrored, beyond, of no area, the whole, without numbers.
BOXES = f32(
    [[0.1, 0.2, 0.7, 0.9], [0.8, 0.7, 0.1, 0.3], [-0.4, 0.5, 1.5, 2], [0.5, 0.5, 0.5, 0.5], [0, 0, 1, 1]]
)


def crops() -> Iterator:
    """All kinds of boxes, by both methods; crops of one row; both gradients."""
    image, of = normal(2, 5, 7, 2), i32(0, 1, 1, 0, 1)
    for method in ("bilinear", "nearest"):
        for size in ((3, 4), (1, 5), (6, 1), (8, 9)):
            quality = {"method": method, "extrapolation_value": 0.5, **SINGLE}
            # The oracle gives boxes the gradient of the bilinear method whatever the method is.
            yield case("CropAndResize", image, BOXES, of, i32(*size), **quality)
            yield case(
                "CropAndResizeGradImage",
                normal(5, *size, 2, dtype="float32"),
                BOXES,
                of,
                i32(2, 5, 7, 2),
                dtypes="float32 float64",
                T="T",
                method=method,
                gradient=False,
                **SINGLE,
            )
    flow = normal(5, 3, 4, 2, dtype="float32")
    sums = {"dtypes": "half", "rtol": 2e-2, "atol": 1e-2, "gradient": False}  # which the oracle adds up in half
    yield case("CropAndResizeGradImage", flow, BOXES, of, i32(2, 5, 7, 2), T="T", **sums)
    many = "uint8 uint16 int8 int16 int32 int64 half double"
    yield case(
        "CropAndResize", normal(1, 3, 3, 1), BOXES[:1], i32(0), i32(2, 3), dtypes=many, gradient=False, **SINGLE
    )
    yield case(
        "CropAndResizeGradBoxes",
        normal(5, 3, 1, 2, dtype="float32"),
        normal(2, 5, 7, 2),
        BOXES,
        of,
        dtypes=f"{many} float32",
        gradient=False,
        **SINGLE,
    )
    yield case("CropAndResize", image, *NONE, i32(2, 2), label="no boxes")
    yield case("CropAndResize", normal(2, 3, 3, 0), BOXES, of, i32(2, 2), label="no channels", gradient=False)


def impossible_crops() -> Iterator:
    """What cannot be cut out."""
    for place in (np.inf, np.nan):
        wrong, one = f32([[0, place, 1, 1]]), i32(0)
        yield case("CropAndResize", normal(1, 3, 4, 1), wrong, one, i32(2, 2), error=INVALID)
    op, image, of, size = "CropAndResize", normal(2, 3, 4, 1), i32(0, 1, 1, 0, 1), i32(2, 2)
    yield case(op, normal(3, 4, 1), BOXES, of, size, error=INVALID)
    yield case(op, normal(2, 0, 4, 1), BOXES, of, size, error=INVALID)
    yield case(op, image, normal(5, 3), of, size, error=INVALID)
    yield case(op, image, BOXES, i32(0, 1), size, error=INVALID)
    yield case(op, image, BOXES, i32(0, 1, 2, 0, 0), size, error=BEYOND, label="beyond")
    yield case(op, image, BOXES, i32(0, 1, -1, 0, 0), size, error=BEYOND, label="before")
    yield case(op, image, BOXES, of, i32(2), error=INVALID)
    yield case(op, image, BOXES, of, i32(2, 0), error=INVALID)
    dy, whole = normal(5, 2, 2, 1, dtype="float32"), i32(2, 3, 4, 1)
    op = "CropAndResizeGradImage"
    yield case(op, normal(5, 2, 2, dtype="float32"), BOXES, of, whole, error=INVALID, T="T")
    yield case(op, dy, BOXES, of, i32(2, 3, 4), error=INVALID, T="T")
    yield case(op, dy, BOXES, of, i32(2, 0, 4, 1), error=INVALID, T="T")
    yield case(op, dy, BOXES, of, i32(2, 3, 4, 2), error=INVALID, T="T")
    yield case(op, dy, BOXES, of, i32(1, 3, 4, 1), error=BEYOND, T="T")
    yield case(op, normal(4, 2, 2, 1, dtype="float32"), BOXES, of, whole, error=INVALID, T="T")
    op = "CropAndResizeGradBoxes"
    yield case(op, normal(5, 2, 2, dtype="float32"), image, BOXES, of, error=INVALID)
    yield case(op, dy, normal(3, 4, 1), BOXES, of, error=INVALID)
    yield case(op, dy, normal(2, 3, 4, 2), BOXES, of, error=INVALID)
    yield case(op, dy, normal(1, 3, 4, 1), BOXES, of, error=BEYOND)
    yield case(op, normal(4, 2, 2, 1, dtype="float32"), image, BOXES, of, error=INVALID)


CASES = [*crops(), *impossible_crops()]
