"""Cases of reductions of sparse tensors, of their soft-max and of products with dense matrices."""

import numpy as np

from op_cases import case, literal, normal

INVALID = "InvalidArgumentError"
FLOATS = "float32 float64"


def rows(*values: object) -> np.ndarray:
    """Index rows, or sizes, in int64."""
    return np.array(values, np.int64)


def none(rank: int) -> np.ndarray:
    """No index rows."""
    return np.zeros((0, rank), np.int64)


def axes(*values: int) -> np.ndarray:
    """Axes in int32."""
    return np.array(values, np.int32)


def values(*numbers: float) -> object:
    """Values of the case's type."""
    return literal(list(numbers), "T")


def wrong(op: str, label: str, *arguments: object, error: str = INVALID, **attributes: object) -> list:
    """A case whose arguments do not fit."""
    return case(op, *arguments, label=label, error=error, **attributes)


P = rows([0, 0], [0, 2], [1, 1])
SIZES = rows(3, 3)
A = (P, normal(3), SIZES)
CUBE = (rows([0, 0, 1], [0, 2, 1], [1, 0, 0], [1, 0, 1]), normal(4), rows(2, 3, 2))
REALS = "int8 int16 int32 int64 uint8 uint16 half bfloat16"


def reductions(op: str, types: str) -> list:
    """Cases of one reduction."""
    return [
        case(op, *A, axes(1), dtypes=FLOATS),
        case(op, *A, axes(1), dtypes=types, gradient=False),
        [case(op, *A, axes(*each)) for each in ((), (0,), (-1,), (0, 1), (1, 1), (1, -1))],
        [case(op, *A, axes(*each), keep_dims=True) for each in ((), (0,), (-1,), (0, 1))],
        [case(op, *CUBE, axes(*each)) for each in ((0,), (1,), (2,), (0, 2), (-3, -2))],
        case(op, *CUBE, axes(1), keep_dims=True),
        case(op, *A, np.int32(1), label="scalar"),
        case(op, P[::-1].copy(), normal(3), SIZES, axes(1), label="unordered"),
        case(op, rows([0, 0], [0, 0], [0, 0]), normal(3), SIZES, axes(1), label="repeated"),
        case(op, P, values(2, np.nan, 1), SIZES, axes(1), gradient=False),
        case(op, P, values(2, -np.inf, np.inf), SIZES, axes(1), gradient=False),
        case(op, none(2), normal(0), SIZES, axes(1)),
        case(op, none(2), normal(0), SIZES, axes()),
        case(op, none(2), normal(0), rows(0, 3), axes(0)),
        wrong(op, "axis", *A, axes(2)),
        wrong(op, "axes a matrix", *A, axes([1])),
        wrong(op, "count", P, normal(2), SIZES, axes(1)),
        wrong(op, "no 64 bits", P, normal(3), rows(2**62, 4), axes(1)),
    ]


ONE = (rows([0, 0]), normal(1))
REDUCE = [
    reductions("SparseReduceSum", REALS + " complex64 complex128"),
    reductions("SparseReduceMax", REALS),
    reductions("SparseReduceSumSparse", REALS + " complex64 complex128"),
    reductions("SparseReduceMaxSparse", REALS),
    [
        [
            wrong(
                op,
                "too large",
                rows([0, 0]),
                normal(1),
                rows(2**60, 4),
                axes(1),
                error="ResourceExhaustedError",
            ),
            wrong(op, "outside", rows([5, 0]), normal(1), SIZES, axes(1), error="InternalError"),
            wrong(op, "negative", rows([-1, 0]), normal(1), SIZES, axes(1), error="InternalError"),
        ]
        for op in ("SparseReduceSum", "SparseReduceMax")
    ],
    [
        case(op, rows([0, 0], [1, 1]), normal(2), rows(2**60, 4), axes(1), label="large")
        for op in ("SparseReduceSumSparse", "SparseReduceMaxSparse")
    ],
]
SOFTMAX = [
    case("SparseSoftmax", *A, dtypes=FLOATS),
    case("SparseSoftmax", *CUBE),
    case("SparseSoftmax", none(2), normal(0), SIZES),
    case("SparseSoftmax", P, values(np.inf, 2, np.nan), SIZES, gradient=False),
    case("SparseSoftmax", P, values(-np.inf, -np.inf, 1), SIZES, gradient=False),
    case("SparseSoftmax", P, values(100, -100, 1000), SIZES),
    case("SparseSoftmax", rows([0, 0], [0, 0], [1, 0]), normal(3), SIZES, label="repeated"),
    wrong("SparseSoftmax", "vector", rows([0], [1]), normal(2), rows(3)),
    wrong("SparseSoftmax", "count", P, normal(2), SIZES),
    wrong("SparseSoftmax", "no 64 bits", rows([0, 0], [0, 1]), normal(2), rows(2**62, 4)),
]
M = (rows([0, 0], [0, 2], [1, 1], [3, 0]), normal(4), rows(4, 3))
BOTH = {"adjoint_a": True, "adjoint_b": True}
MATMUL = [
    case("SparseTensorDenseMatMul", *M, normal(3, 5), dtypes=FLOATS + " complex64 complex128"),
    case("SparseTensorDenseMatMul", *M, normal(3, 5), dtypes="half bfloat16 int32", gradient=False),
    case("SparseTensorDenseMatMul", *M, normal(4, 5), dtypes="float32 complex64", adjoint_a=True),
    case("SparseTensorDenseMatMul", *M, normal(5, 3), dtypes="float32 complex64", adjoint_b=True),
    case(
        "SparseTensorDenseMatMul",
        *M,
        normal(5, 4),
        dtypes="float32 complex64",
        adjoint_a=True,
        adjoint_b=True,
    ),
    case("SparseTensorDenseMatMul", *M, normal(4, 1), adjoint_a=True),
    case("SparseTensorDenseMatMul", M[0].astype(np.int32), normal(4), M[2], normal(3, 5), label="int32"),
    case("SparseTensorDenseMatMul", M[0][::-1].copy(), *M[1:], normal(3, 5), label="unordered"),
    case("SparseTensorDenseMatMul", rows([0, 0], [0, 0], [2, 2]), normal(3), SIZES, normal(3, 5)),
    case("SparseTensorDenseMatMul", none(2), normal(0), SIZES, normal(3, 5)),
    case("SparseTensorDenseMatMul", none(2), normal(0), rows(0, 3), normal(3, 5)),
    case("SparseTensorDenseMatMul", none(2), normal(0), rows(3, 0), normal(0, 5)),
    case("SparseTensorDenseMatMul", *A, normal(3, 0)),
    case("SparseTensorDenseMatMul", *A, literal([[np.nan, 1], [np.inf, 2], [3, 4]], "T"), gradient=False),
    wrong("SparseTensorDenseMatMul", "inner", *A, normal(2, 5)),
    wrong("SparseTensorDenseMatMul", "vector", *A, normal(3), error="ValueError"),
    wrong("SparseTensorDenseMatMul", "column", rows([0, 0], [0, 5]), normal(2), SIZES, normal(3, 5)),
    wrong("SparseTensorDenseMatMul", "row", rows([0, 0], [5, 0]), normal(2), SIZES, normal(3, 5)),
    wrong("SparseTensorDenseMatMul", "negative", rows([0, 0], [-1, 0]), normal(2), SIZES, normal(3, 5)),
    wrong("SparseTensorDenseMatMul", "sizes", P, normal(3), rows(3), normal(3, 5), error="ValueError"),
    wrong("SparseTensorDenseMatMul", "count", P, normal(2), SIZES, normal(3, 5)),
    wrong(
        *("SparseTensorDenseMatMul", "too large", rows([0, 0]), normal(1), rows(2**60, 3), normal(3, 5)),
        error="ResourceExhaustedError",
    ),
    [
        case("SparseMatMul", normal(2, 3), normal(3, 4), **options)
        for options in ({}, {"a_is_sparse": True}, {"b_is_sparse": True})
    ],
    case("SparseMatMul", normal(3, 2), normal(3, 4), transpose_a=True),
    case("SparseMatMul", normal(2, 3), normal(4, 3), transpose_b=True, b_is_sparse=True),
    case("SparseMatMul", normal(3, 2), normal(4, 3), transpose_a=True, transpose_b=True),
    case("SparseMatMul", normal(2, 3, dtype="bfloat16"), normal(3, 4), gradient=False, label="mixed"),
    case("SparseMatMul", normal(2, 3, dtype="bfloat16"), normal(3, 4, dtype="bfloat16"), label="bfloat16"),
    case("SparseMatMul", normal(2, 0), normal(0, 4)),
    case("SparseMatMul", normal(0, 3), normal(3, 4)),
    wrong("SparseMatMul", "inner", normal(2, 3), normal(2, 4), error="ValueError"),
    wrong("SparseMatMul", "vector", normal(3), normal(3, 4), error="ValueError"),
]

CASES = [REDUCE, SOFTMAX, MATMUL]
