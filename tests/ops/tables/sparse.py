"""Cases of the sparse family."""

import numpy as np

from op_cases import case, ints, normal, strings

INVALID = "InvalidArgumentError"


def i32(value: object) -> np.ndarray:
    """An int32 literal."""
    return np.array(value, np.int32)


def wrong(label: str, *arguments: object, **attributes: object) -> list:
    """A case of SparseToDense whose arguments do not fit."""
    return case("SparseToDense", *arguments, label=label, error=INVALID, **attributes)


NO_GRADIENT = {"gradient": False}
ROWS = i32([[0, 1], [1, 0], [1, 2]])

CASES = [
    case("SparseToDense", ROWS, i32([2, 3]), normal(3), normal(), dtypes="float32 float64"),
    case("SparseToDense", ROWS, i32([2, 3]), normal(3), normal(), dtypes="half bfloat16", **NO_GRADIENT),
    case(
        "SparseToDense",
        ROWS.astype(np.int64),
        np.int64([2, 3]),
        ints(1, 9, (3,)),
        ints(1, 9, ()),
        dtypes="int32 int64 uint8 uint16 uint32",
        **NO_GRADIENT,
    ),
    case("SparseToDense", ROWS, i32([2, 3]), normal(3), normal(), dtypes="complex64 bool", **NO_GRADIENT),
    case("SparseToDense", ROWS, i32([2, 3]), strings(["a", "b", "c"]), strings("z"), **NO_GRADIENT),
    case("SparseToDense", ROWS, i32([2, 3]), normal(), normal(), label="one value", **NO_GRADIENT),
    case("SparseToDense", i32([1, 3]), i32([4]), normal(2), normal(), **NO_GRADIENT),
    case("SparseToDense", i32(2), i32([4]), normal(), normal(), **NO_GRADIENT),
    case(
        "SparseToDense", i32([3, 1, 1]), i32([4]), normal(3), normal(), validate_indices=False, **NO_GRADIENT
    ),
    case("SparseToDense", np.zeros([0, 2], np.int32), i32([2, 2]), normal(0), normal()),
    wrong("out of order", i32([3, 1]), i32([4]), normal(2), normal()),
    wrong("repeated", i32([1, 1]), i32([4]), normal(2), normal()),
    wrong("outside", i32([1, 4]), i32([4]), normal(2), normal()),
    wrong("outside unchecked", i32([-1, 3]), i32([4]), normal(2), normal(), validate_indices=False),
    wrong("three dimensions", i32([[[1]]]), i32([4]), normal(1), normal()),
    wrong("wrong width", i32([[1]]), i32([4, 4]), normal(1), normal()),
    wrong("wrong count", i32([1, 2]), i32([4]), normal(3), normal()),
    wrong("default a vector", i32([1, 2]), i32([4]), normal(2), normal(1)),
    wrong("shape a matrix", i32([1, 2]), i32([[4]]), normal(2), normal()),
]
