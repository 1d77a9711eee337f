"""Cases of searched, sorted, rolled and scattered tensors, and of distinct slices."""

from op_cases import case, ints, literal, normal, strings

INVALID = "InvalidArgumentError"
ROWS = [[1.0, 3.0, 3.0, 9.0, 10.0], [0.0, 1.0, 2.0, 3.0, 4.0]]
VALUES = [[2.0, 3.0, 11.0], [-1.0, 4.0, 0.5]]
SLICES = [[1, 0, 0], [1, 0, 0], [2, 0, 0], [1, 0, 0]]
PLACES = literal([[0], [2], [0]], "int32")
PAIRS = literal([[0, 1], [2, 0]], "int64")
ROW_TYPES = "float32 float64 float16 int32 int64 uint8 uint16 complex64"


def ints_of(*values: int) -> object:
    """A vector of int32."""
    return literal(list(values), "int32")


UPDATES = (
    "TensorScatterUpdate",
    "TensorScatterAdd",
    "TensorScatterSub",
    "TensorScatterMin",
    "TensorScatterMax",
)

CASES = [
    [
        [
            case(op, ROWS, VALUES, dtypes="float32 float64 int32 int64"),
            case(op, ROWS, VALUES, out_type="int64"),
            case(
                op,
                literal([[1, 3, 2**31 + 7], [2, 2**30, 2**31 + 1]], "uint32"),
                literal([[2**31 + 7], [2**31 + 2]], "uint32"),
                label="unsigned",
            ),
            case(op, literal([[1, 3, 2**63 + 7]], "uint64"), literal([[2**63, 2]], "uint64"), label="large"),
            case(op, normal(2, 0), normal(2, 3)),
            case(op, normal(2, 3), normal(2, 0)),
            case(op, normal(4), normal(4), label="vectors", error="ValueError"),
            case(op, normal(2, 4), normal(3, 4), label="rows", error=INVALID),
        ]
        for op in ("LowerBound", "UpperBound")
    ],
    case("UnravelIndex", literal([3, 0, 5]), literal([2, 3]), dtypes="float32"),
    case("UnravelIndex", literal([7, 23], "int64"), literal([2, 3, 4], "int64"), label="long"),
    case("UnravelIndex", literal(5), literal([2, 3]), label="scalar"),
    case("UnravelIndex", literal([6]), literal([2, 3]), label="outside", error=INVALID),
    case("UnravelIndex", literal([0]), literal([2, 0]), label="empty", error=INVALID),
    case("Roll", normal(5), literal(2), literal(0), dtypes="float32 float64 int32 bool complex64 half"),
    case("Roll", normal(3, 4), literal([1, -6]), literal([0, 1])),
    case("Roll", normal(3, 4), literal([1, 1]), literal([0, 0]), label="twice"),
    case("Roll", normal(3, 4), literal(1), literal(-1), label="last"),
    case("Roll", normal(0, 4), literal(1), literal(0)),
    case("Roll", strings([b"a", b"b", b"c"]), literal(1), literal(0), label="text", dtypes="string"),
    case("Roll", normal(3), literal(1), literal(2), label="axis", error=INVALID),
    case("Roll", normal(), literal(1), literal(0), label="scalar", error="ValueError"),
    case("Roll", normal(3), literal([1, 2]), literal([0]), label="sizes", error=INVALID),
    [
        [
            case(op, literal(SLICES, "T"), literal([0], "int64"), dtypes="float32 int32 int64"),
            case(op, literal(SLICES, "T"), literal([1], "int64"), label="columns"),
            case(op, literal([2.0, 1.0, 2.0]), literal([], "int64"), label="vector"),
            case(op, literal([2.0, 1.0, 2.0]), literal([0], "int32"), out_idx="int64", label="long"),
            case(op, strings([b"b", b"a", b"b"]), literal([0], "int64"), label="text", dtypes="string"),
            case(op, normal(0), literal([0], "int64")),
            case(op, normal(2, 2), literal([], "int64"), label="matrix", error=INVALID),
        ]
        for op in ("UniqueV2", "UniqueWithCountsV2")
    ],
    [
        [
            case(op, normal(4), PLACES, normal(3), dtypes="float32 float64 int32", gradient=gradient),
            case(op, normal(3, 2), PLACES, normal(3, 2), gradient=gradient),
            case(op, normal(3, 2), PAIRS, normal(2), gradient=gradient, label="pairs"),
            case(op, normal(3, 2), literal([[0]], "int32"), normal(2), label="shape", error="ValueError"),
            case(op, normal(4), literal([[4]], "int32"), normal(1), label="outside", error=INVALID),
            case(op, normal(4), literal([[-1]], "int32"), normal(1), label="negative", error=INVALID),
            case(op, normal(4), ints(0, 4, (0, 1), "int32"), normal(0), label="none", gradient=gradient),
        ]
        for op, gradient in ((op, False if op.endswith("Update") else None) for op in UPDATES)
    ],
    case("TensorScatterUpdate", normal(4), literal([[0], [2]], "int32"), normal(2), label="gradient"),
    case(
        "TensorScatterUpdate",
        literal([b"a", b"b"], "string"),
        literal([[1]], "int32"),
        literal([b"c"], "string"),
    ),
    [
        [
            case(op, normal(3, 2), ints_of(0, 4), normal(2, 2), gradient=False, dtypes=ROW_TYPES),
            case(op, normal(3), ints_of(1, 1), normal(2), gradient=False, label="repeated"),
            case(op, normal(0, 2), ints_of(), normal(0, 2), gradient=False, label="empty"),
            case(op, normal(3, 2), ints_of(0), normal(2), gradient=False, label="ranks", error=INVALID),
            case(op, normal(3, 2), ints_of(0), normal(1, 3), gradient=False, label="sizes", error=INVALID),
            case(op, normal(3, 2), ints_of(0), normal(2, 2), gradient=False, label="count", error=INVALID),
        ]
        for op in ("InplaceUpdate", "InplaceAdd", "InplaceSub")
    ],
    case("InplaceUpdate", strings([b"a", b"b"]), ints_of(-1), strings([b"c"])),
    case("Empty", ints_of(2, 3), dtype="float32", init=True),
    case("Empty", ints_of(2), dtype="string", init=True),
    case("ScatterNdNonAliasingAdd", normal(4), PLACES, normal(3), dtypes="float32 int32"),
    case(
        "ScatterNdNonAliasingAdd",
        normal(4),
        literal([[4]], "int32"),
        normal(1),
        label="outside",
        error=INVALID,
    ),
]
