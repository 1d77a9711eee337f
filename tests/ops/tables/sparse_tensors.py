"""Cases of sparse tensors put in order, reshaped, cut, joined and filled."""

import numpy as np

from op_cases import case, listed, literal, normal, strings

INVALID = "InvalidArgumentError"
FLOATS = "float32 float64"
HALVES = "half bfloat16"
OTHERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 complex64 complex128 bool half bfloat16"


def rows(*values: object) -> np.ndarray:
    """Index rows, or sizes, in int64."""
    return np.array(values, np.int64)


def none(rank: int) -> np.ndarray:
    """No index rows."""
    return np.zeros((0, rank), np.int64)


def wrong(op: str, label: str, *arguments: object, error: str = INVALID, **attributes: object) -> list:
    """A case whose arguments do not fit."""
    return case(op, *arguments, label=label, error=error, **attributes)


MIXED = rows([2, 1], [0, 1], [0, 0])
ORDERED = rows([0, 0], [0, 2], [2, 1], [2, 4])
HUGE = 2**62

REORDER = [
    case("SparseReorder", MIXED, normal(3), rows(3, 2), dtypes=FLOATS),
    case("SparseReorder", MIXED, normal(3), rows(3, 2), dtypes=OTHERS, gradient=False),
    case("SparseReorder", MIXED, strings(["a", "b", "c"]), rows(3, 2)),
    case("SparseReorder", rows([2, 1], [0, 1], [2, 1]), normal(3), rows(3, 2), label="repeated"),
    case("SparseReorder", rows([2, 1], [0, 1], [0, 7]), normal(3), rows(3, 2), label="outside"),
    case("SparseReorder", rows([7, 1], [-1, 1], [0, 0]), normal(3), rows(3, 2), label="negative"),
    case("SparseReorder", MIXED, normal(3), rows(HUGE, 8), gradient=False, label="no 64 bits"),
    case(
        "SparseReorder",
        rows([HUGE, 1, 5], [HUGE, 0, HUGE], [3, HUGE, 0]),
        normal(3),
        rows(2**63 - 1, 2**63 - 1, 2**63 - 1),
        label="wide",
    ),
    case("SparseReorder", none(2), normal(0), rows(3, 2)),
    case("SparseReorder", none(0), normal(0), rows()),
    case("SparseReorder", rows([5], [1]), normal(2), rows(9)),
    wrong("SparseReorder", "count", MIXED, normal(2), rows(3, 2)),
    wrong("SparseReorder", "rank", MIXED, normal(3), rows(3, 2, 1)),
    wrong("SparseReorder", "a vector", rows(1), normal(1), rows(3), error="ValueError"),
]
RESHAPE = [
    case("SparseReshape", MIXED, rows(3, 2), rows(2, -1)),
    case("SparseReshape", MIXED, rows(3, 2), rows(6)),
    case("SparseReshape", MIXED, rows(3, 2), rows(3, 2)),
    case("SparseReshape", MIXED, rows(3, 2), rows(1, 3, 1, 2)),
    case("SparseReshape", none(2), rows(0, 2), rows(0, 5)),
    case("SparseReshape", none(2), rows(0, 2), rows(-1, 2)),
    case("SparseReshape", none(2), rows(3, 2), rows(-1)),
    case("SparseReshape", rows([5, 5]), rows(3, 2), rows(6), label="outside"),
    case("SparseReshape", rows([5, 5]), rows(2**31, 2**31), rows(2**60, -1)),
    wrong("SparseReshape", "other size", MIXED, rows(3, 2), rows(7)),
    wrong("SparseReshape", "no multiple", MIXED, rows(3, 2), rows(4, -1)),
    wrong("SparseReshape", "two unknown", MIXED, rows(3, 2), rows(-1, -1)),
    wrong("SparseReshape", "negative", MIXED, rows(3, 2), rows(-2, -3)),
    wrong("SparseReshape", "negative before", MIXED, rows(-3, 2), rows(6)),
    wrong("SparseReshape", "unknown of nothing", none(2), rows(0, 2), rows(0, -1)),
    wrong("SparseReshape", "no 64 bits", rows([5, 5]), rows(HUGE, HUGE), rows(HUGE, HUGE)),
    wrong("SparseReshape", "rank", rows([5, 5]), rows(4, 6, 1), rows(24)),
    wrong("SparseReshape", "a matrix", rows([5, 5]), rows(4, 6), rows([24]), error="ValueError"),
]
CUT = (ORDERED, normal(4), rows(3, 5), rows(0, 1), rows(2, 2))
SLICE = [
    case("SparseSlice", ORDERED, normal(4), rows(3, 5), rows(0, 1), rows(3, 3), dtypes=FLOATS),
    case("SparseSlice", ORDERED, normal(4), rows(3, 5), rows(1, 1), rows(2, 9), dtypes=HALVES),
    case("SparseSlice", ORDERED, strings(list("abcd")), rows(3, 5), rows(0, 1), rows(3, 3)),
    case(
        "SparseSlice", ORDERED, normal(4), rows(3, 5), rows(0, 1), rows(2, 2), dtypes=OTHERS, gradient=False
    ),
    case("SparseSlice", ORDERED, normal(4), rows(3, 5), rows(1, 9), rows(1, 5)),
    case("SparseSlice", ORDERED, normal(4), rows(3, 5), rows(-1, 0), rows(2, 2)),
    case("SparseSlice", MIXED, normal(3), rows(3, 2), rows(0, 0), rows(3, 1), gradient=False),
    case("SparseSlice", rows([3], [1]), normal(2), rows(9), rows(1), rows(3)),
    case("SparseSlice", none(2), normal(0), rows(3, 2), rows(0, 0), rows(3, 1)),
    wrong("SparseSlice", "negative size", ORDERED, normal(4), rows(3, 5), rows(0, 0), rows(-1, 2)),
    wrong("SparseSlice", "width", ORDERED, normal(4), rows(3, 5), rows(0), rows(1)),
    wrong("SparseSlice", "count", ORDERED, normal(3), rows(3, 5), rows(0, 0), rows(1, 1)),
    case("SparseSliceGrad", normal(2), rows([0, 0], [0, 1], [2, 1]), rows(0, 1), rows([0, 0], [2, 0])),
    case(
        "SparseSliceGrad",
        normal(1),
        rows([0, 0], [0, 1]),
        rows(0, 1),
        rows([0, 0]),
        dtypes="int8 int32 int64 uint8 uint16 complex64 half bfloat16",
    ),
    wrong(
        "SparseSliceGrad",
        "not found",
        normal(2),
        rows([0, 0], [0, 1]),
        rows(0, 0),
        rows([0, 0], [2, 0]),
        error="InternalError",
    ),
    wrong("SparseSliceGrad", "too many", normal(2), rows([0, 0]), rows(0, 0), rows([0, 0], [2, 0])),
    wrong("SparseSliceGrad", "count", normal(1), rows([0, 0], [0, 1]), rows(0, 0), rows([0, 0], [0, 1])),
]
SPLIT = [
    case("SparseSplit", np.int64(1), ORDERED, normal(4), rows(3, 5), dtypes=FLOATS, num_split=2),
    case("SparseSplit", np.int64(-2), ORDERED, normal(4), rows(3, 5), dtypes=OTHERS, num_split=3),
    case("SparseSplit", np.int64(0), ORDERED, strings(list("abcd")), rows(3, 5), num_split=2),
    case("SparseSplit", np.int64(0), rows([2, 0], [0, 0]), normal(2), rows(3, 5), num_split=2),
    case("SparseSplit", np.int64(0), none(2), normal(0), rows(3, 5), num_split=1),
    wrong("SparseSplit", "too many", np.int64(0), ORDERED, normal(4), rows(3, 5), num_split=4),
    wrong("SparseSplit", "axis", np.int64(2), ORDERED, normal(4), rows(3, 5), num_split=2),
    wrong("SparseSplit", "axis a vector", rows(0), ORDERED, normal(4), rows(3, 5), num_split=2),
    wrong("SparseSplit", "outside", np.int64(0), rows([5, 0]), normal(1), rows(3, 5), num_split=2),
    wrong("SparseSplit", "rank", np.int64(0), ORDERED, normal(4), rows(3, 5, 1), num_split=2),
    wrong("SparseSplit", "count", np.int64(0), ORDERED, normal(3), rows(3, 5), num_split=2),
]
A, B = rows([0, 0], [1, 2]), rows([0, 1], [1, 0])


def joined(first: object, second: object, third: object, **options: object) -> list:
    """A case of SparseConcat: lists of indices, values and shapes."""
    return case("SparseConcat", listed(*first), listed(*second), listed(*third), **options)


TWO = (normal(2), normal(2))
CONCAT = [
    joined((A, B), TWO, (rows(2, 3), rows(2, 2)), dtypes=FLOATS, concat_dim=1),
    joined((A, B), TWO, (rows(2, 3), rows(3, 3)), dtypes=OTHERS, gradient=False, concat_dim=0),
    joined((A, B), (strings(["a", "b"]), strings(["c", "d"])), (rows(2, 3), rows(2, 2)), concat_dim=-1),
    joined((A[::-1].copy(), B), TWO, (rows(2, 3), rows(2, 2)), concat_dim=1, label="unordered"),
    joined((A, B + 5), TWO, (rows(2, 3), rows(2, 2)), concat_dim=1, label="outside"),
    joined((A, none(2)), (normal(2), normal(0)), (rows(2, 3), rows(2, 2)), concat_dim=1),
    joined((A, B, A), (*TWO, normal(2)), (rows(2, 3), rows(2, 3), rows(2, 3)), concat_dim=0),
    joined((A, B), TWO, (rows(2, 3), rows(2, 2)), concat_dim=2, error=INVALID),
    joined((A, B), TWO, (rows(2, 3), rows(3, 2)), concat_dim=1, error=INVALID),
    joined((A, rows([0], [1])), TWO, (rows(2, 3), rows(3)), concat_dim=0, error="ValueError"),
    joined((A, B), (normal(2), normal(1)), (rows(2, 3), rows(2, 2)), concat_dim=1, error="ValueError"),
    joined((A, B), TWO, (rows(2, HUGE), rows(2, HUGE)), concat_dim=1, error="InternalError"),
    joined((A, B), TWO, (rows(2, -1), rows(2, HUGE)), concat_dim=1, error="InternalError"),
]
SPARSE = (rows([0, 0], [2, 1]), normal(2), rows(4, 3), normal())
FILL = [
    case("SparseFillEmptyRows", rows([0, 0], [2, 1]), normal(2), rows(4, 3), normal(), dtypes=FLOATS),
    case(
        "SparseFillEmptyRows",
        rows([0, 0], [2, 1]),
        normal(2),
        rows(4, 3),
        normal(),
        dtypes=OTHERS,
        gradient=False,
    ),
    case("SparseFillEmptyRows", rows([0, 0], [2, 1]), strings(["a", "b"]), rows(4, 3), strings("z")),
    case("SparseFillEmptyRows", rows([2, 1], [0, 0], [2, 0]), normal(3), rows(4, 3), normal(), dtypes=FLOATS),
    case("SparseFillEmptyRows", rows([0, 0], [1, 9]), normal(2), rows(4, 3), normal(), label="column"),
    case("SparseFillEmptyRows", none(2), normal(0), rows(0, 3), normal()),
    case("SparseFillEmptyRows", none(2), normal(0), rows(2, 3), normal()),
    case("SparseFillEmptyRows", rows([0, 0], [1, 1]), normal(2), rows(2, 3), normal()),
    case("SparseFillEmptyRows", rows([1, 0], [0, 1], [1, 2], [0, 0]), normal(4), rows(2, 3), normal()),
    case("SparseFillEmptyRows", rows([0, 0, 1], [2, 1, 1]), normal(2), rows(4, 3, 2), normal()),
    case("SparseFillEmptyRows", rows([0], [2]), normal(2), rows(4), normal()),
    wrong("SparseFillEmptyRows", "outside", rows([0, 0], [5, 1]), normal(2), rows(4, 3), normal()),
    wrong("SparseFillEmptyRows", "negative", rows([0, 0], [-5, 1]), normal(2), rows(4, 3), normal()),
    wrong("SparseFillEmptyRows", "no rows", rows([0, 0]), normal(1), rows(0, 3), normal()),
    wrong("SparseFillEmptyRows", "default", A, normal(2), rows(2, 3), normal(1), error="ValueError"),
    wrong("SparseFillEmptyRows", "count", A, normal(3), rows(2, 3), normal(), error="ValueError"),
    wrong("SparseFillEmptyRows", "rank", A, normal(2), rows(2, 3, 1), normal(), error="ValueError"),
    wrong("SparseFillEmptyRows", "scalar", none(0), normal(0), rows(), normal(), error="ValueError"),
    wrong(
        "SparseFillEmptyRows",
        "too large",
        rows([0, 0], [1, 1]),
        normal(2),
        rows(2**60, 3),
        normal(),
        error="ResourceExhaustedError",
    ),
    case("SparseFillEmptyRowsGrad", rows(0, 2), normal(4), dtypes=FLOATS + " half int64"),
    case("SparseFillEmptyRowsGrad", rows(1, 1), normal(4)),
    case("SparseFillEmptyRowsGrad", rows(), normal(0)),
    wrong("SparseFillEmptyRowsGrad", "outside", rows(0, 9), normal(4)),
    wrong("SparseFillEmptyRowsGrad", "negative", rows(0, -1), normal(4)),
    wrong("SparseFillEmptyRowsGrad", "a matrix", rows([1, 1]), normal(4), error="ValueError"),
    wrong("SparseFillEmptyRowsGrad", "values a matrix", rows(1), literal([[1.0]]), error="ValueError"),
]

CASES = [REORDER, RESHAPE, SLICE, SPLIT, CONCAT, FILL]
