"""Cases of boxes: cut out of images, drawn into them, and chosen among many."""

from collections.abc import Iterator

import numpy as np

from op_cases import case, ints, literal, normal, uniform

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
    sums = {
        "dtypes": "half",
        "rtol": 2e-2,
        "atol": 1e-2,
        "gradient": False,
    }  # which the oracle adds up in half
    yield case("CropAndResizeGradImage", flow, BOXES, of, i32(2, 5, 7, 2), T="T", **sums)
    many = "uint8 uint16 int8 int16 int32 int64 half double"
    yield case(
        "CropAndResize",
        normal(1, 3, 3, 1),
        BOXES[:1],
        i32(0),
        i32(2, 3),
        dtypes=many,
        gradient=False,
        **SINGLE,
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


SOME = literal(
    0.5 * np.random.RandomState(3).rand(30, 4) + np.tile(np.random.RandomState(4).rand(30, 2), 2), "T"
)


def single(value: float) -> object:
    """A float32 scalar."""
    return literal(value, "float32")


def chosen() -> Iterator:
    """Many boxes, few, equal scores, scores that are no numbers, boxes of no area, and all thresholds."""
    scores = uniform(0, 1, (30,))
    for limit in (0, 1, 5, 100):
        for overlap in (0.0, 0.3, 1.0):
            of = literal(limit, "int32")
            yield case("NonMaxSuppression", SOME, scores, of, iou_threshold=overlap)
            yield case("NonMaxSuppressionV2", SOME, scores, of, single(overlap), label=str(overlap))
            yield case(
                "NonMaxSuppressionV3", SOME, scores, of, single(overlap), single(0.4), label=str(overlap)
            )
            for pad in (True, False):
                limits = (of, single(overlap), single(0.4))
                mark = {"label": str(overlap), "pad_to_max_output_size": pad, "gradient": False}
                yield case("NonMaxSuppressionV4", SOME, scores, *limits, **mark)
                if limit:
                    yield case("NonMaxSuppressionV5", SOME, scores, *limits, single(0.0), **mark)
                    yield case(
                        "NonMaxSuppressionV5",
                        SOME,
                        scores,
                        *limits,
                        single(0.4),
                        **{**mark, "label": f"soft {overlap}"},
                    )
    five = literal(5, "int32")
    equal = f32([0.5, 0.7, 0.5, 0.7, 0.5])
    yield case("NonMaxSuppressionV3", BOXES, equal, five, single(0.2), single(-np.inf), label="equal")
    odd = f32([0.5, np.nan, np.inf, -np.inf, 0.2])
    for least in (-np.inf, 0.0):
        yield case("NonMaxSuppressionV3", BOXES, odd, five, single(0.2), single(least), label=f"odd {least}")
    yield case("NonMaxSuppressionV2", BOXES, odd, five, single(0.2), label="odd")
    none = np.zeros((0, 4), np.float32), np.zeros(0, np.float32)
    yield case("NonMaxSuppression", *none, five)
    yield case("NonMaxSuppressionV2", *none, five, single(0.5))
    yield case("NonMaxSuppressionV3", *none, five, single(0.5), single(0.0))
    yield case("NonMaxSuppressionV4", *none, five, single(0.5), single(0.0), pad_to_max_output_size=True)
    yield case("NonMaxSuppressionV5", *none, five, single(0.5), single(0.0), single(0.5))
    half = {"dtypes": "half"}
    yield case("NonMaxSuppressionV3", SOME, scores, five, 0.5, 0.1, **half, T_threshold="half")
    yield case("NonMaxSuppressionV5", SOME, scores, five, 0.5, 0.1, 0.0, **half, gradient=False)


def overlapping() -> Iterator:
    """A matrix that is not symmetric, and large thresholds."""
    op, matrix, scores = "NonMaxSuppressionWithOverlaps", uniform(0, 1, (12, 12)), uniform(0, 1, (12,))
    for threshold in (-1.0, 0.3, 0.7, 2.0):
        given = (literal(8, "int32"), single(threshold), single(0.1))
        yield case(op, matrix, scores, *given, label=str(threshold))
    yield case(op, uniform(0, 1, (0, 0)), uniform(0, 1, (0,)), *given)
    yield case(op, uniform(0, 1, (3, 4)), uniform(0, 1, (3,)), *given, error=INVALID)
    yield case(op, uniform(0, 1, (3, 3)), uniform(0, 1, (4,)), *given, error=INVALID)
    yield case(
        op, uniform(0, 1, (3, 3)), uniform(0, 1, (3,)), literal(-1, "int32"), *given[1:], error=INVALID
    )


def combined() -> Iterator:
    """Boxes of all classes together and of each; padding and clipping."""
    op, scores = "CombinedNonMaxSuppression", uniform(0, 1, (2, 9, 3))
    for classes in (1, 3):
        boxes = uniform(-0.2, 1.2, (2, 9, classes, 4))
        for pad in (True, False):
            for clip in (True, False):
                for each, total in ((2, 5), (4, 20), (3, 9)):
                    limits = (literal(each, "int32"), literal(total, "int32"), single(0.3), single(0.2))
                    yield case(op, boxes, scores, *limits, pad_per_class=pad, clip_boxes=clip, gradient=False)
    few, limits = (
        uniform(0, 1, (2, 9, 3, 4)),
        (literal(2, "int32"), literal(3, "int32"), single(0.3), single(0.2)),
    )
    yield case(op, uniform(0, 1, (0, 9, 3, 4)), uniform(0, 1, (0, 9, 3)), *limits, gradient=False)
    yield case(op, uniform(0, 1, (1, 0, 3, 4)), uniform(0, 1, (1, 0, 3)), *limits, gradient=False)
    yield case(op, few, uniform(0, 1, (2, 9, 2)), *limits, error=INVALID)
    yield case(op, few, uniform(0, 1, (2, 8, 3)), *limits, error=INVALID)
    yield case(op, uniform(0, 1, (2, 9, 4)), scores, *limits, error=INVALID)
    yield case(op, few, scores, literal(0, "int32"), *limits[1:], error=INVALID)
    yield case(op, few, scores, limits[0], literal(0, "int32"), *limits[2:], error=INVALID)
    yield case(op, few, scores, *limits[:2], single(1.5), limits[3], error=INVALID)


def impossible_choices() -> Iterator:
    """Shapes that do not fit, and limits that make no sense."""
    five, scores = literal(5, "int32"), uniform(0, 1, (30,))
    for op, more in (
        ("NonMaxSuppression", ()),
        ("NonMaxSuppressionV2", (0.5,)),
        ("NonMaxSuppressionV3", (0.5, 0.1)),
        ("NonMaxSuppressionV4", (0.5, 0.1)),
        ("NonMaxSuppressionV5", (0.5, 0.1, 0.2)),
    ):
        rest = [single(value) for value in more]
        yield case(op, normal(30, 5), scores, five, *rest, error=INVALID)
        yield case(op, normal(30), scores, five, *rest, error=INVALID)
        yield case(op, SOME, normal(29), five, *rest, error=INVALID)
        yield case(op, SOME, normal(30, 1), five, *rest, error=INVALID)
        yield case(op, SOME, scores, i32(5), *rest, error=INVALID)
        if more:
            yield case(op, SOME, scores, five, single(1.5), *rest[1:], error=INVALID, label="threshold")
            yield case(op, SOME, scores, five, single(np.nan), *rest[1:], error=INVALID, label="no number")
        else:
            yield case(op, SOME, scores, five, iou_threshold=-0.5, error=INVALID)
        yield case(op, SOME, scores, literal(-1, "int32"), *rest, error=INVALID, label="negative")
    yield case(op, SOME, scores, five, *rest[:2], single(-1.0), error=INVALID, label="sigma")


def drawn() -> Iterator:
    """Boxes over boxes, beyond the image, of no area, upside down; more boxes than colours."""
    boxes = np.concatenate(
        [BOXES, f32([[-1, -1, 2, 2], [1.5, 0, 2, 1], [-0.1, 0.1, 0.5, 0.5], [0.2, -3, 0.6, 9]])]
    )
    for channels in (1, 3, 4):
        several = np.stack([boxes, boxes[::-1]])
        yield case("DrawBoundingBoxes", normal(2, 6, 8, channels), several, dtypes="float32 half")
        colours = uniform(0, 1, (3, 4), dtype="float32")
        yield case("DrawBoundingBoxesV2", normal(2, 6, 8, channels), several, colours, dtypes="float32 half")
        none = np.zeros((0, 4), np.float32)
        yield case("DrawBoundingBoxesV2", normal(2, 6, 8, channels), several, none)
        many = uniform(0, 1, (1, 25, 4), dtype="float32")
        yield case("DrawBoundingBoxes", normal(1, 20, 30, channels), many)
    yield case("DrawBoundingBoxes", normal(2, 3, 4, 1), np.zeros((2, 0, 4), np.float32))
    yield case("DrawBoundingBoxes", normal(0, 3, 4, 1), np.zeros((0, 2, 4), np.float32))
    for op, more in (("DrawBoundingBoxes", ()), ("DrawBoundingBoxesV2", (f32([[1, 1, 1, 1]]),))):
        one = uniform(0, 1, (2, 1, 4), dtype="float32")
        yield case(op, normal(2, 3, 4), one, *more, error=INVALID)
        yield case(op, normal(1, 3, 4, 1), one, *more, error=INVALID)
        yield case(op, normal(2, 3, 4, 2), one, *more, error=INVALID)
        yield case(op, normal(2, 3, 4, 3), uniform(0, 1, (2, 4), dtype="float32"), *more, error=INVALID)
        yield case(op, normal(2, 3, 4, 3), uniform(0, 1, (2, 1, 5), dtype="float32"), *more, error=INVALID)
    yield case("DrawBoundingBoxesV2", normal(2, 3, 4, 3), one, f32([1, 1, 1]), error=INVALID)
    yield case("DrawBoundingBoxesV2", normal(2, 3, 4, 4), one, f32([[1, 1, 1]]), error=INVALID)


def glimpses() -> Iterator:
    """All meanings of an offset; the second version, whose windows may leave the image."""
    images = normal(4, 5, 7, 2)
    offsets = f32([[0, 0], [0.4, -0.3], [1, 2], [-2.3, 1.7]])
    for centered in (True, False):
        for normalized in (True, False):
            mode = {"centered": centered, "normalized": normalized}
            for size in ((3, 4), (8, 9), (0, 2), (1, 1)):
                zero = {**mode, "noise": "zero", "uniform_noise": False}
                yield case("ExtractGlimpseV2", images, i32(*size), offsets, **zero)
                yield case(
                    "ExtractGlimpse", images, i32(*size), offsets, values=False, gradient=False, **mode
                )
    inside = f32([[0, 0], [0.4, -0.3], [-0.2, 0.1], [0, 0.2]])
    yield case("ExtractGlimpse", images, i32(3, 4), inside)
    yield case("ExtractGlimpse", images, i32(3, 4), inside, normalized=False)
    no_images = {"values": False, "gradient": False}
    yield case("ExtractGlimpse", normal(0, 5, 7, 2), i32(3, 4), np.zeros((0, 2), np.float32), **no_images)
    for op in ("ExtractGlimpse", "ExtractGlimpseV2"):
        yield case(op, normal(4, 5, 7), i32(3, 4), offsets, error=INVALID)
        yield case(op, images, i32(3), offsets, error=INVALID)
        yield case(op, images, i32(3, -1), offsets, error=INVALID)
        yield case(op, images, i32(3, 4), offsets[:3], error=INVALID)
        yield case(op, images, i32(3, 4), offsets[0], error=INVALID)
        yield case(op, images, i32(3, 4), np.zeros((4, 3), np.float32), error=INVALID)
    odd = {"noise": "odd", "uniform_noise": False}
    yield case("ExtractGlimpseV2", images, i32(3, 4), offsets, error=INVALID, **odd)
    yield case("ExtractGlimpseV2", images, i32(3, 4), offsets, error="ValueError", noise="zero")


def random_crops() -> Iterator:
    """Of the image's own size, which are the image; smaller; and larger than it."""
    op, image = "RandomCrop", ints(0, 100, (4, 5, 2), dtype="T")
    many = "uint8 int8 int16 int32 int64 float32 float64"
    yield case(op, image, np.array([4, 5]), dtypes=many, gradient=False)
    yield case(op, image, np.array([2, 5]), dtypes=many, gradient=False, values=False)
    yield case(op, image, np.array([0, 3]), gradient=False)
    for size in ([5, 5], [4, 6]):
        yield case(op, image, np.array(size), error="FailedPreconditionError")
    yield case(op, image, np.array([4]), error=INVALID)
    yield case(op, ints(0, 100, (4, 5), dtype="T"), np.array([1, 1]), error=INVALID)


def distorted() -> Iterator:
    """Random crops, of which dtypes and shapes are compared; and what leaves no choice."""
    box = f32([[[0.2, 0.3, 0.6, 0.9]]])
    whole = f32([[[0, 0, 1, 1]]])
    exact = {"area_range": [1.0, 1.0], "aspect_ratio_range": [2.0, 2.0], "gradient": False}
    for op, more in (("SampleDistortedBoundingBox", ()), ("SampleDistortedBoundingBoxV2", (single(0.1),))):
        size = literal([40, 80, 3], "T")
        many = "uint8 int8 int16 int32 int64"
        yield case(op, size, box, *more, dtypes=many, values=False, gradient=False)
        # Only the whole image has this area and ratio; or no attempt succeeds, and the image is the answer.
        yield case(op, size, whole, *more, dtypes=many, **exact)
        never = {**exact, "aspect_ratio_range": [30.0, 30.0]}
        yield case(op, size, whole, *more, dtypes="int32", **never)
        none, dtype = np.zeros((1, 0, 4), np.float32), {"dtypes": "int32"}
        yield case(op, size, none, *more, **dtype, **exact, use_image_if_no_bounding_boxes=True)
        yield case(op, size, none, *more, **dtype, error=INVALID)
        yield case(op, literal([4, 8], "T"), box, *more, **dtype, error=INVALID)
        yield case(op, literal([[4, 8, 3]], "T"), box, *more, **dtype, error=INVALID)
        yield case(op, literal([-1, 8, 3], "T"), box, *more, **dtype, error=INVALID)
        yield case(op, size, box[0], *more, **dtype, error=INVALID)
        yield case(op, size, box[:, :, :3], *more, **dtype, error=INVALID)
        yield case(op, size, 2 * box, *more, **dtype, error=INVALID, label="beyond")
        yield case(op, size, box * np.nan, *more, **dtype, error=INVALID, label="no numbers")
        for wrong in (
            {"max_attempts": 0},
            {"area_range": [0.0, 1.0]},
            {"area_range": [0.5, 1.5]},
            {"area_range": [0.5]},
            {"aspect_ratio_range": [-1.0, 1.0]},
            {"aspect_ratio_range": [1.0, 1.0, 1.0]},
        ):
            yield case(op, size, box, *more, **dtype, error=INVALID, **wrong)
    yield case(op, size, box, single(-0.5), **dtype, error=INVALID)
    yield case(op, size, box, f32([0.5]), **dtype, error=INVALID)


CASES = [
    *random_crops(),
    *distorted(),
    *drawn(),
    *glimpses(),
    *crops(),
    *impossible_crops(),
    *chosen(),
    *overlapping(),
    *combined(),
    *impossible_choices(),
]
