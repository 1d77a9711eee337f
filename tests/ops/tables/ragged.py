"""Cases of ragged rows."""

import numpy as np

from op_cases import case, ints, listed, literal, normal, strings

INVALID = "InvalidArgumentError"


def i64(*values: object) -> np.ndarray:
    """Splits, numbers of rows or indices, in int64."""
    return np.array(values, np.int64)


def i32(*values: object) -> np.ndarray:
    """The same in int32."""
    return np.array(values, np.int32)


def t(*values: object) -> object:
    """Numbers of the case's type."""
    return literal(np.array(values), "T")


ROWS = listed(i64(0, 2, 2, 5))
DEEP = listed(i64(0, 2, 3), i64(0, 2, 2, 5))
WORDS = strings(["a", "b", "c", "d", "e"])

RANGES = [
    case("RaggedRange", t(2, 5, 8), t(5, 3, 12), t(1, -1, 3), dtypes="int32 int64 float32 float64"),
    case("RaggedRange", t(2, 5, 8), t(5, 3, 12), t(1, -1, 3), label="int32", Tsplits="int32"),
    case("RaggedRange", literal(0, "T"), t(3, 0, -2), literal(1, "T"), dtypes="int32 float32"),
    case("RaggedRange", literal(1, "T"), literal(40, "T"), literal(3, "T"), dtypes="int64 float64"),
    case("RaggedRange", t(0.0, 5.0), t(4.0, 9.0), t(0.1, 0.3), dtypes="float32 float64"),
    case("RaggedRange", t(*range(9)), literal(9.0, "T"), literal(0.7, "T"), label="more rows"),
    case("RaggedRange", t(), t(), literal(1.0, "T"), label="none"),
    case("RaggedRange", t(1, 2), t(3), t(1), label="lengths", error="ValueError"),
    case("RaggedRange", t(1, 2), t(3, 4), t(1, 0), dtypes="int32 float32", label="zero", error=INVALID),
    case("RaggedRange", literal([[1]]), t(3), t(1), dtypes="int32", label="rank", error="ValueError"),
]
GATHERS = [
    case("RaggedGather", ROWS, normal(5), i32(2, 0, 2), OUTPUT_RAGGED_RANK=1, dtypes="float32 complex64"),
    case("RaggedGather", ROWS, normal(5, 2), i64([2, 0], [1, 2]), OUTPUT_RAGGED_RANK=2),
    case("RaggedGather", DEEP, normal(5), i32(1, 0), OUTPUT_RAGGED_RANK=2, dtypes="float64 int32"),
    case("RaggedGather", DEEP, normal(5), literal(0, "int32"), OUTPUT_RAGGED_RANK=1, label="row"),
    case("RaggedGather", DEEP, normal(5), i64([[1], [0]]), OUTPUT_RAGGED_RANK=4),
    case("RaggedGather", listed(i32(0, 2, 5)), WORDS, i32(1, 1), OUTPUT_RAGGED_RANK=1),
    case("RaggedGather", ROWS, ints(0, 99, (5,), "uint16"), i32(2, 0), OUTPUT_RAGGED_RANK=1),
    case("RaggedGather", ROWS, normal(5), i32(), OUTPUT_RAGGED_RANK=1, label="none"),
    case("RaggedGather", listed(i64(1, 2, 4)), normal(5), i32(1, 0), OUTPUT_RAGGED_RANK=1, label="part"),
    case("RaggedGather", ROWS, normal(5), i32(3), OUTPUT_RAGGED_RANK=1, label="outside", error=INVALID),
    case("RaggedGather", ROWS, normal(5), i32(-1), OUTPUT_RAGGED_RANK=1, label="below", error=INVALID),
    case("RaggedGather", ROWS, normal(3), i32(0), OUTPUT_RAGGED_RANK=1, label="beyond", error=INVALID),
]
SPARSE = [
    case("RaggedTensorToSparse", ROWS, normal(5), dtypes="float32 float64 complex64 int8 bool"),
    case("RaggedTensorToSparse", DEEP, normal(5)),
    case("RaggedTensorToSparse", DEEP, normal(5, 2, 2)),
    case("RaggedTensorToSparse", listed(i32(0, 1, 5)), WORDS),
    case("RaggedTensorToSparse", listed(i64(0, 0, 0)), normal(0, 2)),
    case("RaggedTensorToSparse", ROWS, normal(4), label="count", error=INVALID),
    case("RaggedTensorToSparse", listed(i64(1, 5)), normal(5), label="begin", error=INVALID),
]


def dense(
    label: str, shape: object, values: object, default: object, *parts: object, **given: object
) -> list:
    """A case of RaggedTensorToTensor; parts that are scalars come with row numbers."""
    scalar = getattr(parts[0], "ndim", 1) == 0
    kinds = (
        ["FIRST_DIM_SIZE"] + ["VALUE_ROWIDS"] * (len(parts) - 1) if scalar else ["ROW_SPLITS"] * len(parts)
    )
    kinds = given.pop("kinds", kinds)
    return case(
        "RaggedTensorToTensor", shape, values, default, listed(*parts), row_partition_types=kinds,
        label=label, **given,
    )  # fmt: skip


ZERO = literal(0, "T")
SPLITS = i64(0, 2, 2, 5)
IDS = (np.int64(3), i64(0, 0, 2, 2, 2))
DENSE = [
    dense(
        "splits",
        i32(-1, -1),
        normal(5),
        ZERO,
        SPLITS,
        dtypes="float32 float64 int64 complex64 bfloat16 uint8 uint16 uint32 uint64",
    ),
    dense("row numbers", i32(-1, -1), normal(5), ZERO, *IDS),
    dense("deep", i64(-1, -1, -1), normal(5), ZERO, i64(0, 2, 3), SPLITS),
    dense("deep row numbers", i32(-1, -1, -1), normal(5), ZERO, np.int64(2), i64(0, 0, 1), IDS[1]),
    dense("cut", i32(2, 2), normal(5), ZERO, SPLITS),
    dense("cut deep", i32(4, 1, 2), normal(5), ZERO, i64(0, 2, 3), SPLITS),
    dense("wider", i32(-1, 4), normal(5), literal(7, "T"), SPLITS, dtypes="float32 int16"),
    dense("inner", i32(-1, -1, -1), normal(5, 2), ZERO, SPLITS),
    dense("default of rows", i32(-1, -1, -1, -1), normal(5, 2, 2), normal(2), SPLITS),
    dense("default of one", i32(-1, -1, 2, -1), normal(5, 2, 3), normal(1, 3), SPLITS),
    dense("words", i32(-1, -1), WORDS, strings(""), SPLITS),
    dense("empty", i32(-1, -1, -1), normal(0, 2), ZERO, i64(0, 0, 0)),
    dense("no rows", i32(-1, -1), normal(0), ZERO, i32(0)),
    dense("default", i32(-1, -1), normal(5), normal(2), SPLITS, error="ValueError"),
    dense("beyond", i32(-1, -1), normal(5), ZERO, np.int64(2), IDS[1], error=INVALID),
    dense("rank", i32(-1, -1, -1), normal(5), ZERO, SPLITS, error="ValueError"),
    dense("size", i32(-1, -1, 3), normal(5, 2), ZERO, SPLITS, error="ValueError"),
    dense("scalar shape", literal(2, "int32"), normal(5), ZERO, SPLITS, error="ValueError"),
    dense("kind", i32(-1, -1), normal(5), ZERO, SPLITS, kinds=["ROWS"], error="ValueError"),
]
NONE = literal(np.zeros(0), "T")
V = i32(1, 3, 3, 0, 1)
COUNTS = [
    case("RaggedBincount", SPLITS, V, np.int32(4), NONE, dtypes="int32 int64 float32 float64"),
    case("RaggedBincount", SPLITS, V, np.int32(4), normal(5)),
    case("RaggedBincount", SPLITS, V, np.int32(2), NONE, binary_output=True),
    case("RaggedBincount", SPLITS, i64(1, 3, 3, 0, 1), np.int64(4), NONE, label="int64"),
    case("RaggedBincount", SPLITS, -V, np.int32(4), NONE, label="negative", error=INVALID),
    case("RaggedBincount", i64(0, 2), V, np.int32(4), NONE, label="splits", error=INVALID),
    case("RaggedBincount", i64(1, 5), V, np.int32(4), NONE, label="begin", error=INVALID),
    case("RaggedBincount", SPLITS, V, np.int32(-4), NONE, label="size", error=INVALID),
    *(
        case("RaggedCountSparseOutput", SPLITS, V, weights, output_type="T", binary_output=binary, **given)
        for weights in (NONE, normal(5, dtype="T"))
        for binary, given in (
            (False, {"dtypes": "int32 int64 float32 float64"}),
            (True, {}),
            (False, {"minlength": 2, "maxlength": 3}),
            (False, {"minlength": 7}),
        )
    ),
    case(
        "RaggedCountSparseOutput", SPLITS, -V, NONE, output_type="T", binary_output=False, label="negative",
        error=INVALID,
    ),
    case(
        "RaggedCountSparseOutput", SPLITS, V, normal(2, dtype="T"), output_type="T", binary_output=False,
        label="weights", error=INVALID,
    ),
]  # fmt: skip
FILLED = [
    case(
        "RaggedFillEmptyRows", i64(0, 0, 2), normal(3), np.int64(4), ZERO,
        dtypes="float32 float64 int8 uint16 complex64 bool",
    ),
    case("RaggedFillEmptyRows", i64(2, 0, 0), normal(3), np.int64(4), ZERO, label="unordered"),
    case("RaggedFillEmptyRows", i64(0, 1, 1), strings(["a", "b", "c"]), np.int64(4), strings("z")),
    case("RaggedFillEmptyRows", i64(), normal(0), np.int64(2), ZERO),
    case("RaggedFillEmptyRows", i64(0, 5), normal(2), np.int64(4), ZERO, label="outside", error=INVALID),
    case("RaggedFillEmptyRows", i64(0), normal(2), np.int64(4), ZERO, label="count", error="ValueError"),
    case("RaggedFillEmptyRows", i64(0), normal(1), i64(4), ZERO, label="rows", error="ValueError"),
    case("RaggedFillEmptyRowsGrad", i64(0, 1, 3), normal(5), dtypes="float32 float64"),
    case("RaggedFillEmptyRowsGrad", i64(0, 5), normal(5), label="outside", error=INVALID),
]  # fmt: skip


def crossed(label: str, order: str, ragged: tuple, sparse: tuple, others: tuple, **given: object) -> list:
    """A case of RaggedCross: (values, splits) pairs, (indices, values, shape) triples and matrices."""
    lists = [listed(*[each[i] for each in ragged]) for i in range(2)]
    lists += [listed(*[each[i] for each in sparse]) for i in range(3)]
    options = {
        "hashed_output": False, "num_buckets": 0, "hash_key": 956888297470, "out_values_type": "string",
        "out_row_splits_type": "int64", **given,
    }  # fmt: skip
    return case("RaggedCross", *lists, listed(*others), label=label, input_order=order, **options)


HASHED = {"hashed_output": True, "out_values_type": "int64"}
R = (strings(["a", "b", "c"]), i64(0, 1, 3))
N = (i64(3, -4, 5), i64(0, 1, 3))
S = (i64([0, 0], [1, 0], [1, 1]), i64(5, 6, 7), i64(2, 2))
D = strings([["x", "y"], ["z", "w"]])
CROSSES = [
    crossed("all", "RSD", (R,), (S,), (D,)),
    crossed("all hashed", "RSD", (R,), (S,), (D,), **HASHED),
    crossed("buckets", "RSD", (R,), (S,), (D,), num_buckets=10, **HASHED),
    crossed("two", "RR", (R, N), (), ()),
    crossed("two hashed", "RR", (R, N), (), (), **HASHED),
    crossed("one", "R", ((N[0], i32(0, 1, 3)),), (), (), out_row_splits_type="int32"),
    crossed("dense", "DR", (R,), (), (D,)),
    crossed("empty", "RR", (R, (i64(1, 2), i64(0, 0, 2))), (), ()),
    crossed("order", "RS", (R,), (S,), (D,), error=INVALID),
    crossed("letter", "RSQ", (R,), (S,), (D,), error=INVALID),
    crossed("rows", "RS", ((R[0], i64(0, 3)),), (S,), (), error=INVALID),
    crossed("splits", "R", ((R[0], i64(0, 2)),), (), (), error=INVALID),
]
CASES = [RANGES, GATHERS, SPARSE, DENSE, COUNTS, FILLED, CROSSES]
