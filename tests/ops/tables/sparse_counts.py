"""Cases of counts, and of segments of picked rows whose number is given."""

import numpy as np

from op_cases import case, literal, normal

INVALID = "InvalidArgumentError"
TYPES = "int32 int64 float32 float64"


def i32(value: object) -> np.ndarray:
    """An int32 literal."""
    return np.array(value, np.int32)


def rows(*values: object) -> np.ndarray:
    """Index rows, or sizes, in int64."""
    return np.array(values, np.int64)


def wrong(op: str, label: str, *arguments: object, error: str = INVALID, **attributes: object) -> list:
    """A case whose arguments do not fit."""
    return case(op, *arguments, label=label, error=error, **attributes)


NONE = literal(np.zeros(0), "T")
THREE = literal([1, 2, 3], "T")
V, M = i32([1, 1, 3]), i32([[1, 1, 3], [0, 7, 2]])
S = (rows([0, 0], [0, 2], [2, 1]), V, rows(3, 3))

DENSE = [
    case("DenseBincount", V, i32(5), NONE, dtypes=TYPES),
    case("DenseBincount", V, i32(5), THREE, dtypes=TYPES),
    case("DenseBincount", V, i32(5), THREE, binary_output=True),
    case("DenseBincount", M, i32(5), NONE),
    case("DenseBincount", M, i32(5), normal(2, 3)),
    case("DenseBincount", M, i32(5), NONE, binary_output=True),
    case("DenseBincount", V, i32(0), NONE),
    case("DenseBincount", i32([]), i32(3), NONE),
    case("DenseBincount", rows(1, 1, 2**40), np.int64(3), NONE),
    wrong("DenseBincount", "cube", i32([[[1]]]), i32(3), NONE, error="ValueError"),
    wrong("DenseBincount", "negative", i32([1, -1]), i32(3), NONE),
    wrong("DenseBincount", "negative in rows", i32([[1, -1]]), i32(3), NONE),
    wrong("DenseBincount", "size", V, i32(-5), NONE, error="ValueError"),
    wrong("DenseBincount", "size a vector", V, i32([5]), NONE, error="ValueError"),
    wrong("DenseBincount", "weights", V, i32(5), normal(2)),
    wrong("DenseBincount", "too large", rows(1), np.int64(2**60), NONE, error="ResourceExhaustedError"),
]
SPARSE = [
    case("SparseBincount", *S, i32(5), NONE, dtypes=TYPES),
    case("SparseBincount", *S, i32(5), THREE, dtypes=TYPES),
    case("SparseBincount", *S, i32(5), THREE, binary_output=True),
    case("SparseBincount", *S, i32(2), NONE),
    case("SparseBincount", rows([0], [2]), i32([1, 3]), rows(4), i32(5), NONE),
    case("SparseBincount", rows([0], [2]), rows(1, 3), rows(4), np.int64(5), NONE, label="int64"),
    case("SparseBincount", S[0][::-1].copy(), *S[1:], i32(5), NONE, label="unordered"),
    case("SparseBincount", S[0], i32([1, -1, 3]), S[2], i32(5), NONE, label="negative"),
    wrong("SparseBincount", "size", *S, i32(-5), NONE, error="ValueError"),
    wrong("SparseBincount", "outside", rows([7, 2]), i32([1]), rows(3, 3), i32(5), NONE),
    wrong("SparseBincount", "count", S[0], i32([1]), S[2], i32(5), NONE),
]
COUNTS = [
    case("DenseCountSparseOutput", V, NONE, dtypes=TYPES, binary_output=False),
    case("DenseCountSparseOutput", V, THREE, dtypes=TYPES, binary_output=False),
    case("DenseCountSparseOutput", V, THREE, binary_output=True),
    case("DenseCountSparseOutput", M, NONE, binary_output=False),
    case("DenseCountSparseOutput", M.astype(np.int64), normal(2, 3), binary_output=False),
    [
        case("DenseCountSparseOutput", M, NONE, binary_output=False, minlength=least, maxlength=most)
        for least, most in ((10, -1), (-1, 3), (2, 3), (-1, 30), (20, 3), (0, 0))
    ],
    case("DenseCountSparseOutput", i32([]), NONE, binary_output=False),
    case("DenseCountSparseOutput", np.zeros((2, 0), np.int32), NONE, binary_output=False),
    wrong("DenseCountSparseOutput", "negative", i32([1, -1]), NONE, binary_output=False),
    wrong("DenseCountSparseOutput", "cube", i32([[[1]]]), NONE, binary_output=False),
    wrong("DenseCountSparseOutput", "scalar", i32(1), NONE, binary_output=False),
    wrong("DenseCountSparseOutput", "weights", V, normal(2), error="ValueError", binary_output=False),
    case("SparseCountSparseOutput", *S, NONE, dtypes=TYPES, binary_output=False),
    case("SparseCountSparseOutput", *S, THREE, dtypes=TYPES, binary_output=False),
    case("SparseCountSparseOutput", *S, THREE, binary_output=True),
    case("SparseCountSparseOutput", *S, NONE, binary_output=False, maxlength=2),
    case("SparseCountSparseOutput", *S, NONE, binary_output=False, minlength=9),
    case("SparseCountSparseOutput", rows([0], [2]), i32([1, 3]), rows(4), NONE, binary_output=False),
    case("SparseCountSparseOutput", S[0][::-1].copy(), *S[1:], NONE, binary_output=False, label="unordered"),
    wrong("SparseCountSparseOutput", "negative", S[0], i32([1, -1, 3]), S[2], NONE, binary_output=False),
    wrong(
        "SparseCountSparseOutput", "outside", rows([7, 2]), i32([1]), rows(3, 3), NONE, binary_output=False
    ),
    wrong("SparseCountSparseOutput", "weights", *S, normal(2), binary_output=False),
]
PICKED = (normal(3, 2), i32([0, 2, 1]), i32([0, 0, 3]))
FLOWS = (normal(3, 2), i32([4, 1, 4]), i32([0, 0, 2]), i32(6))


def segments(kind: str) -> list:
    """Cases of one reduction and of its gradients."""
    op, flow = f"SparseSegment{kind}WithNumSegments", f"SparseSegment{kind}GradV2"
    return [
        case(op, *PICKED, i32(5), dtypes="float32 float64"),
        case(op, *PICKED, i32(5), dtypes="half bfloat16", gradient=False),
        case(op, *PICKED, i32(5), sparse_gradient=True),
        case(op, normal(3, 2), rows(0, 2, 1), rows(0, 0, 3), np.int64(4)),
        case(op, normal(3), i32([0, 2, 1]), i32([1, 1, 1]), i32(2)),
        case(op, normal(3, 2), i32([]), i32([]), i32(2), gradient=False),
        wrong(op, "too few", *PICKED, i32(3)),
        wrong(op, "negative number", *PICKED, i32(-3), error="ValueError"),
        wrong(op, "number a vector", *PICKED, i32([5]), error="ValueError"),
        wrong(op, "unsorted", normal(3, 2), i32([0, 2, 1]), i32([3, 0, 0]), i32(5)),
        wrong(op, "outside", normal(3, 2), i32([0, 2, 7]), i32([0, 0, 3]), i32(5)),
        wrong(op, "negative", normal(3, 2), i32([0, 2, 1]), i32([-1, 0, 3]), i32(5)),
        case(flow, *FLOWS, dtypes="float32 float64 half bfloat16"),
        case(flow, normal(3, 2), i32([]), i32([]), i32(6)),
        wrong(flow, "outside", normal(3, 2), i32([4, 1, 9]), i32([0, 0, 2]), i32(6)),
        wrong(flow, "segments", normal(3, 2), i32([4, 1, 4]), i32([0, 0, 3]), i32(6)),
        wrong(flow, "count", normal(3, 2), i32([1]), i32([0, 0]), i32(6), error="ValueError"),
    ]


SEGMENTS = [
    [segments(kind) for kind in ("Sum", "Mean", "SqrtN")],
    case("SparseSegmentSumWithNumSegments", *PICKED, i32(5), dtypes="int8 int32 int64 uint8"),
    case("SparseSegmentSumGrad", *FLOWS, dtypes="float32 float64 half bfloat16"),
    wrong("SparseSegmentSumGrad", "outside", normal(3, 2), i32([4, 1, 9]), i32([0, 0, 2]), i32(6)),
    [
        case(f"SparseSegment{kind}", *PICKED, sparse_gradient=True, label="picked")
        for kind in ("Sum", "Mean", "SqrtN")
    ],
]

CASES = [DENSE, SPARSE, COUNTS, SEGMENTS]
