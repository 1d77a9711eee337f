"""Cases of arithmetic with sparse tensors: sums, extremes, and dense tensors."""

import numpy as np

from op_cases import case, literal, normal, positive

INVALID = "InvalidArgumentError"
FLOATS = "float32 float64"
TYPES = "int8 int16 int32 int64 uint8 uint16 half bfloat16"


def rows(*values: object) -> np.ndarray:
    """Index rows, or sizes, in int64."""
    return np.array(values, np.int64)


def none(rank: int) -> np.ndarray:
    """No index rows."""
    return np.zeros((0, rank), np.int64)


def wrong(op: str, label: str, *arguments: object, error: str = INVALID, **attributes: object) -> list:
    """A case whose arguments do not fit."""
    return case(op, *arguments, label=label, error=error, **attributes)


SIZES = rows(2, 3)
P, Q = rows([0, 0], [1, 2]), rows([0, 0], [1, 0])
A, B = (P, normal(2), SIZES), (Q, normal(2), SIZES)
HUGE = rows(2**62, 2**62)


def values(*numbers: float) -> object:
    """Values of the case's type."""
    return literal(list(numbers), "T")


def real(number: float, dtypes: str, *arguments: object, **options: object) -> list:
    """Cases of SparseAdd, each with a threshold of its real type."""
    kinds = {"complex64": "float32", "complex128": "float64"}
    return [
        case("SparseAdd", *arguments, literal(number, kinds.get(dtype, dtype)), dtypes=dtype, **options)
        for dtype in dtypes.split()
    ]


BOTH = rows([0, 0], [1, 0], [1, 2])
ADD = [
    real(0, "float32 float64 int8 int16 int32 int64 complex64 complex128", *A, *B),
    real(0, "float32", P, values(1, 2), SIZES, P, values(-1, -1.9), SIZES),
    real(0.2, "float32 float64", P, values(1, 2), SIZES, P, values(-1, -1.9), SIZES),
    real(0.2, "float32", rows([0, 0], [0, 1]), values(0.1, 0.5), SIZES, rows([1, 2]), values(0.15), SIZES),
    real(-1, "float32", P, values(1, 2), SIZES, P, values(-1, -2), SIZES),
    real(0.2, "float32", *A, P, values(np.nan, np.inf), SIZES, gradient=False),
    real(5, "complex64", P, values(3 + 4j, 1), SIZES, Q, values(0, 1), SIZES),
    real(1, "int32", P, values(3, 1), SIZES, Q, values(-3, 1), SIZES),
    real(1, "int8", P, values(-128, 1), SIZES, Q, values(0, 1), SIZES),
    real(0, "float32", none(2), values(), SIZES, *B),
    real(0, "float32", *A, none(2), values(), SIZES),
    real(0, "float32", none(2), values(), SIZES, none(2), values(), SIZES),
    real(
        *(0, "float32", rows([0, 0], [2**61, 2]), normal(2), HUGE),
        *(rows([0, 0], [2**61, 0]), normal(2), HUGE),
    ),
    real(0, "float32", *A, Q, normal(2), rows(2, 4), label="shapes", error=INVALID),
    real(0, "float32", *A, rows([0], [1]), normal(2), rows(2), label="ranks", error=INVALID),
    real(0, "float32", P, normal(1), SIZES, *B, label="count", error=INVALID),
    wrong("SparseAdd", "threshold", *A, *B, literal([0], "float32")),
    wrong("SparseAdd", "vector", rows(0), normal(1), rows(2), *B, literal(0, "float32")),
    case(
        "SparseAddGrad",
        normal(3),
        P,
        Q,
        rows([0, 0], [1, 0], [1, 2]),
        dtypes="float32 float64 int32 complex64",
    ),
    case("SparseAddGrad", normal(2), P, Q, rows([1, 0], [1, 2])),
    case("SparseAddGrad", normal(2), P, Q, rows([1, 0], [1, 7])),
    case("SparseAddGrad", normal(0), P, Q, none(2)),
    wrong("SparseAddGrad", "count", normal(3), P, Q, rows([1, 0], [1, 2])),
    wrong("SparseAddGrad", "width", normal(2), P, Q, rows([1], [2])),
]
NO_FLOW = {"gradient": False}  # the oracle's fails
EXTREMES = [
    [
        case(
            op, *A, *B, dtypes="float32 float64 int8 int16 int32 int64 uint8 uint16 half bfloat16", **NO_FLOW
        ),
        case(op, P, values(-1, -2), SIZES, *B, **NO_FLOW),
        case(op, P, values(np.nan, 1), SIZES, Q, values(1, np.nan), SIZES, **NO_FLOW),
        case(op, none(2), values(), SIZES, none(2), values(), SIZES, **NO_FLOW),
        case(op, *A, P, normal(2), SIZES, label="same places", **NO_FLOW),
        wrong(op, "outside", rows([0, 0], [5, 0]), normal(2), SIZES, *B),
        wrong(op, "shapes", *A, Q, normal(2), rows(2, 4)),
        wrong(op, "ranks", *A, rows([0], [1]), normal(2), rows(2)),
        wrong(op, "count", P, normal(1), SIZES, *B),
        case(op, P, normal(), SIZES, *B, label="a number", error="ValueError"),
    ]
    for op in ("SparseSparseMaximum", "SparseSparseMinimum")
]
P32, SIZES32 = P.astype(np.int32), SIZES.astype(np.int32)
ONES = (1, 1, 1, 1, 1, 1)
FIVE = (2, 1, 2, 1, 3)
DENSE_ADD = [
    case("SparseTensorDenseAdd", *A, normal(2, 3), dtypes=FLOATS),
    case(
        "SparseTensorDenseAdd",
        *(P, normal(2), SIZES, normal(2, 3)),
        dtypes="int8 int16 int32 int64 uint8 uint16 half bfloat16 complex64 complex128",
        gradient=False,
    ),
    case("SparseTensorDenseAdd", P32, normal(2), SIZES32, normal(2, 3), label="int32"),
    case("SparseTensorDenseAdd", rows([0, 0], [0, 0]), normal(2), SIZES, normal(2, 3), label="repeated"),
    case("SparseTensorDenseAdd", none(2), normal(0), SIZES, normal(2, 3)),
    case("SparseTensorDenseAdd", none(2), normal(0), rows(0, 3), normal(0, 3)),
    case("SparseTensorDenseAdd", rows([3]), normal(1), rows(5), normal(5)),
    case("SparseTensorDenseAdd", rows([1, 0, 1, 0, 2]), normal(1), rows(*FIVE), normal(*FIVE)),
    wrong("SparseTensorDenseAdd", "outside", rows([0, 0], [5, 0]), normal(2), SIZES, normal(2, 3)),
    wrong("SparseTensorDenseAdd", "negative", rows([0, 0], [-1, 0]), normal(2), SIZES, normal(2, 3)),
    wrong("SparseTensorDenseAdd", "shape", *A, normal(2, 2)),
    wrong("SparseTensorDenseAdd", "rank", *A, normal(3)),
    wrong("SparseTensorDenseAdd", "no broadcasting", *A, normal(1, 3)),
    wrong("SparseTensorDenseAdd", "six", none(6), normal(0), rows(*ONES), normal(*ONES)),
    wrong("SparseTensorDenseAdd", "scalar", none(0), normal(0), rows(), normal()),
]
CWISE = [
    [
        case(op, P, normal(2), SIZES, positive(2, 3), dtypes=FLOATS, gradient=flows),
        case(op, P, normal(2), SIZES, positive(2, 3), dtypes=TYPES, gradient=False),
        case(op, P, normal(2), SIZES, positive(3), gradient=flows),
        case(op, P, normal(2), SIZES, positive(2, 1), gradient=flows),
        case(op, P, normal(2), SIZES, positive(1, 1), gradient=flows),
        case(op, P, normal(2), SIZES, positive(), gradient=False),
        case(op, rows([1, 1, 0], [1, 2, 3]), normal(2), rows(2, 3, 4), positive(3, 1), gradient=flows),
        case(op, P[::-1].copy(), normal(2), SIZES, positive(2, 3), gradient=flows, label="unordered"),
        case(op, none(2), normal(0), SIZES, positive(2, 3), gradient=flows),
        case(op, rows([0], [2]), normal(2), rows(3), positive(3), gradient=flows),
        wrong(op, "higher", *A, positive(1, 2, 1)),
        wrong(op, "shapes", *A, positive(2)),
        wrong(op, "sparse side", rows([0, 0]), normal(1), rows(1, 3), positive(2, 3)),
        wrong(op, "outside", rows([0, 0], [5, 0]), normal(2), SIZES, positive(2, 3)),
        wrong(op, "outside broadcast", rows([0, 0], [5, 0]), normal(2), SIZES, positive(3)),
        wrong(op, "count", P, normal(1), SIZES, positive(2, 3)),
        wrong(op, "rank", P, normal(2), rows(2, 3, 1), positive(2, 3)),
    ]
    for op, flows in (
        ("SparseDenseCwiseAdd", False),
        ("SparseDenseCwiseMul", None),
        ("SparseDenseCwiseDiv", None),
    )
]
DIVIDED = [
    case("SparseDenseCwiseDiv", P, values(7, -7), SIZES, literal([[2, 2, 2]], "T"), dtypes="int32 int64"),
    case("SparseDenseCwiseDiv", P, values(7, 200), SIZES, literal([[2, 2, 3]], "T"), dtypes="uint8 uint16"),
    wrong(
        "SparseDenseCwiseDiv", "zero", P, values(7, 2), SIZES, literal([[2, 2, 0]], "T"), dtypes="int32 uint8"
    ),
]

CASES = [ADD, EXTREMES, DENSE_ADD, CWISE, DIVIDED]
