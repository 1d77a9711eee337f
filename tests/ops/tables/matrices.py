"""Cases of the matrix ops: products, diagonals, bands."""

from op_cases import case, literal, normal, positive

MATRIX_DTYPES = "float32 float64 int32 int64 complex64 complex128"
FLOATS = "float32 float64"

CASES = [
    case("MatMul", normal(3, 4), normal(4, 2), dtypes=MATRIX_DTYPES),
    case("MatMul", normal(3, 4), normal(4, 2), dtypes="half", rtol=2e-2, atol=2e-2),
    case("MatMul", normal(3, 4), normal(4, 2), dtypes="bfloat16", rtol=4e-2, atol=8e-2),
    case("MatMul", normal(4, 3), normal(4, 2), transpose_a=True, dtypes=FLOATS + " complex64 int32"),
    case("MatMul", normal(3, 4), normal(2, 4), transpose_b=True, dtypes=FLOATS + " complex64 int32"),
    case(
        "MatMul", normal(4, 3), normal(2, 4), transpose_a=True, transpose_b=True, dtypes=FLOATS + " complex64"
    ),
    case("MatMul", normal(1, 1), normal(1, 1)),
    case("MatMul", normal(1, 5), normal(5, 1)),
    case("MatMul", normal(0, 4), normal(4, 2)),
    case("MatMul", normal(3, 0), normal(0, 2), dtypes="float32 int32"),
    case("MatMul", [[float("nan"), 0.0], [0.0, 1.0]], [[0.0, 1.0], [float("inf"), 2.0]], gradient=False),
    case("MatMul", normal(3, 4), normal(3, 2), error="ValueError"),
    case("MatMul", normal(3, 4), normal(2, 4), error="InvalidArgumentError"),
    case("MatMul", normal(4), normal(4, 2), error="ValueError"),
    case("MatMul", normal(2, 3, 4), normal(4, 2), error="InvalidArgumentError"),
    case("BatchMatMul", normal(2, 3, 4), normal(2, 4, 2), dtypes=MATRIX_DTYPES),
    case("BatchMatMul", normal(2, 3, 4), normal(2, 4, 2), dtypes="half", rtol=2e-2, atol=2e-2),
    case("BatchMatMul", normal(2, 3, 4), normal(2, 4, 2), dtypes="bfloat16", rtol=4e-2, atol=8e-2),
    case("BatchMatMul", normal(3, 4), normal(4, 2), dtypes=FLOATS),
    case("BatchMatMul", normal(2, 1, 4, 3), normal(2, 1, 4, 2), adj_x=True, dtypes=FLOATS + " complex64"),
    case("BatchMatMul", normal(2, 3, 4), normal(2, 2, 4), adj_y=True, dtypes=FLOATS + " complex64"),
    case(
        "BatchMatMul", normal(2, 4, 3), normal(2, 2, 4), adj_x=True, adj_y=True, dtypes="float64 complex128"
    ),
    case("BatchMatMul", normal(2, 3, 1), normal(2, 1, 4), dtypes=MATRIX_DTYPES, label="column by row"),
    case(
        "BatchMatMul", normal(2, 1, 3), normal(2, 4, 1), adj_x=True, adj_y=True, dtypes=FLOATS + " complex64"
    ),
    case("BatchMatMul", normal(2, 3, 1), normal(1, 1, 4), error="InvalidArgumentError", label="one row"),
    case("BatchMatMul", normal(0, 3, 4), normal(0, 4, 2)),
    case("BatchMatMul", normal(2, 3, 0), normal(2, 0, 2)),
    case("BatchMatMul", normal(2, 3, 4), normal(3, 4, 2), error="InvalidArgumentError"),
    case("BatchMatMul", normal(2, 3, 4), normal(2, 3, 2), error="InvalidArgumentError"),
    case("BatchMatMul", normal(2, 3, 4), normal(4, 2), error="ValueError"),
    case("BatchMatMulV2", normal(2, 3, 4), normal(2, 4, 2), dtypes=MATRIX_DTYPES),
    case("BatchMatMulV2", normal(2, 3, 4), normal(2, 4, 2), dtypes="half", rtol=2e-2, atol=2e-2),
    case("BatchMatMulV2", normal(2, 3, 4), normal(4, 2), dtypes=FLOATS + " int32"),
    case("BatchMatMulV2", normal(3, 4), normal(2, 4, 2), dtypes=FLOATS),
    case("BatchMatMulV2", normal(2, 1, 3, 4), normal(5, 4, 2), dtypes=FLOATS),
    case("BatchMatMulV2", normal(1, 3, 2, 4), normal(2, 1, 3, 4), adj_y=True, dtypes="float64 complex64"),
    case("BatchMatMulV2", normal(2, 4, 3), normal(4, 2), adj_x=True, dtypes="float64 complex64"),
    case("BatchMatMulV2", normal(2, 4, 3), normal(1, 2, 4), adj_x=True, adj_y=True, dtypes="complex128"),
    case(
        "BatchMatMulV2",
        normal(2, 1, 3, 1),
        normal(5, 1, 4),
        dtypes=FLOATS + " int32",
        label="columns by rows",
    ),
    case("BatchMatMulV2", normal(2, 3, 1), normal(1, 4, 1), adj_y=True, dtypes="float32 complex64"),
    case("BatchMatMulV2", normal(3, 4), normal(4, 2)),
    case("BatchMatMulV2", normal(0, 3, 4), normal(1, 4, 2)),
    case("BatchMatMulV2", normal(2, 3, 4), normal(3, 4, 2), error="InvalidArgumentError"),
    case("BatchMatMulV2", normal(4), normal(4, 2), error="ValueError"),
    case("Diag", normal(3), dtypes=MATRIX_DTYPES),
    case("Diag", normal(2, 3), dtypes=FLOATS),
    case("Diag", normal(0)),
    case("Diag", normal(), error="InvalidArgumentError"),
    case("DiagPart", normal(3, 3), dtypes=MATRIX_DTYPES),
    case("DiagPart", normal(2, 3, 2, 3), dtypes=FLOATS),
    case("DiagPart", normal(2, 3), error="ValueError"),
    case("DiagPart", normal(3, 3, 3), error="InvalidArgumentError"),
    case("MatrixDiag", normal(3), dtypes=MATRIX_DTYPES + " bool uint8 half bfloat16"),
    case("MatrixDiag", normal(2, 4), dtypes=FLOATS),
    case("MatrixDiag", normal(2, 0)),
    case("MatrixDiag", normal(), error="ValueError"),
    case("MatrixDiagPart", normal(3, 3), dtypes=MATRIX_DTYPES + " bool uint8 half bfloat16"),
    case("MatrixDiagPart", normal(2, 3, 4), dtypes=FLOATS),
    case("MatrixDiagPart", normal(2, 4, 3), dtypes=FLOATS),
    case("MatrixDiagPart", normal(2, 0, 3)),
    case("MatrixDiagPart", normal(3), error="ValueError"),
    case("MatrixSetDiag", normal(3, 3), normal(3), dtypes=MATRIX_DTYPES + " bool half bfloat16"),
    case("MatrixSetDiag", normal(2, 3, 4), normal(2, 3), dtypes=FLOATS),
    case("MatrixSetDiag", normal(2, 4, 3), normal(2, 3), dtypes=FLOATS),
    case("MatrixSetDiag", normal(3, 3), normal(2), error="InvalidArgumentError"),
    case("MatrixSetDiag", normal(3), normal(3), error="ValueError"),
    [
        case("MatrixBandPart", normal(4, 5), literal(lower, "int64"), literal(upper, "int64"))
        for lower, upper in [(0, 0), (-1, 0), (0, -1), (1, 2), (-1, -1), (4, 5), (2, 0)]
    ],
    case(
        "MatrixBandPart", positive(2, 3, 3), literal(1, "int64"), literal(0, "int64"), dtypes="float64 int32"
    ),
    case("MatrixBandPart", positive(2, 3, 3), 0, -1, dtypes="complex64 bool half bfloat16"),
    case("MatrixBandPart", normal(0, 3), literal(0, "int64"), literal(0, "int64")),
    case(
        "MatrixBandPart", normal(3, 3), literal(4, "int64"), literal(0, "int64"), error="InvalidArgumentError"
    ),
    case(
        "MatrixBandPart", normal(3, 3), literal(0, "int64"), literal(4, "int64"), error="InvalidArgumentError"
    ),
    case("MatrixBandPart", normal(3), literal(0, "int64"), literal(0, "int64"), error="InvalidArgumentError"),
    case("Einsum", [normal(2, 3), normal(3, 4)], equation="ij,jk->ki", dtypes=f"{FLOATS} complex64 int32"),
    case("Einsum", [normal(2, 3, 4)], equation="i...->...", dtypes=FLOATS),
    case(
        "Einsum", [normal(5, 2, 3), normal(3, 4)], equation="...ij,...jk->...ik", dtypes="float64 complex64"
    ),
    case("Einsum", [normal(1, 2, 3), normal(5, 3, 4)], equation="...ij,...jk->k...i", dtypes=FLOATS),
    case("Einsum", [normal(2, 3), normal(2, 3)], equation="ij,kj->i", dtypes=FLOATS),
    case("Einsum", [normal(3, 3)], equation="ii->i", dtypes=FLOATS),
    case("Einsum", [normal(3, 2, 3)], equation="iji->", dtypes=FLOATS),
    case("Einsum", [normal(0, 3), normal(3, 2)], equation="ij,jk->ik"),
    case("Einsum", [normal(2, 3), normal(2, 4)], equation="ij,jk->ik", error="ValueError"),
    case("Einsum", [normal(2, 3)], equation="i->i", error="ValueError"),
    case("Einsum", [normal(2, 3)], equation="...i->i", error="ValueError"),
    case("MatMul", normal(2, 3), normal(3, 2), dtypes="int16", error="TypeError"),
]
