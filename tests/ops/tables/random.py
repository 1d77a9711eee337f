"""Cases of the random family: types, static shapes, errors; `test_random.py` holds the values."""

import numpy as np

from op_cases import case, normal

INVALID = "InvalidArgumentError"
ANY = {"values": False, "gradient": False}


def i32(value: object) -> np.ndarray:
    """An int32 literal."""
    return np.array(value, np.int32)


def filled() -> list:
    """Ops that fill a shape."""
    cases = []
    for op in ("RandomUniform", "RandomStandardNormal", "TruncatedNormal"):
        for dtype in ("float32", "float64", "half", "bfloat16"):
            cases.append(case(op, i32([2, 3]), dtype=dtype, **ANY))
        cases += [
            case(op, i32([0, 3]), dtype="float32", **ANY),
            case(op, np.int64([4]), dtype="float32", **ANY),
            case(op, np.zeros(0, np.int32), dtype="float32", label="scalar", **ANY),
            case(op, i32([[1, 2]]), dtype="float32", label="matrix", error=INVALID),
        ]
    return cases


CASES = [
    *filled(),
    case("RandomUniformInt", i32([2, 3]), i32(-2), i32(5), **ANY),
    case("RandomUniformInt", i32([4]), np.int64(0), np.int64(9), **ANY),
    case("RandomUniformInt", i32([4]), i32(3), i32(3), label="empty range", error=INVALID),
    case("RandomShuffle", normal(3, 2), **ANY),
    case("RandomShuffle", normal(), **ANY),
    case("RandomShuffle", i32([1, 2, 3]), **ANY),
    case("Multinomial", normal(2, 3), i32(4), **ANY),
    case("Multinomial", normal(2, 3), i32(4), output_dtype="int32", **ANY),
    case("Multinomial", normal(3), i32(4), label="vector", error=INVALID),
    case("RandomGamma", i32([2]), np.float32([[0.5], [2.0]]), **ANY),
    case("RandomGammaGrad", np.float32([0.5, 2]), np.float32([0.3, 1.5]), gradient=False, rtol=1e-5),
    case(
        "RandomGammaGrad",
        np.float64([0.01, 0.5, 1, 8, 40, 1000]),
        np.float64([1e-3, 0.3, 2.5, 15, 33, 1050]),
        gradient=False,
        rtol=1e-6,
        dtypes="float64",
    ),
    case("RandomPoissonV2", i32([3]), np.float64([0.5, 20.0]), dtype="int32", **ANY),
    case(
        "ParameterizedTruncatedNormal",
        i32([2, 3]),
        np.float32([0.0, 5.0]),
        np.float32(1.0),
        np.float32(-1.0),
        np.float32(9.0),
        **ANY,
    ),
]
