"""Cases of random values that are a function of a seed: TensorFlow's own numbers."""

import numpy as np

from op_cases import case, literal, normal

INVALID = "InvalidArgumentError"
SEEDS = ([0, 0], [1, 2], [-5, 2**40])
KEY, COUNTER = (
    np.array([10413732777507651514], np.uint64),
    np.array([2**64 - 2, 17830669156045600267], np.uint64),
)
LOOSE = {
    "float32": {},
    "float64": {},
    "half": {"rtol": 1e-2, "atol": 1e-3},
    "bfloat16": {"rtol": 1e-2, "atol": 2e-2},
}
VALUES = ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal")


def seed(values):
    return literal(values, "int64")


CASES = [
    [
        [
            [
                case(op, literal([5, 7]), seed(given), dtype=dtype, dtypes=dtype, **how)
                for given in SEEDS
                for dtype, how in LOOSE.items()
            ],
            case(op, literal([0, 3]), seed([1, 2])),
            case(op, literal([], "int32"), seed([1, 2]), label="scalar"),
            case(op, literal([3]), literal([1, 2], "int32"), label="short"),
            case(op, literal([3]), seed([1]), label="seed", error="ValueError"),
            case(op, literal([3]), seed([[1, 2]]), label="matrix", error="ValueError"),
            case(op, literal([[3]]), seed([1, 2]), label="shape", error="ValueError"),
        ]
        for op in VALUES
    ],
    [
        case(f"{op}V2", literal([300]), KEY, COUNTER, literal(1), dtype=dtype, dtypes=dtype)
        for op in VALUES
        for dtype in ("float32", "float64")
    ],
    [
        case("StatelessRandomUniformFullInt", literal([9]), seed(given), dtype=dtype, dtypes=dtype)
        for given in SEEDS
        for dtype in ("int32", "int64", "uint32", "uint64")
    ],
    case(
        "StatelessRandomUniformFullIntV2",
        literal([9]),
        KEY,
        COUNTER,
        literal(3),
        dtype="int64",
    ),
    [
        case("StatelessRandomUniformInt", literal([9]), seed(given), literal(low, kind), literal(high, kind))
        for given in SEEDS
        for kind, low, high in (
            ("int32", -5, 100),
            ("int64", -5, 2**50),
            ("int64", -(2**63), 2**63 - 1),
            ("int64", 0, 2**62 + 5),
        )
    ],
    case(
        "StatelessRandomUniformInt",
        literal([9]),
        seed([1, 2]),
        literal(5),
        literal(5),
        label="none",
        error=INVALID,
    ),
    case(
        "StatelessRandomUniformIntV2",
        literal([9]),
        KEY,
        COUNTER,
        literal(1),
        literal(-5),
        literal(100),
    ),
    [case("StatelessRandomGetKeyCounter", seed(given)) for given in SEEDS],
    case("StatelessMultinomial", normal(3, 5), literal(7), seed([1, 2]), dtypes="float32 float64"),
    case("StatelessMultinomial", normal(2, 4), literal(5), seed([3, 2]), output_dtype="int32"),
    case("StatelessMultinomial", [[0.0, -np.inf, 1.0]], literal(9), seed([3, 2]), label="impossible"),
    case("StatelessMultinomial", normal(2, 4), literal(0), seed([3, 2])),
    case("StatelessMultinomial", normal(4), literal(3), seed([3, 2]), label="vector", error="ValueError"),
]
