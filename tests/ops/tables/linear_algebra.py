"""Cases of linear algebra: inverses, factors, eigenvalues, linear systems, functions of matrices.

Factors are unique up to signs or phases in some ops; there only the values count that are unique, and
`tests/ops/algebra/test_factors.py` checks the rest by what the factors make together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from op_cases import bools, case, literal, normal

REAL = "float32 float64"
COMPLEX = "complex64 complex128"
ALL = f"{REAL} {COMPLEX}"
SINGLE = {"rtol": 2e-4, "atol": 2e-4}
DOUBLE = {"rtol": 1e-9, "atol": 1e-10}

Maker = Callable[[bool], Any]  # an input, given whether it is complex


def _random(is_complex: bool, *shape: int) -> np.ndarray:
    random = np.random.RandomState(17 * sum(shape) + len(shape))
    values = random.standard_normal(shape)
    if is_complex:
        values = values + 1j * random.standard_normal(shape)
    return np.round(values, 3)


def plain(*shape: int) -> Maker:
    """Any matrices."""
    return lambda is_complex: literal(_random(is_complex, *shape), "T")


def regular(*shape: int) -> Maker:
    """Square matrices whose inverse is moderate."""
    return lambda is_complex: literal(_random(is_complex, *shape) + 2 * np.eye(shape[-1]), "T")


def definite(*shape: int) -> Maker:
    """Hermitian matrices whose eigenvalues are positive."""

    def make(is_complex: bool) -> Any:
        half = _random(is_complex, *shape)
        return literal(np.round(half @ half.conj().swapaxes(-1, -2), 3) + np.eye(shape[-1]), "T")

    return make


def lower(*shape: int) -> Maker:
    """Lower triangular matrices whose inverse is moderate."""
    return lambda is_complex: literal(np.tril(_random(is_complex, *shape)) + 2 * np.eye(shape[-1]), "T")


def of(op: str, *makers: Any, dtypes: str = ALL, **keywords: Any) -> list[Any]:
    """Cases whose tolerance suits the precision."""
    made = []
    for dtype in dtypes.split():
        is_complex = dtype.startswith("complex")
        inputs = [maker(is_complex) if callable(maker) else maker for maker in makers]
        width = SINGLE if dtype in ("float32", "complex64") else DOUBLE
        made.append(case(op, *inputs, dtypes=dtype, **{**width, **keywords}))
    return made


NAN = literal([[float("nan"), 1.0], [1.0, 2.0]], "T")
INFINITE = literal([[float("inf"), 1.0], [1.0, 2.0]], "T")
SINGULAR = literal([[1.0, 2.0], [2.0, 4.0]], "T")
INVALID, STATIC = "InvalidArgumentError", "ValueError"
ALIGNMENTS = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")
SOME = "float64 half bfloat16 int32 uint8"
NO_L2 = literal(0.0, "float64")

INVERSES = [
    [
        [of(op, regular(3, 3)), of(op, regular(2, 2, 3, 3)), of(op, normal(0, 0)), of(op, normal(2, 0, 0))]
        for op in ("MatrixInverse", "LogMatrixDeterminant")
    ],
    [of("MatrixDeterminant", x, dtypes=REAL) for x in (regular(3, 3), regular(2, 2, 3, 3), normal(0, 0))],
    of("MatrixDeterminant", regular(2, 3, 3), dtypes=COMPLEX),
    [of(op, normal(0, 3, 3)) for op in ("MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant")],
    [
        [case(op, normal(2, 3), error=STATIC), case(op, normal(3), error=STATIC)]
        for op in ("MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant")
    ],
    of("MatrixInverse", regular(3, 3), adjoint=True),
    of("MatrixInverse", regular(3, 3), dtypes="float16", gradient=False, rtol=1e-2, atol=1e-2),
    case("MatrixInverse", SINGULAR, error=INVALID),
    case("MatrixInverse", literal([np.eye(2), np.zeros([2, 2])], "T"), error=INVALID, dtypes=ALL),
    case("MatrixInverse", NAN, error=INVALID),
    of("MatrixInverse", INFINITE, dtypes="float64", gradient=False),
    of("MatrixDeterminant", SINGULAR, dtypes="float64", gradient=False),
    of("MatrixDeterminant", NAN, dtypes="float64", gradient=False),
    of("LogMatrixDeterminant", SINGULAR, dtypes="float64", gradient=False),
    of("LogMatrixDeterminant", literal([[0.0, 1.0], [1.0, 0.0]], "T"), dtypes=ALL),
    of("LogMatrixDeterminant", NAN, dtypes="float64", gradient=False),
]

FACTORS = [
    of("Cholesky", definite(3, 3)),
    of("Cholesky", definite(2, 2, 3, 3)),
    of("Cholesky", normal(0, 0)),
    of("Cholesky", normal(2, 0, 0)),
    of("Cholesky", normal(0, 3, 3)),
    of("Cholesky", literal([[4.0, 9.0], [2.0, 3.0]], "T"), dtypes="float64"),
    of("Cholesky", NAN, dtypes=REAL, gradient=False),
    case("Cholesky", normal(2, 3), error=STATIC),
    case("Cholesky", normal(3), error=STATIC),
    of("CholeskyGrad", lower(3, 3), plain(3, 3), dtypes=REAL),
    of("CholeskyGrad", lower(2, 3, 3), plain(2, 3, 3), dtypes=REAL),
    case("CholeskyGrad", normal(2, 3), normal(2, 3), error=STATIC),
    [of("Qr", plain(*shape), full_matrices=full) for full in (False, True) for shape in ((3, 3), (2, 4, 4))],
    of("Qr", plain(4, 3), dtypes="float16", gradient=False, rtol=1e-2, atol=1e-2),
    [of("Qr", plain(*shape)) for shape in ((5, 3), (3, 5), (2, 2, 3, 2), (2, 2, 4))],
    [of("Qr", plain(*shape), gradient=False, full_matrices=True) for shape in ((5, 3), (3, 5), (2, 4, 2))],
    of("Qr", normal(0, 3), gradient=False),
    of("Qr", normal(3, 0), gradient=False),
    of("Qr", normal(3, 0), gradient=False, full_matrices=True),
    of("Qr", normal(0, 3, 2), gradient=False),
    case("Qr", normal(3), error=STATIC),
    [of("Svd", plain(*shape), outputs=[0], dtypes=REAL) for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2))],
    [
        of("Svd", plain(*shape), outputs=[0], dtypes=COMPLEX, gradient=False)
        for shape in ((3, 3), (2, 4), (4, 2))
    ],
    [of("Svd", plain(*shape), compute_uv=False, outputs=[0]) for shape in ((3, 3), (4, 2), (2, 3, 4))],
    of("Svd", plain(4, 2), outputs=[0], full_matrices=True, gradient=False),
    of("Svd", plain(3, 2), outputs=[0], full_matrices=True, dtypes=REAL),
    of("Svd", plain(2, 3), outputs=[0], full_matrices=True, dtypes=REAL),
    of("Svd", plain(2, 3), outputs=[0], full_matrices=True, compute_uv=False),
    [of("Svd", normal(*shape), outputs=[0], gradient=False) for shape in ((0, 3), (3, 0), (0, 3, 2))],
    of("Svd", normal(3, 0), gradient=False, full_matrices=True),
    case("Svd", normal(3), error=STATIC),
    of("Svd", NAN, dtypes="float64", gradient=False),
    of("Lu", plain(3, 3), dtypes=REAL),
    of("Lu", plain(2, 2, 4, 4), dtypes=REAL, output_idx_type="int64"),
    of("Lu", plain(3, 3), dtypes=COMPLEX, outputs=[]),
    of("Lu", normal(0, 0), gradient=False),
    of("Lu", normal(0, 3, 3), gradient=False),
    case("Lu", SINGULAR, error=INVALID),
    case("Lu", normal(2, 3), error=STATIC),
    case("Lu", normal(3), error=STATIC),
]

EIGENVALUES = [
    of("SelfAdjointEigV2", definite(3, 3), outputs=[0]),
    of("SelfAdjointEigV2", definite(2, 2, 3, 3), outputs=[0]),
    of("SelfAdjointEigV2", definite(2, 4, 4), compute_v=False, outputs=[0]),
    of("SelfAdjointEigV2", literal([[4.0, 9.0], [2.0, 3.0]], "T"), outputs=[0], dtypes="float64"),
    of("SelfAdjointEigV2", normal(0, 0), gradient=False),
    of("SelfAdjointEigV2", normal(0, 3, 3), gradient=False),
    case("SelfAdjointEigV2", NAN, dtypes="float64", error=INVALID),
    case("SelfAdjointEigV2", normal(2, 3), error=STATIC),
    case("SelfAdjointEigV2", normal(3), error=STATIC),
    [
        [
            of("Eig", definite(3, 3), outputs=[], dtypes=single, Tout="complex64"),
            of("Eig", plain(2, 3, 3), outputs=[], dtypes=single, Tout="complex64"),
            of("Eig", definite(2, 2, 2), outputs=[], dtypes=single, Tout="complex64", compute_v=False),
            of("Eig", definite(3, 3), outputs=[], dtypes=double, Tout="complex128"),
        ]
        for single, double in (("float32", "float64"), ("complex64", "complex128"))
    ],
    of("Eig", normal(0, 0), gradient=False, dtypes="float64", Tout="complex128"),
    of("Eig", normal(0, 3, 3), gradient=False, dtypes="float64", Tout="complex128"),
    case("Eig", NAN, error=INVALID, Tout="complex64"),
    case("Eig", normal(2, 3), error=STATIC, Tout="complex64"),
]

SOLUTIONS = [
    [
        [
            of(op, matrix(3, 3), plain(3, 2)),
            of(op, matrix(2, 2, 3, 3), plain(2, 2, 3, 1)),
            of(op, matrix(3, 3), plain(3, 2), adjoint=True),
            of(op, normal(0, 0), normal(0, 2), dtypes=REAL),
            of(op, matrix(3, 3), normal(3, 0), dtypes=REAL),
            of(op, normal(0, 3, 3), normal(0, 3, 2), dtypes=REAL),
            case(op, normal(2, 3), normal(2, 1), error=STATIC),
            case(op, normal(3), normal(3, 1), error=STATIC),
            case(op, normal(3, 3), normal(2, 1), error=INVALID),
        ]
        for op, matrix in (("MatrixSolve", regular), ("MatrixTriangularSolve", lower))
    ],
    case("MatrixSolve", SINGULAR, normal(2, 1), error=INVALID),
    case("MatrixSolve", NAN, normal(2, 1), error=INVALID),
    case("MatrixSolve", normal(2, 3, 3), normal(3, 1), error=INVALID),
    of("MatrixTriangularSolve", regular(3, 3), plain(3, 2), lower=False),
    of("MatrixTriangularSolve", regular(3, 3), plain(3, 2), lower=False, adjoint=True),
    of("MatrixTriangularSolve", lower(2, 3, 3), plain(3, 2), dtypes="float64 complex128"),
    of("MatrixTriangularSolve", lower(3, 3), plain(2, 2, 3, 2), dtypes="float64 complex128"),
    of("MatrixTriangularSolve", lower(2, 1, 3, 3), plain(4, 3, 1), dtypes="float64 complex128", adjoint=True),
    [
        [
            of("MatrixSolveLs", plain(*batch, *shape), plain(*batch, shape[0], 2), l2, dtypes=dtypes)
            for dtypes in (REAL, COMPLEX)
        ]
        for batch, l2 in (((), NO_L2), ((2,), literal(0.5, "float64")))
        for shape in ((4, 2), (3, 3), (2, 4))
    ],
    of("MatrixSolveLs", plain(4, 2), plain(4, 2), NO_L2, fast=False, gradient=False),
    of("MatrixSolveLs", plain(2, 4), plain(2, 2), NO_L2, fast=False, gradient=False),
    of("MatrixSolveLs", normal(2, 0), normal(2, 1), NO_L2, dtypes=REAL, gradient=False),
    case("MatrixSolveLs", normal(4, 2), normal(3, 1), NO_L2, error=INVALID),
    case(
        "MatrixSolveLs",
        literal([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]], "T"),  # whose factors are exact
        normal(4, 1),
        NO_L2,
        error=INVALID,
    ),
    case("MatrixSolveLs", normal(4, 2), normal(4, 1), literal(-0.5, "float64"), error=INVALID),
    of("BandedTriangularSolve", plain(1, 4), plain(4, 2), gradient=False),
    of("BandedTriangularSolve", plain(2, 4), plain(4, 2)),
    of("BandedTriangularSolve", plain(2, 3, 4), plain(2, 4, 2)),
    of("BandedTriangularSolve", plain(2, 4), plain(4, 2), lower=False),
    of("BandedTriangularSolve", plain(2, 4), plain(4, 2), adjoint=True),
    of("BandedTriangularSolve", plain(3, 4), plain(4, 2), lower=False, adjoint=True),
    of("BandedTriangularSolve", plain(2, 2, 4), plain(4, 2), dtypes="float64"),
    of("BandedTriangularSolve", plain(2, 4), plain(3, 4, 2), dtypes="float64"),
    case("BandedTriangularSolve", literal([[1.0, 0.0], [0.0, 1.0]], "T"), normal(2, 1), error=INVALID),
    case("BandedTriangularSolve", normal(3), normal(3, 1), error=STATIC),
    [
        [
            of("TridiagonalSolve", plain(3, 4), plain(4, 2), **keywords),
            of("TridiagonalSolve", plain(2, 3, 5), plain(2, 5, 1), **keywords),
            of("TridiagonalSolve", plain(3, 4), plain(4, 2), partial_pivoting=False, **keywords),
        ]
        for keywords in ({"dtypes": REAL}, {"dtypes": COMPLEX})
    ],
    of("TridiagonalSolve", plain(3, 1), plain(1, 2), dtypes=REAL),
    of("TridiagonalSolve", plain(3, 2), plain(2, 2), dtypes=REAL),
    of("TridiagonalSolve", normal(3, 0), normal(0, 2), dtypes=REAL, gradient=False),
    case("TridiagonalSolve", normal(2, 4), normal(4, 2), error=INVALID),
    case("TridiagonalSolve", normal(3, 4), normal(3, 2), error=INVALID),
    of("TridiagonalMatMul", plain(1, 4), plain(1, 4), plain(1, 4), plain(4, 2)),
    of("TridiagonalMatMul", plain(2, 1, 4), plain(2, 1, 4), plain(2, 1, 4), plain(2, 4, 2)),
    of("TridiagonalMatMul", normal(1, 0), normal(1, 0), normal(1, 0), normal(0, 2), dtypes=REAL),
    of("TridiagonalMatMul", normal(1, 1), normal(1, 1), normal(1, 1), normal(1, 2), dtypes=REAL),
    case("TridiagonalMatMul", normal(1, 4), normal(1, 3), normal(1, 4), normal(4, 2), error=INVALID),
]

FUNCTIONS = [
    [
        [of("MatrixSquareRoot", x, dtypes=REAL), of("MatrixSquareRoot", x, dtypes=COMPLEX)]
        for x in (definite(3, 3), regular(2, 2, 2), literal([[4.0, 1.0], [0.0, 4.0]], "T"))
    ],
    of("MatrixSquareRoot", literal([[1.0, 0.0], [0.0, 0.0]], "T"), gradient=False),
    of("MatrixSquareRoot", literal([[-1.0, 0.0], [0.0, 4.0]], "T"), gradient=False),
    of("MatrixSquareRoot", normal(0, 0), gradient=False),
    case("MatrixSquareRoot", normal(2, 3), error=STATIC),
    of("MatrixLogarithm", definite(3, 3), dtypes=COMPLEX),
    of("MatrixLogarithm", plain(2, 2, 2), dtypes=COMPLEX),
    of("MatrixLogarithm", literal([[4.0, 1.0], [0.0, 4.0]], "T"), dtypes=COMPLEX),
    of("MatrixLogarithm", literal([[-1.0, 0.0], [0.0, 4.0]], "T"), dtypes=COMPLEX),
    of("MatrixLogarithm", normal(0, 0), dtypes=COMPLEX),
    case("MatrixLogarithm", normal(2, 3), dtypes="complex64", error=STATIC),
]

SEVERAL = [
    [
        [
            case("MatrixDiagV3", normal(2, 3, 4), literal(k, "int32"), rows, columns, 0.5, align=align)
            for align in ALIGNMENTS
        ]
        for k, rows, columns in (([-1, 1], -1, -1), ([-2, 0], 4, 4), ([1, 3], -1, -1), ([-3, -1], -1, 5))
    ],
    [
        [
            case("MatrixDiagPartV3", normal(*shape), literal(k, "int32"), 0.5, align=align)
            for align in ALIGNMENTS
        ]
        for shape, k in (((2, 3, 4), [-1, 1]), ((4, 3), [-2, 2]), ((2, 3, 3), [1, 2]))
    ],
    [
        [
            case("MatrixSetDiagV3", normal(2, 3, 4), normal(2, *size), literal(k, "int32"), align=align)
            for align in ALIGNMENTS
        ]
        for size, k in (((3, 3), [-1, 1]), ((2, 3), [1, 2]))
    ],
    case("MatrixDiagV2", normal(2, 3, 4), literal([-1, 1], "int32"), -1, -1, 0.5, dtypes=ALL, gradient=False),
    case(
        "MatrixDiagV2", normal(2, 3), 1, -1, -1, literal(2, "T"), dtypes="float64 half bfloat16 int32 uint8"
    ),
    case("MatrixDiagV2", normal(2, 3), -1, 5, 4, 0.0, error=INVALID),
    case("MatrixDiagV2", normal(3), 0, 3, 5, 0.0),
    case("MatrixDiagV2", normal(2, 0), 0, -1, -1, 0.0),
    case("MatrixDiagV2", bools([3]), 0, -1, -1, literal(False, "bool"), dtypes="bool"),
    case("MatrixDiagV2", normal(2, 3), literal([-1, 1], "int32"), -1, -1, 0.5, error=INVALID),
    case("MatrixDiagV2", normal(3), literal([0, -1], "int32"), -1, -1, 0.5, error=INVALID),
    case("MatrixDiagV3", normal(), 0, -1, -1, 0.5, error=STATIC),
    case("MatrixDiagPartV2", normal(2, 3, 4), literal([-1, 1], "int32"), 0.5, dtypes=ALL),
    case("MatrixDiagPartV2", normal(2, 3, 4), 1, literal(2, "T"), dtypes=SOME),
    case("MatrixDiagPartV2", normal(3, 4), -2, 0.5),
    case("MatrixDiagPartV2", normal(3, 4), 4, 0.5, error=INVALID),
    case("MatrixDiagPartV2", normal(3, 4), literal([1, -1], "int32"), 0.5, error=INVALID),
    case("MatrixDiagPartV2", normal(3), 0, 0.5, error=STATIC),
    case("MatrixDiagPartV2", normal(0, 3), 0, 0.5),
    case("MatrixSetDiagV2", normal(3, 4), normal(2, 3), literal([-1, 0], "int32"), dtypes=ALL),
    case("MatrixSetDiagV2", normal(2, 3, 4), normal(2, 3), 1, dtypes=SOME),
    case("MatrixSetDiagV2", normal(3, 4), normal(4), 0, error=INVALID),
    case("MatrixSetDiagV2", normal(3, 4), normal(1), 4, error=INVALID),
    case("MatrixSetDiagV2", normal(3), normal(3), 0, error=STATIC),
]

CASES = [SEVERAL, INVERSES, FACTORS, EIGENVALUES, SOLUTIONS, FUNCTIONS]
