"""Cases of the reductions: over axes, cumulative, over segments, and counts."""

import numpy as np

from op_cases import bools, case, literal, normal, positive, uniform

NAN, INF = float("nan"), float("inf")
REAL = "half bfloat16 float32 float64"
COMPLEX = "complex64 complex128"
INTEGERS = "int8 int16 int32 int64 uint8 uint16"
FLOATS = "float32 float64"
ARITHMETIC = ("Sum", "Mean", "Prod", "EuclideanNorm")
ORDERED = ("Max", "Min")

NUMERIC_REDUCTIONS = [
    [
        case(
            op, normal(2, 3), [1], dtypes=f"float32 float64 int32 int64 {COMPLEX if op in ARITHMETIC else ''}"
        ),
        case(op, positive(2, 3), [0], dtypes="half bfloat16"),
        case(op, positive(2, 3), [0], dtypes="int8 int16 uint8 uint16") if op != "EuclideanNorm" else [],
        case(op, normal(2, 3, 2), [0, 2], dtypes=FLOATS),
        case(op, normal(2, 3, 2), [-1], dtypes=FLOATS),
        case(op, normal(2, 3, 2), [1, -3], keep_dims=True, dtypes=FLOATS),
        case(op, normal(2, 3), 1, dtypes=FLOATS, label="scalar"),
        case(op, normal(2, 3), literal([0, 1], "int64"), gradient=False),
        case(op, normal(2, 3), literal([], "int32"), dtypes=FLOATS),
        case(op, normal(2, 3), literal([0], "int64"), keep_dims=True, dtypes="float64"),
        case(op, normal(), literal([], "int32")),
        case(op, normal(0, 3), [0], gradient=False),
        case(op, normal(2, 0), [0]),
        case(op, normal(0), [0], dtypes="int32 int64") if op in ("Sum", "Prod", "Max", "Min") else [],
        case(op, [[1.0, NAN, 2.0], [INF, -INF, 0.0], [INF, 1.0, 2.0]], [1], dtypes=FLOATS, gradient=False),
        case(op, normal(2, 3), [2], error="ValueError"),
        case(op, normal(2, 3), [-3], error="ValueError"),
        case(op, normal(2, 3), [1, 1], error="InvalidArgumentError"),
    ]
    for op in (*ARITHMETIC, *ORDERED)
]
SPECIAL_REDUCTIONS = [
    case("Prod", [[1.0, 0.0, 3.0], [0.0, 0.0, 2.0]], [1], dtypes=FLOATS, label="zeros"),
    case("Prod", [2.0, 0.0, 3.0], [0], dtypes=FLOATS, label="zero"),
    case("Max", [[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], [1], dtypes=FLOATS, label="ties"),
    case("Min", [[1.0, 1.0, 3.0], [2.0, 2.0, 2.0]], [0, 1], dtypes=FLOATS, label="ties"),
    case("Mean", [7, -7, 4], [0], label="truncated"),
    case("Mean", [[7, -8], [8, -7]], [0], label="truncated"),
    case("Sum", literal([100, 100, 100], "int8"), [0], label="wraps"),
    case("EuclideanNorm", literal([7, 0, -127], "int8"), [0], label="wraps"),
    case("Sum", literal([2**63, 2**63 - 1], "uint64"), [0]),
    case("Max", literal([2**63, 5], "uint64"), [0]),
    [
        [
            case(op, bools((2, 3)), [1]),
            case(op, bools((2, 3)), [0, 1]),
            case(op, bools((2, 3, 2)), [0, -1], keep_dims=True),
            case(op, bools((2, 3)), literal([], "int32")),
            case(op, bools((0, 3)), [0]),
            case(op, bools((2, 0)), [1]),
            case(op, bools((2, 3)), literal([1], "int64"), label="wide"),
            case(op, bools((2, 3)), [2], error="ValueError"),
        ]
        for op in ("All", "Any")
    ],
]
ARG_REDUCTIONS = [
    [
        case(op, normal(3, 4), 1, dtypes=f"{REAL} {INTEGERS}"),
        case(op, normal(3, 4), 0, output_type="int32"),
        case(op, normal(2, 3, 4), -1),
        case(op, normal(2, 3, 4), literal(1, "int64")),
        case(op, normal(5), 0),
        case(op, bools((3, 4)), 1, label="bools"),
        case(op, [[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], 1, label="ties"),
        case(op, normal(0, 4), 1),
        case(op, normal(3, 4), 2, error="ValueError"),
        case(op, normal(4, 0), 1, error="InvalidArgumentError"),
    ]
    for op in ("ArgMax", "ArgMin")
]
CUMULATIVE = [
    [
        case(op, normal(2, 3), 1, dtypes=f"half float32 float64 int32 int64 {COMPLEX}"),
        case(op, positive(2, 3), 0, dtypes="int8 int16 uint8 uint16 bfloat16"),
        case(op, positive(2, 3), 0, exclusive=True, dtypes=FLOATS),
        case(op, positive(2, 3), -1, reverse=True, dtypes=FLOATS),
        case(op, positive(2, 3, 2), 1, exclusive=True, reverse=True, dtypes=f"{FLOATS} int32"),
        case(op, positive(4), literal(0, "int64"), dtypes="float64"),
        case(op, normal(0, 2), 0),
        case(op, [1.0, NAN, 2.0, INF], 0, gradient=False),
        case(op, normal(2, 3), 2, error="InvalidArgumentError"),
        case(op, normal(2, 3), [0], error="InvalidArgumentError"),
    ]
    for op in ("Cumsum", "Cumprod")
]
SORTED = [0, 0, 1, 3]
SEGMENTS = [
    [
        case(op, normal(4, 2), SORTED, dtypes=f"half bfloat16 {FLOATS} int32 int64 uint8"),
        case(op, normal(4), SORTED, dtypes=FLOATS),
        case(op, normal(4, 2, 2), literal(SORTED, "int64"), dtypes="float64"),
        case(op, normal(4, 2), [1, 1, 1, 1]),
        case(op, normal(0, 2), literal([], "int32")),
        case(op, [[1.0], [1.0], [2.0], [2.0]], [0, 0, 1, 1], dtypes=FLOATS, label="ties"),
        case(op, normal(3, 2), [0, 2, 1], error="InvalidArgumentError"),
        case(op, normal(3, 2), [0, 1], error="InvalidArgumentError"),
        case(op, normal(3, 2), [-1, 0, 1], error="InvalidArgumentError"),
    ]
    for op in ("SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd")
]
UNSORTED = [2, 0, 2, 3]
UNSORTED_SEGMENTS = [
    [
        case(op, normal(4, 2), UNSORTED, 5, dtypes=f"half bfloat16 {FLOATS} int32 int64 uint8"),
        case(op, normal(4), UNSORTED, 4, dtypes=FLOATS),
        case(op, normal(2, 2, 3), [[1, 0], [1, 2]], 3, dtypes=FLOATS),
        case(op, normal(4, 2), literal(UNSORTED, "int64"), 4, dtypes="float64", label="int64"),
        case(
            op, normal(4, 2), literal(UNSORTED, "int64"), literal(4, "int64"), dtypes="float64", label="wide"
        ),
        case(op, normal(4, 2), [-1, 0, 1, -1], 2, dtypes=FLOATS),
        case(op, normal(0, 2), literal([], "int32"), 3),
        case(op, normal(0, 2, 0), np.zeros((0, 2), np.int32), 3, label="empty rows", gradient=False),
        case(op, [[1.0], [1.0], [0.0], [0.0]], [0, 0, 1, 1], 2, dtypes=FLOATS, label="ties"),
        case(op, normal(3, 2), [0, 1, 5], 3, error="InvalidArgumentError"),
        case(op, normal(3, 2), [0, 1], 3, error="ValueError"),
        case(op, normal(3, 2), [0, 1, 2], -1, error="ValueError"),
    ]
    for op in ("UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd")
]
COMPLEX_SEGMENTS = [
    case("SegmentSum", normal(4, 2), SORTED, dtypes=COMPLEX),
    case("SegmentProd", normal(4, 2), SORTED, dtypes=COMPLEX, gradient=False),
    case("UnsortedSegmentSum", normal(4, 2), UNSORTED, 5, dtypes=COMPLEX),
    case("UnsortedSegmentProd", normal(4, 2), UNSORTED, 5, dtypes=COMPLEX, gradient=False),
]
PICKED, OWNERS = [3, 0, 3, 1], [0, 0, 1, 3]
SPARSE_SEGMENTS = [
    [
        case(op, normal(4, 2), PICKED, OWNERS, dtypes=FLOATS),
        case(op, normal(4), PICKED, OWNERS, dtypes=FLOATS),
        case(op, normal(4, 2), literal(PICKED, "int64"), OWNERS, dtypes="float64", label="int64"),
        # The oracle's gradient of an empty choice is uninitialized memory.
        case(op, normal(4, 2), literal([], "int32"), literal([], "int32"), gradient=False),
        case(op, normal(4, 2), [0, 4], [0, 1], error="InvalidArgumentError"),
        case(op, normal(4, 2), [0, 1], [1, 0], error="InvalidArgumentError"),
        case(op, normal(4, 2), [0, 1], [0], error="ValueError"),
        case(op, normal(), [0], [0], error="ValueError"),
    ]
    for op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
] + [
    case("SparseSegmentSum", normal(4, 2), PICKED, OWNERS, dtypes="int32 int64"),
    [
        case(op, normal(4, 2), PICKED, OWNERS, 5, dtypes=FLOATS)
        for op in ("SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")
    ],
]
COUNTS = [
    case("Bincount", [1, 3, 3, 0, 7], 5, literal([], "float32"), gradient=False),
    case("Bincount", [1, 3, 3, 0, 7], 9, literal([], "T"), dtypes="int32 int64 float64", gradient=False),
    case(
        "Bincount",
        [1, 3, 3, 0, 7],
        5,
        uniform(1, 5, (5,)),
        dtypes="int32 int64 float32 float64",
        gradient=False,
    ),
    case("Bincount", literal([], "int32"), 3, literal([], "int32")),
    case("Bincount", [1, -1], 3, literal([], "int32"), error="InvalidArgumentError"),
    case("Bincount", [1, 2], -3, literal([], "int32"), error="InvalidArgumentError"),
]
TYPES = [
    [case(op, normal(2, 3), [1], dtypes=COMPLEX, error="TypeError") for op in ORDERED],
    [case(op, normal(2, 3), 1, dtypes=COMPLEX, error="TypeError") for op in ("ArgMax", "ArgMin")],
    [case(op, normal(), 0, error="InvalidArgumentError") for op in ("ArgMax", "ArgMin")],
    case("Mean", normal(2, 0), [1], dtypes=f"{COMPLEX} int32 uint8"),
    case("UnsortedSegmentMax", literal([2**63 + 5, 3, 7], "uint64"), [0, 0, 2], 4),
    case("UnsortedSegmentMin", literal([2**63 + 5, 3, 7], "uint64"), [0, 0, 2], 4),
    case("SegmentMax", literal([2**63 + 5, 3, 7], "uint64"), [1, 1, 3]),
]
CASES = [
    TYPES,
    NUMERIC_REDUCTIONS,
    SPECIAL_REDUCTIONS,
    ARG_REDUCTIONS,
    CUMULATIVE,
    SEGMENTS,
    UNSORTED_SEGMENTS,
    COMPLEX_SEGMENTS,
    SPARSE_SEGMENTS,
    COUNTS,
]
