"""Cases of the stateful family: assignments, reads and scatters on reference and resource variables.

`CASES` is read by the op table test and by the golden generator, which also records the variables' values
after the run.
"""

from collections.abc import Iterator

import numpy as np

from op_cases import bools, case, normal, positive, resource, strings, variable

NUMERIC = "float32 float64 half bfloat16 int32 int64 complex64"
INVALID = "InvalidArgumentError"
FLOATS = "float32 float64"
Spec = object


def assignments() -> list:
    """Whole-variable assignments and reads."""
    held = (variable(normal(2, 3)), normal(2, 3))
    cases = [
        case("Assign", *held, dtypes=NUMERIC, gradient=False),
        case("Assign", variable(normal()), normal(), gradient=False),
        case("Assign", variable(strings([b"a", b"b"])), strings([b"c", b""])),
        case("Assign", variable(bools((3,))), bools((3,))),
        case("Assign", variable(normal(2, 3)), normal(4), validate_shape=False, gradient=False),
        case("Assign", variable(normal(2, 3)), normal(3, 2), gradient=False, label="mismatch", error=INVALID),
        case("IsVariableInitialized", variable(normal(2))),
        case("DeepCopy", normal(2, 3), dtypes=NUMERIC),
        case("GuaranteeConst", normal(2, 3), dtypes="float32 int32"),
        case(
            "DebugGradientIdentity", normal(2, 3), gradient=False
        ),  # its gradient asks a debugger's registry
        case("CountUpTo", variable(np.int32(3)), limit=5),
        case("CountUpTo", variable(np.int64(0)), limit=1),
        case("CountUpTo", variable(np.int32(5)), limit=5, label="at limit", error="OutOfRangeError"),
        case("ResourceCountUpTo", resource(np.int32(3)), limit=5, T="int32"),
        case(
            "ResourceCountUpTo",
            resource(np.int64(5)),
            limit=5,
            T="int64",
            label="end",
            error="OutOfRangeError",
        ),
        case("ReadVariableOp", resource(normal(2, 3)), dtype="T", dtypes=NUMERIC, gradient=False),
        case("ReadVariableOp", resource(normal()), dtype="T", gradient=False),
        case("ReadVariableOp", resource(normal(2)), dtype="float64", label="wrong dtype", error="ValueError"),
        case("AssignVariableOp", resource(normal(2, 3)), normal(2, 3), dtypes=NUMERIC, gradient=False),
        case("AssignVariableOp", resource(strings([b"a"])), strings([b"b"])),
        case("VarIsInitializedOp", resource(normal(2))),
        case("VariableShape", resource(normal(2, 3))),
        case("VariableShape", resource(normal()), out_type="int64"),
    ]
    for op in ("Add", "Sub"):
        cases += [
            case(f"Assign{op}", *held, dtypes=NUMERIC, gradient=False),
            case(f"Assign{op}", *held, use_locking=True, gradient=False),
            case(
                f"Assign{op}",
                variable(normal(2, 3)),
                normal(3),
                gradient=False,
                label="mismatch",
                error=INVALID,
            ),
            case(
                f"Assign{op}VariableOp", resource(normal(2, 3)), normal(2, 3), dtypes=NUMERIC, gradient=False
            ),
            case(
                f"Assign{op}VariableOp",
                resource(normal(2, 3)),
                normal(2),
                gradient=False,
                label="mismatch",
                error=INVALID,
            ),
        ]
    return cases


def reads_by_index() -> list:
    """Rows and elements of a resource variable."""
    table = resource(normal(4, 3))
    return [
        case(
            "ResourceGather", table, np.int32([2, 0, 2]), dtype="T", dtypes=FLOATS + " int32", gradient=False
        ),
        case("ResourceGather", table, np.int64([[1], [3]]), dtype="T", gradient=False),
        case("ResourceGather", table, np.int32(1), dtype="T", gradient=False),
        case("ResourceGather", table, np.int32([4]), dtype="T", label="outside", error=INVALID),
        case("ResourceGatherNd", table, np.int32([[0, 1], [3, 2]]), dtype="T", gradient=False),
        case("ResourceGatherNd", table, np.int64([[2]]), dtype="T", gradient=False),
        case("ResourceGatherNd", table, np.int32([[0, 3]]), dtype="T", label="outside", error=INVALID),
    ]


def scatters() -> Iterator:
    """Writes to rows: with rows, with a row named twice, with a scalar, and with an index outside."""
    rows = (np.int32([2, 0]), positive(2, 3))
    twice = (np.int64([1, 3, 1]), positive(3, 3))
    for kind in ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max"):
        for op, wrap in ((f"Scatter{kind}", variable), (f"ResourceScatter{kind}", resource)):
            table = wrap(normal(4, 3))
            yield case(op, table, *rows, dtypes=FLOATS + " int32", gradient=False)
            yield case(op, table, np.int32([[1], [2]]), positive(2, 1, 3), gradient=False, label="matrix")
            yield case(op, table, np.int32(3), positive(3), gradient=False, label="one row")
            yield case(op, table, np.int32([1, 2]), positive(), gradient=False, label="scalar update")
            yield case(op, table, np.zeros(0, np.int32), positive(0, 3), gradient=False, label="none")
            yield case(
                op, table, np.int32([4]), positive(1, 3), gradient=False, label="outside", error=INVALID
            )
            yield case(
                op, table, np.int32([0]), positive(2, 3), gradient=False, label="mismatch", error=INVALID
            )
            yield case(op, table, *twice, gradient=False, label="repeated")
    yield case("ScatterUpdate", variable(strings([b"a", b"b"])), np.int32([1]), strings([b"c"]))
    yield case("ScatterUpdate", variable(bools((3, 2))), np.int32([1]), bools((1, 2)))
    yield case("ScatterAdd", variable(normal(4, 3)), *rows, dtypes="half bfloat16 complex64", gradient=False)
    yield case(
        "ScatterDiv", variable(np.int32([7, -7])), np.int32([0, 1]), np.int32([2, 2]), label="truncates"
    )


def element_scatters() -> Iterator:
    """Writes to elements and slices named by index tuples."""
    for kind in ("Update", "Add", "Sub", "Min", "Max"):
        for op, wrap in ((f"ScatterNd{kind}", variable), (f"ResourceScatterNd{kind}", resource)):
            yield case(
                op,
                wrap(normal(4, 3)),
                np.int32([[0, 1], [3, 2]]),
                normal(2),
                dtypes=FLOATS + " int32",
                gradient=False,
            )
            yield case(op, wrap(normal(4, 3)), np.int64([[2], [0]]), normal(2, 3), gradient=False)
            yield case(op, wrap(normal(4)), np.int32([[[1]], [[3]]]), normal(2, 1), gradient=False)
            yield case(op, wrap(normal(4)), np.int32([[1], [1]]), normal(2), gradient=False, label="repeated")
            yield case(
                op,
                wrap(normal(4)),
                np.int32([[4]]),
                normal(1),
                gradient=False,
                label="outside",
                error=INVALID,
            )
            yield case(
                op,
                wrap(normal(4)),
                np.int32([[1]]),
                normal(2),
                gradient=False,
                label="mismatch",
                error=INVALID,
            )


def slice_assignments() -> Iterator:
    """Assignments to a strided slice of a resource variable."""
    yield case(
        "ResourceStridedSliceAssign",
        resource(normal(3, 4)),
        np.int32([1, 0]),
        np.int32([3, 4]),
        np.int32([1, 2]),
        normal(2, 2),
        gradient=False,
    )
    yield case(
        "ResourceStridedSliceAssign",
        resource(normal(3, 4)),
        np.int32([1]),
        np.int32([2]),
        np.int32([1]),
        normal(4),
        shrink_axis_mask=1,
        gradient=False,
    )


CASES = [*assignments(), *reads_by_index(), *scatters(), *element_scatters(), *slice_assignments()]
