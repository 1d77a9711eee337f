"""Cases of gamma, Poisson, binomial values by a seed, TensorFlow's own, of shuffles, and crops by a seed."""

import numpy as np

from op_cases import case, literal, normal, resource, strings

INVALID = "InvalidArgumentError"
FLOATS = "half float32 float64"
KEY, COUNTER = np.array([10413732777507651514], np.uint64), np.array([5, 17830669156045600267], np.uint64)
INF, NAN = float("inf"), float("nan")
GAMMA, POISSON, BINOMIAL = "StatelessRandomGammaV2", "StatelessRandomPoisson", "StatelessRandomBinomial"
UNIFORM_INT = "StatefulUniformInt"
TRUNCATED = "StatelessParameterizedTruncatedNormal"
BOX = "StatelessSampleDistortedBoundingBox"
ONE_BOX = [[[0.1, 0.2, 0.8, 0.9]]]


def seed(*values):
    return literal(values or [1, 2], "int64")


def double(values):
    return literal(values, "float64")


def integer(values):
    return literal(values, "int64")


STATE = resource(integer([5, 0, 7]))
SOBOL = ((3, 20, 0, "float32"), (1, 5, 3, "float64"), (60, 9, 1000, "float32"), (1000, 2, 5, "float64"))


CASES = [
    case(GAMMA, literal([200, 4]), seed(), [0.3, 1.0, 2.5, 40.0], dtypes="float32 float64", gradient=False),
    # ATen's derivative of samples has four digits.
    case(GAMMA, literal([20, 4]), seed(), [0.3, 1.0, 2.5, 40.0], rtol=2e-3, atol=1e-2),
    case("StatelessRandomGammaV3", literal([9, 2]), KEY, COUNTER, literal(1), [0.6, 4.0], rtol=2e-3),
    case(GAMMA, literal([20]), seed(-5, 2**40), 0.9, dtypes="float64", gradient=False),
    case(GAMMA, literal([3, 2, 2]), seed(3, 4), [[0.5], [2.0]], error=INVALID, label="shape"),
    case(GAMMA, literal([3, 3]), seed(), [-1.0, 0.0, NAN], label="odd", gradient=False),
    case(GAMMA, literal([0, 2]), seed(), [0.5, 2.0], label="empty"),
    case(GAMMA, literal([2]), literal([1]), 2.0, error="ValueError", label="seed"),
    case(
        "StatelessRandomGammaV3",
        literal([9, 2]),
        KEY,
        COUNTER,
        literal(1),
        [0.3, 4.0],
        dtypes="float32 float64",
        gradient=False,
    ),
    [
        case(POISSON, literal([200, 4]), seed(), double([0.5, 9.0, 10.0, 300.0]), dtype=dtype)
        for dtype in ("half", "float32", "float64", "int32", "int64")
    ],
    case(POISSON, literal([5, 2]), seed(), literal([3, 20], "int32"), dtype="int64"),
    case(POISSON, literal([3]), seed(), double([-1.0, 0.0, INF]), dtype="float32", label="odd"),
    case(POISSON, literal([3, 2]), seed(), double([1.0, 2.0, 3.0]), dtype="int32", error=INVALID),
    case(POISSON, literal([0]), seed(), double(2.0), dtype="int32"),
    [
        case(
            BINOMIAL,
            literal([100, 4]),
            seed(),
            double([5, 100, 9, 1000]),
            double([0.3, 0.4, 0.9, 0.7]),
            dtype=dtype,
        )
        for dtype in ("float64", "int32", "int64")
    ],
    case(BINOMIAL, literal([3, 2, 2]), seed(3, 4), double([[5.0], [60.0]]), double([0.3, 0.6])),
    case(BINOMIAL, literal([4]), seed(), double([5.0, 5.0, 0.0, -3.0]), double([0.0, 1.0, 0.5, 0.5])),
    case(BINOMIAL, literal([3]), seed(), double([5.0, 5.0]), double(0.5), error=INVALID),
    [
        case(
            TRUNCATED,
            literal([50, 2]),
            seed(),
            [0.0, 10.0],
            1.0,
            [-1.0, 9.0],
            [1.0, 14.0],
            dtypes=FLOATS,
            values=False,
        ),
        case(TRUNCATED, literal([5]), seed(), 0.0, 1.0, 3.0, 2.0, error=INVALID, label="bounds"),
        case(TRUNCATED, literal([5]), seed(), 0.0, -1.0, 1.0, 2.0, error=INVALID, label="deviation"),
    ],
    [
        case("StatelessShuffle", normal(count, 2), KEY, COUNTER, literal(1), dtypes="float32 int64")
        for count in (0, 1, 2, 3, 100)
    ],
    case("StatelessShuffle", normal(), KEY, COUNTER, literal(1)),
    case("StatelessShuffle", strings(["a", "b", "c"]), KEY, COUNTER, literal(3)),
    [
        case(
            BOX,
            literal([100, 200, 3], kind),
            literal(ONE_BOX, "float32"),
            0.1,
            seed(),
            values=False,
            gradient=False,
            label=kind,
        )
        for kind in ("int32", "int64")
    ],
    case(
        BOX, literal([100, 200]), literal(ONE_BOX, "float32"), 0.1, seed(), error="ValueError", label="size"
    ),
    case(BOX, literal([9, 9, 3]), literal([[[0.1, 0.2, 2.0, 0.9]]], "float32"), 0.1, seed(), error=INVALID),
    [case("SobolSample", literal(d), literal(n), literal(s), dtype=t) for d, n, s, t in SOBOL],
    [
        case("SobolSample", literal(d), literal(n), literal(s), error=INVALID)
        for d, n, s in ((0, 3, 1), (3, 0, 1), (3, 3, -1))
    ],
    [
        case("StatefulUniform", STATE, integer(1), integer([70, 3]), dtype=dtype, dtypes=dtype)
        for dtype in ("half", "bfloat16", "float32", "float64")
    ],
    case("StatefulUniform", STATE, integer(1), integer([0]), label="empty"),
    case("StatefulUniform", STATE, integer(9), integer([2]), error=INVALID, label="algorithm"),
    case(
        "StatefulUniform", resource(integer([1, 2])), integer(1), integer([2]), error=INVALID, label="state"
    ),
    case("StatefulUniform", resource([1.0, 2.0, 3.0]), integer(1), integer([2]), error=INVALID, label="f"),
    [case("RngSkip", STATE, integer(1), integer(delta)) for delta in (10, 0, -8)],
    case("RngSkip", resource(integer([-2, 5, 7])), integer(1), integer(10), label="carry"),
    case("RngSkip", resource(integer([[5], [0], [7]])), integer(1), integer(9), error=INVALID, label="rank"),
    case("RngSkip", STATE, integer(7), integer(10), error=INVALID, label="algorithm"),
    [
        case(op, STATE, integer(1), integer([33, 3]), dtype=dtype, dtypes=dtype)
        for op in ("StatefulStandardNormalV2", "StatefulTruncatedNormal")
        for dtype in ("half", "bfloat16", "float32", "float64")
    ],
    [
        case("StatefulUniformFullInt", STATE, integer(1), integer([33, 3]), dtype=dtype)
        for dtype in ("int32", "int64", "uint32", "uint64")
    ],
    [
        case(UNIFORM_INT, STATE, integer(1), integer([33]), literal(-5, t), literal(100, t), dtype=t)
        for t in ("int32", "int64")
    ],
    case(UNIFORM_INT, STATE, integer(1), integer([3]), integer(5), integer(5), error=INVALID, dtype="int64"),
    [
        case(UNIFORM_INT, STATE, integer(n), integer([3]), integer(1), integer(5), error=error, dtype="int64")
        for n, error in ((2, "UnimplementedError"), (4, INVALID), (3, None))
    ],
    [
        case(op, STATE, integer(1), literal([0, 2], "int32"), dtype=dtype, label="empty")
        for op, dtype in (("StatefulStandardNormalV2", "float32"), ("StatefulUniformFullInt", "int32"))
    ],
    case("StatefulStandardNormalV2", STATE, integer(1), integer([-1]), error=INVALID, label="size"),
    case("StatefulStandardNormalV2", STATE, integer([1]), integer([2]), error="ValueError", label="vector"),
    [case("RngReadAndSkip", STATE, literal(1), literal(delta, "uint64")) for delta in (10, 0, 2**63 + 1)],
    case("RngReadAndSkip", resource(integer([-2, 5, -7])), literal(1), literal(10, "uint64"), label="carry"),
    case("RngReadAndSkip", STATE, literal(3), literal(1, "uint64")),
    case("RngReadAndSkip", STATE, literal(2), literal(1, "uint64"), error="UnimplementedError"),
    case("RngReadAndSkip", STATE, literal(7), literal(10, "uint64"), error=INVALID, label="algorithm"),
    case("RngReadAndSkip", STATE, literal([1]), literal(10, "uint64"), error="ValueError", label="vector"),
    [
        case("NonDeterministicInts", integer([3, 4]), dtype=dtype, values=False)
        for dtype in ("int32", "int64", "uint32", "uint64")
    ],
    case("NonDeterministicInts", integer([0, 4]), label="empty"),
]
