"""Cases of what networks rarely have: order statistics, fractional pooling, convolutions of padded images,
the batch normalisation of old graphs, and gradients of convolutions in their other forms.

The oracle's fractional pooling cuts where its random numbers say, so only the gradients of given cuts have
cases. Its fused convolutions mistake all images but the first, and want the paddings' rank to be known.
"""

import itertools

import numpy as np

from op_cases import case, ints, literal, normal, positive

INVALID = "InvalidArgumentError"
FLOATS = "float32 float64"
NAN, INF = np.nan, np.inf


def order_statistics() -> list:
    """The n-th element from either end, ties and infinities."""
    ties = np.float32([[3, 1, 3, 2], [1, 1, 1, 1], [-1, -2, 5, 5]])
    numbers = "float32 float64 half bfloat16 int32 int64 int16 int8 uint8 uint16 uint32 uint64"
    op, cases = "NthElement", []
    for reverse in (False, True):
        cases += [
            case(op, normal(3, 5), np.int32(1), dtypes=numbers, reverse=reverse),
            case(op, normal(2, 3, 4), np.int32(3), reverse=reverse),
            case(op, ties, np.int32(2), label="ties", reverse=reverse),
            case(op, np.float32([INF, 1, -INF, 2]), np.int32(0), label="infinite", reverse=reverse),
        ]
    return cases + [
        case(op, normal(0, 4), np.int32(1)),
        case(op, np.uint64([2**63 + 5, 3, 2**63 - 1]), np.int32(1), dtypes="uint64"),
        case(op, normal(4), np.int32(4), label="too large", error=INVALID),
        case(op, normal(4), np.int32(-1), label="negative", error=INVALID),
        case(op, normal(), np.int32(0), label="scalar", error=INVALID),
        case(op, normal(4), np.int32([1]), label="vector", error=INVALID),
    ]


def fractional_pooling() -> list:
    """The gradients of given cuts, and cuts that do not fit."""
    cases = []
    rows, columns = np.int64([0, 1, 3, 4]), np.int64([0, 2, 3, 5])
    shape, best, dy = np.int64([2, 4, 5, 2]), normal(2, 4, 5, 2), normal(2, 3, 3, 2)
    for overlapping in (False, True):
        form = {"overlapping": overlapping, "gradient": False}
        cases += [
            case("FractionalAvgPoolGrad", shape, dy, rows, columns, dtypes=FLOATS, **form),
            case(
                "FractionalAvgPoolGrad",
                shape,
                ints(-90, 90, (2, 3, 3, 2)),
                rows,
                columns,
                dtypes="int32",
                **form,
            ),
            case("FractionalMaxPoolGrad", *maxima(overlapping), dy, rows, columns, dtypes=FLOATS, **form),
        ]
    short = np.int64([0, 1, 3])
    return cases + [
        case("FractionalAvgPoolGrad", shape, dy, short, columns, label="short", error=INVALID),
        case("FractionalAvgPoolGrad", shape, dy, -rows, columns, label="negative", error=INVALID),
        case("FractionalAvgPoolGrad", shape[:3], dy, rows, columns, label="shape", error=INVALID),
        case("FractionalMaxPoolGrad", best, dy, dy, short, columns, label="short", error=INVALID),
    ]


def maxima(overlapping: bool) -> tuple:
    """An image with ties and what pooling it by the cuts of the cases gives."""
    image = np.random.RandomState(5).randint(0, 4, (2, 4, 5, 2)).astype(np.float64)
    rows, columns, more = (0, 1, 3, 4), (0, 2, 3, 5), int(overlapping)
    pooled = [
        [image[:, a : b + more, c : d + more].max((1, 2)) for c, d in itertools.pairwise(columns)]
        for a, b in itertools.pairwise(rows)
    ]
    return literal(image, "T"), literal(np.transpose(pooled, (2, 0, 1, 3)), "T")


def padded_convolutions() -> list:
    """Both mirrors, both paddings, strides; resized in two ways."""
    image, kernel = normal(1, 4, 5, 2), normal(2, 3, 2, 3)
    pads, ones = np.int32([[0, 0], [1, 2], [2, 1], [0, 0]]), [1, 1, 1, 1]
    pad, resize, size = "FusedPadConv2D", "FusedResizeAndPadConv2D", np.int32([6, 4])
    cases = []
    for mode in ("REFLECT", "SYMMETRIC"):
        form = {"mode": mode, "strides": ones, "padding": "VALID"}
        cases += [
            case(pad, image, pads, kernel, **form),
            case(resize, image, size, pads, kernel, **form),
            case(resize, image, size, pads, kernel, resize_align_corners=True, **form),
        ]
    form = {"mode": "REFLECT", "strides": ones, "padding": "VALID"}
    strided = {"mode": "SYMMETRIC", "strides": [1, 2, 1, 1], "padding": "SAME"}
    return cases + [
        case(pad, image, pads, kernel, dtypes="float64 half", **form),
        case(pad, image, pads, kernel, **strided),
        case(resize, image, size, pads, kernel, **strided),
        case(resize, image, np.int32([1, 1]), pads * 0, normal(1, 1, 2, 3), **strided),
    ]


def old_normalisation() -> list:
    """Batch normalisation by given moments, with and without its scale, and the op of its gradients."""
    op, grad = "BatchNormWithGlobalNormalization", "BatchNormWithGlobalNormalizationGrad"
    moments = (normal(3), positive(3))
    cases = []
    for scales in (True, False):
        form = {"variance_epsilon": 0.01, "scale_after_normalization": scales}
        cases += [
            case(op, normal(2, 2, 1, 3), *moments, normal(3), normal(3), **form),
            case(grad, normal(2, 2, 1, 3), *moments, normal(3), normal(2, 2, 1, 3), **form),
        ]
    return cases


def convolution_gradients() -> list:
    """Gradients of convolutions whose shapes are those of whole tensors."""
    cases = []
    for op in ("Conv3DBackpropInput", "Conv3DBackpropFilter"):
        form = {"strides": [1, 1, 2, 1, 1], "padding": "SAME"}
        image, kernel = normal(1, 3, 4, 3, 2), normal(2, 2, 3, 2, 2)
        cases.append(case(op, image, kernel, normal(1, 3, 2, 3, 2), dtypes=FLOATS, **form))
    return cases


CASES = [
    *order_statistics(),
    *fractional_pooling(),
    *padded_convolutions(),
    *old_normalisation(),
    *convolution_gradients(),
]
