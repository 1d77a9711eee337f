"""Cases of images resized, in all three ways of placing the result's pixels in the image, and scaled."""

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


def smooth() -> Iterator:
    """By area and by curves, from floats and integers; NaN and infinity touch what lies around them alone."""
    many = "float32 float64 half bfloat16 int32 uint8 int64 int8 uint16 int16"
    single = {"rtol": 1e-5, "atol": 2e-6}
    for op, modes in (("ResizeArea", MODES[:2]), ("ResizeBicubic", MODES)):
        for mode in modes:
            for size in [*SIZES, (1, 1), (9, 2)]:
                yield case(op, normal(2, 3, 4, 2), i32(*size), **single, **mode)
            yield case(op, normal(1, 2, 30, 1), i32(2, 2), **single, **mode)
            yield case(op, normal(1, 1, 3, 1), i32(3, 7), label="types", dtypes=many, **single, **mode)
            yield case(op, normal(0, 3, 3, 1), i32(3, 7), **mode)
        yield case(op, normal(2, 3, 4), i32(2, 2), label="no image", error=INVALID)
        yield case(op, normal(1, 3, 0, 1), i32(2, 2), label="no pixels", error=INVALID)
        yield case(op, normal(1, 3, 4, 1), i32(0, 2), label="nothing", error=INVALID)
        yield case(op, normal(1, 3, 4, 1), i32(2, 2, 2), label="three sizes", error=INVALID)
        special = np.ones((1, 8, 8, 1))
        special[0, 0, 0], special[0, 7, 7] = np.nan, np.inf
        for size in ((3, 3), (12, 13)):
            yield case(op, special, i32(*size), dtypes="float64", gradient=False)
    both = {"align_corners": True, "half_pixel_centers": True}
    yield case("ResizeBicubic", normal(1, 3, 4, 1), i32(2, 2), label="both", error=INVALID, **both)
    for mode in MODES:
        for size in SIZES:
            yield case(
                "ResizeBicubicGrad",
                normal(2, *size, 2, dtype="float32"),
                normal(2, 3, 4, 2),
                dtypes="float32 float64",
                gradient=False,
                **single,
                **mode,
            )
    for shapes in (((2, 3, 4), (2, 3, 4, 1)), ((2, 3, 4, 1), (2, 3, 4))):
        inputs = [normal(*shape, dtype="float32") for shape in shapes]
        yield case("ResizeBicubicGrad", *inputs, error=INVALID)
        yield case("ResizeBilinearGrad", *inputs, error=INVALID)
    yield case("ResizeBilinearGrad", normal(1, 2, 2, 1), normal(1, 3, 4, 1), label="no second gradient")


KERNELS = ["lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"]


def f32(*values: float) -> np.ndarray:
    """A float32 vector."""
    return np.array(values, np.float32)


def scaled() -> Iterator:
    """Every kernel, larger and smaller, moved within the image and beyond it."""
    single = {"rtol": 1e-5, "atol": 2e-6}
    op, image = "ScaleAndTranslate", normal(2, 5, 7, 2)
    for kernel in KERNELS:
        for antialias in (True, False):
            mode = {"kernel_type": kernel, "antialias": antialias, **single}
            yield case(op, image, i32(9, 3), f32(1.9, 0.4), f32(0.3, -0.2), **mode)
            yield case(op, image, i32(4, 8), f32(1, 0.5), f32(-2, 3.5), **mode)
        both = (normal(2, 4, 8, 2), normal(2, 5, 7, 2), f32(0.7, 1.5), f32(1, -1.5))
        yield case(f"{op}Grad", *both, kernel_type=kernel, gradient=False, **single)
    yield case(f"{op}Grad", normal(2, 0, 8, 2), normal(2, 5, 7, 2), *both[2:], gradient=False)
    many = "float32 float64 half int32 uint8 int64 int8 uint16 int16 bfloat16"
    yield case(
        op,
        normal(1, 2, 3, 1),
        i32(3, 3),
        f32(1, 2),
        f32(0, 0),
        label="types",
        dtypes=many,
        gradient=False,
        **single,
    )
    yield case(op, normal(0, 2, 3, 1), i32(3, 3), f32(1, 2), f32(0, 0))
    yield case(op, image, i32(2, 2), f32(1, 1), f32(100, 0))
    yield case(op, normal(2, 3, 4), i32(2, 2), f32(1, 1), f32(0, 0), error=INVALID)
    yield case(op, image, i32(0, 2), f32(1, 1), f32(0, 0), error=INVALID)
    yield case(op, image, i32(2, 2), f32(0, 1), f32(0, 0), label="scale 0", error=INVALID)
    yield case(op, image, i32(2, 2), f32(1, 1, 1), f32(0, 0), label="scales", error=INVALID)
    yield case(op, image, i32(2, 2), f32(1, 1), f32(0), label="offsets", error=INVALID)
    yield case(op, image, i32(2, 2), f32(1, 1), f32(0, 0), kernel_type="round", error=INVALID)


CASES = [*resized(), *smooth(), *scaled()]
