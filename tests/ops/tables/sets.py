"""Cases of the set operations."""

import numpy as np

from op_cases import case, ints, literal, strings

INVALID = "InvalidArgumentError"
KINDS = ("a-b", "b-a", "intersection", "union")
INTEGERS = "int8 int16 int32 int64 uint8 uint16"


def rows(*values: object) -> np.ndarray:
    """Index rows, or sizes, in int64."""
    return np.array(values, np.int64)


def none(rank: int) -> np.ndarray:
    """No index rows."""
    return np.zeros((0, rank), np.int64)


def dense(first: object, second: object, **options: object) -> list:
    """A case of two dense operands."""
    options = {"set_operation": "union", **options}
    return case("DenseToDenseSetOperation", first, second, **options)


def mixed(first: object, *second: object, **options: object) -> list:
    """A case of a dense and a sparse operand."""
    options = {"set_operation": "union", **options}
    return case("DenseToSparseSetOperation", first, *second, **options)


def sparse(*arguments: object, **options: object) -> list:
    """A case of two sparse operands."""
    options = {"set_operation": "union", **options}
    return case("SparseToSparseSetOperation", *arguments, **options)


A = literal([[1, 2, 2], [3, 9, 9]], "T")
FIRST = (rows([0, 0], [0, 4], [3, 0]), literal([7, 5, 3], "T"), rows(4, 6))
SECOND = (rows([0, 0], [0, 1], [1, 0], [3, 1]), literal([2, 7, 3, 3], "T"), rows(4, 2))
TWO = (rows([0, 0], [0, 1], [1, 0]), literal([2, 7, 3], "T"), rows(2, 2))
TEXTS = strings([["b", "a"]])
WIDE = literal([[-(2**63), 2**63 - 1, 5]], "int64")

SIZES = [
    case("SetSize", rows([0, 0], [0, 1], [2, 0]), literal([5, 5, 6], "T"), rows(3, 2), dtypes=INTEGERS),
    case("SetSize", rows([0, 0], [0, 1], [2, 0]), strings(["b", "b", "a"]), rows(3, 2)),
    case("SetSize", rows([0, 0, 0], [1, 1, 1]), literal([5, 5], "T"), rows(2, 2, 3), dtypes="int32"),
    case("SetSize", none(2), ints(0, 1, (0,)), rows(3, 2), dtypes="int32"),
    case("SetSize", none(2), ints(0, 1, (0,)), rows(0, 2), dtypes="int32"),
    case(
        "SetSize",
        rows([2, 0], [0, 1], [0, 0]),
        literal([5, 5, 6], "T"),
        rows(3, 2),
        dtypes="int32",
        validate_indices=False,
    ),
]
SIZES += [
    case("SetSize", *arguments, dtypes="int32", label=label, error=error, **attributes)
    for label, error, arguments, attributes in [
        ("a vector", INVALID, (rows([0], [1]), literal([5, 5], "T"), rows(3)), {}),
        ("out of order", INVALID, (rows([1, 0], [0, 0]), literal([5, 5], "T"), rows(3, 2)), {}),
        ("repeated", INVALID, (rows([1, 0], [1, 0]), literal([5, 5], "T"), rows(3, 2)), {}),
        ("outside", INVALID, (rows([1, 0], [3, 0]), literal([5, 5], "T"), rows(3, 2)), {}),
        ("negative size", INVALID, (rows([0, 0]), literal([5], "T"), rows(-1, 2)), {}),
        ("count", INVALID, (rows([0, 0]), literal([5, 5], "T"), rows(3, 2)), {}),
        ("width", INVALID, (rows([0, 0]), literal([5], "T"), rows(3, 2, 2)), {}),
        (
            "outside unchecked",
            "InternalError",
            (rows([0, 0], [7, 1]), literal([5, 5], "T"), rows(3, 2)),
            {"validate_indices": False},
        ),
        (
            "overflow",
            INVALID,
            (rows([0, 0, 0], [1, 1, 0]), literal([5, 5], "T"), rows(2**40, 2**40, 3)),
            {},
        ),
    ]
]

CASES = [
    SIZES,
    [dense(A, literal([[2, 5, 5], [9, 9, 1]], "T"), dtypes=INTEGERS, set_operation=kind) for kind in KINDS],
    dense(A, literal([[2, 5, 5], [9, 9, 1]], "T"), dtypes="int32", set_operation="UNION"),
    [
        dense(strings([["b", "a", ""]]), strings([[b"\xff", b"a", b"a\0"]]), set_operation=kind)
        for kind in KINDS
    ],
    [
        dense(ints(-4, 5, (2, 3, 7)), ints(-4, 5, (2, 3, 5)), dtypes="int64", set_operation=kind)
        for kind in KINDS
    ],
    [dense(WIDE, literal([[5, 2**63 - 1, 0]], "int64"), set_operation=kind) for kind in KINDS],
    dense(ints(0, 9, (2, 0)), ints(0, 9, (2, 0)), dtypes="int32"),
    dense(ints(0, 9, (2, 0)), ints(0, 9, (2, 3)), dtypes="int32"),
    dense(ints(0, 9, (0, 2)), ints(0, 9, (0, 3)), dtypes="int32"),
    dense(literal([1, 2], "T"), literal([2, 3], "T"), dtypes="int32", label="vectors", error="ValueError"),
    dense(literal(1, "T"), literal(2, "T"), dtypes="int32", label="scalars", error="ValueError"),
    dense(A, literal([[1]], "T"), dtypes="int32", label="other sets", error="ValueError"),
    dense(A, literal([1], "T"), dtypes="int32", label="other rank", error="ValueError"),
    dense(A, A, dtypes="int32", set_operation="xor", error=INVALID),
    [mixed(A, *TWO, dtypes=INTEGERS, set_operation=kind) for kind in KINDS],
    [
        mixed(
            strings([["b", "a"]]), rows([0, 0], [0, 2]), strings(["c", "a"]), rows(1, 3), set_operation=kind
        )
        for kind in KINDS
    ],
    mixed(A, none(2), ints(0, 9, (0,)), rows(2, 2), dtypes="int32"),
    mixed(
        A,
        rows([0, 1], [5, 1]),
        literal([2, 7], "T"),
        rows(2, 2),
        dtypes="int32",
        validate_indices=False,
        label="unknown set",
    ),
    [
        mixed(A, *arguments, dtypes="int32", label=label, error=error, **attributes)
        for label, error, arguments, attributes in [
            ("out of order", INVALID, (rows([1, 0], [0, 1]), literal([2, 7], "T"), rows(2, 2)), {}),
            ("repeated", INVALID, (rows([0, 1], [0, 1]), literal([2, 7], "T"), rows(2, 2)), {}),
            ("outside", INVALID, (rows([0, 1], [0, 5]), literal([2, 7], "T"), rows(2, 2)), {}),
            (
                "outside unchecked",
                "InternalError",
                (rows([0, 1], [0, 5]), literal([2, 7], "T"), rows(2, 2)),
                {"validate_indices": False},
            ),
            ("other sets", INVALID, (rows([0, 1]), literal([2], "T"), rows(3, 2)), {}),
            ("other rank", "ValueError", (rows([0, 1, 0]), literal([2], "T"), rows(2, 2, 1)), {}),
            ("a vector of indices", "ValueError", (rows(0), literal([2], "T"), rows(2, 2)), {}),
            ("count", "ValueError", (rows([0, 0]), literal([2, 3], "T"), rows(2, 2)), {}),
            ("kind", INVALID, (rows([0, 1]), literal([2], "T"), rows(2, 2)), {"set_operation": "or"}),
        ]
    ],
    [sparse(*FIRST, *SECOND, dtypes=INTEGERS, set_operation=kind) for kind in KINDS],
    [
        sparse(
            rows([0, 0, 0], [1, 0, 4]),
            literal([7, 5], "T"),
            rows(2, 2, 9),
            rows([0, 1, 0], [1, 0, 1]),
            literal([2, 5], "T"),
            rows(2, 2, 4),
            dtypes="int64",
            set_operation=kind,
        )
        for kind in KINDS
    ],
    [
        sparse(
            *(rows([0, 0], [0, 1]), strings(["x", "y"]), rows(2, 3)),
            *(rows([0, 0], [1, 1]), strings(["y", "y"]), rows(2, 2)),
            set_operation=kind,
        )
        for kind in KINDS
    ],
    sparse(none(2), ints(0, 9, (0,)), rows(2, 2), none(2), ints(0, 9, (0,)), rows(2, 1), dtypes="int32"),
    [
        sparse(*arguments, dtypes="int32", label=label, error=error, **attributes)
        for label, error, arguments, attributes in [
            ("other sets", INVALID, (*FIRST, *SECOND[:2], rows(5, 2)), {}),
            ("other rank", "ValueError", (*FIRST, none(3), ints(0, 9, (0,)), rows(4, 2, 2)), {}),
            ("vectors", "ValueError", (none(1), ints(0, 9, (0,)), rows(4)) * 2, {}),
            ("first out of order", INVALID, (FIRST[0][::-1].copy(), *FIRST[1:], *SECOND), {}),
            ("second out of order", INVALID, (*FIRST, SECOND[0][::-1].copy(), *SECOND[1:]), {}),
            ("kind", INVALID, (*FIRST, *SECOND), {"set_operation": ""}),
            ("too many sets", INVALID, (none(3), ints(0, 9, (0,)), rows(2**40, 2**40, 9)) * 2, {}),
        ]
    ],
]
