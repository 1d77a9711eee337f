"""Cases of the element-wise ops: arithmetic, functions, comparison, logic, bits, casts.

Most functions are described by a line of a table: the op, where its arguments come from and the dtypes that
the oracle's CPU kernels admit.
"""

import numpy as np

from op_cases import bools, case, ints, literal, normal, positive, strings, uniform

NAN, INF = float("nan"), float("inf")
REAL = "half bfloat16 float32 float64"
ENDS = literal([complex(float("inf"), 1), complex(2, -float("inf")), 1 + 1j], "T")
COMPLEX = "complex64 complex128"
SIGNED = "int8 int16 int32 int64"
UNSIGNED = "uint8 uint16 uint32 uint64"
SPECIAL = np.array([NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1e30, 1e-30])
FIRST = np.repeat(SPECIAL[:8], 8)
SECOND = np.tile(SPECIAL[:8], 8)


def special(dtype="T"):
    """The special values, of the case's dtype."""
    return literal(SPECIAL, dtype)


def pairs():
    """All pairs of special values."""
    return literal(FIRST, "T"), literal(SECOND, "T")


# Op, its domain (low, high), dtypes beside float32 and float64.
UNARY = [
    ("Neg", (-3, 3), f"half bfloat16 {COMPLEX} {SIGNED}"),
    ("Abs", (-3, 3), f"half bfloat16 {SIGNED}"),
    ("Sign", (-3, 3), f"half bfloat16 {COMPLEX} int32 int64"),
    ("Square", (-3, 3), f"half bfloat16 {COMPLEX} int32 int64"),
    ("Sqrt", (0.1, 9), f"half bfloat16 {COMPLEX}"),
    ("Rsqrt", (0.1, 9), f"half bfloat16 {COMPLEX}"),
    ("Reciprocal", (0.3, 4), f"half bfloat16 {COMPLEX}"),
    ("Inv", (0.3, 4), f"half bfloat16 {COMPLEX}"),
    ("Exp", (-3, 3), f"half bfloat16 {COMPLEX}"),
    ("Expm1", (-3, 3), f"half bfloat16 {COMPLEX}"),
    ("Log", (0.1, 9), f"half bfloat16 {COMPLEX}"),
    ("Log1p", (-0.9, 5), f"half bfloat16 {COMPLEX}"),
    ("Sin", (-6, 6), f"half bfloat16 {COMPLEX}"),
    ("Cos", (-6, 6), f"half bfloat16 {COMPLEX}"),
    ("Tan", (-1.4, 1.4), f"half bfloat16 {COMPLEX}"),
    ("Asin", (-0.9, 0.9), f"half bfloat16 {COMPLEX}"),
    ("Acos", (-0.9, 0.9), f"half bfloat16 {COMPLEX}"),
    ("Atan", (-3, 3), f"half bfloat16 {COMPLEX}"),
    ("Sinh", (-3, 3), f"half bfloat16 {COMPLEX}"),
    ("Cosh", (-3, 3), f"half bfloat16 {COMPLEX}"),
    ("Tanh", (-3, 3), f"half bfloat16 {COMPLEX}"),
    ("Asinh", (-3, 3), f"half bfloat16 {COMPLEX}"),
    ("Acosh", (1.1, 5), f"half bfloat16 {COMPLEX}"),
    ("Atanh", (-0.9, 0.9), f"half bfloat16 {COMPLEX}"),
    ("Sigmoid", (-5, 5), f"half bfloat16 {COMPLEX}"),
    ("Erf", (-3, 3), "half bfloat16"),
    ("Erfc", (-3, 3), "half bfloat16"),
    ("Lgamma", (0.2, 5), "half"),
    ("Digamma", (0.2, 5), ""),
    ("Ceil", (-3, 3), "half bfloat16"),
    ("Floor", (-3, 3), "half bfloat16"),
    ("Rint", (-3, 3), ""),
    ("Round", (-3, 3), "half bfloat16"),  # the oracle rounds all integers to 0
    ("IsNan", (-3, 3), "half bfloat16"),
    ("IsInf", (-3, 3), "half bfloat16"),
    ("IsFinite", (-3, 3), "half bfloat16"),
]
# Gradients given the output: op, the range of the output.
GIVEN_OUTPUT = [
    ("SigmoidGrad", (0.1, 0.9)),
    ("TanhGrad", (-0.9, 0.9)),
    ("SqrtGrad", (0.4, 3)),
    ("RsqrtGrad", (0.4, 3)),
    ("ReciprocalGrad", (0.4, 3)),
    ("InvGrad", (0.4, 3)),
]
ARITHMETIC = [
    ("Add", f"half bfloat16 {COMPLEX} {SIGNED} uint8"),
    ("AddV2", f"half bfloat16 {COMPLEX} {SIGNED} {UNSIGNED}"),
    ("Sub", f"half bfloat16 {COMPLEX} {SIGNED} {UNSIGNED}"),
    ("Mul", f"half bfloat16 {COMPLEX} {SIGNED} {UNSIGNED}"),
    ("Div", f"half bfloat16 {COMPLEX} {SIGNED} {UNSIGNED}"),
    ("RealDiv", f"half bfloat16 {COMPLEX}"),
    ("TruncateDiv", f"{SIGNED} {UNSIGNED}"),
    ("FloorDiv", f"half bfloat16 {SIGNED} {UNSIGNED}"),
    ("DivNoNan", f"half bfloat16 {COMPLEX}"),
    ("Mod", "int32 int64"),
    ("FloorMod", f"half bfloat16 {SIGNED} {UNSIGNED}"),
    ("TruncateMod", "int32 int64"),
    ("SquaredDifference", f"half bfloat16 {COMPLEX} int32 int64"),
    ("Maximum", f"half bfloat16 {SIGNED} {UNSIGNED}"),
    ("Minimum", f"half bfloat16 {SIGNED} {UNSIGNED}"),
    ("Xdivy", f"half bfloat16 {COMPLEX}"),
    ("Xlogy", f"half bfloat16 {COMPLEX}"),
]
NO_FLOATS = ("TruncateDiv",)
ORDER = ("Less", "LessEqual", "Greater", "GreaterEqual")
BITS = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
SHIFTS = ("LeftShift", "RightShift")


def second(op, *shape):
    """A second argument that keeps away from the op's poles, of both signs where it has none there."""
    return (
        positive(*shape)
        if op in ("DivNoNan", "Xdivy", "Xlogy") or "Div" in op or "Mod" in op
        else normal(*shape)
    )


def floats(op):
    """The dtypes in which shapes and special values are tried."""
    return "int32 int64" if op in NO_FLOATS else "float32 float64"


UNARY_CASES = [
    [
        case(op, uniform(*domain, (2, 3)), dtypes=f"float32 float64 {others}"),
        case(op, uniform(*domain)),
        case(op, uniform(*domain, (0, 2))),
        case(op, uniform(*domain, (2, 1, 2, 2)), dtypes="float64"),
        # The oracle's Erf of an infinite float64 is NaN.
        case(
            op,
            special(),
            dtypes="float32" if op == "Erf" else "float32 float64",
            gradient=False,
            signed_zeros=True,
        ),
    ]
    for op, domain, others in UNARY
]
GIVEN_OUTPUT_CASES = [
    [
        case(op, uniform(*domain, (2, 3)), normal(2, 3), dtypes=f"half bfloat16 float32 float64 {COMPLEX}"),
        case(op, uniform(*domain), normal()),
    ]
    for op, domain in GIVEN_OUTPUT
]
ARITHMETIC_CASES = [
    [
        case(
            op,
            normal(2, 3),
            second(op, 2, 3),
            dtypes=" ".join(dict.fromkeys(f"{floats(op)} {others}".split())),
        ),
        case(op, normal(2, 3), second(op, 3), dtypes=floats(op)),
        case(op, normal(2, 1), second(op, 1, 3), dtypes=floats(op)),
        case(op, normal(3), second(op, 2, 1, 1), dtypes=floats(op)),
        case(op, normal(), second(op, 2, 2), dtypes=floats(op)),
        case(op, normal(2), second(op), dtypes=floats(op)),
        case(op, normal(), second(op), dtypes=floats(op)),
        case(op, normal(0, 3), second(op, 1), dtypes=floats(op)),
        case(
            op,
            normal(2, 3),
            second(op, 2),
            dtypes="int32" if op in NO_FLOATS else "float32",
            error="ValueError",
        ),
        []
        if op in NO_FLOATS
        else case(op, *pairs(), dtypes="float32 float64", gradient=False, signed_zeros=True),
    ]
    for op, others in ARITHMETIC
]
# TensorFlow 2.21 calls a zero divisor an InternalError in TruncateDiv and TruncateMod, so they are left out.
DIVISION_BY_ZERO = [
    [
        case(op, [1, 2], [1, 0], error="InvalidArgumentError"),
        case(op, literal([1, 2], "int64"), literal(0, "int64"), error="InvalidArgumentError"),
    ]
    for op in ("Div", "FloorDiv", "Mod", "FloorMod")
]
INTEGER_DIVISION = [
    [
        case(op, [7, -7, 7, -7, 0, 6, -6], [2, 2, -2, -2, 5, 3, 3], label="signs"),
        case(op, literal([7, -7, 7, -7, 5], "int64"), literal([4, 4, -4, -4, -5], "int64"), label="signs"),
    ]
    for op in ("Div", "TruncateDiv", "FloorDiv", "Mod", "FloorMod", "TruncateMod")
] + [
    case(op, [5.5, -5.5, 5.5, -5.5, 6.0, 0.0], [2.0, 2.0, -2.0, -2.0, -3.0, 2.0], dtypes="float32 float64")
    for op in ("Div", "RealDiv", "FloorDiv", "Mod", "FloorMod", "TruncateMod")
]
WRAPPING = [
    case("Add", literal([127, -128], "int8"), literal([1, -1], "int8")),
    case("AddV2", literal([255, 1], "uint8"), literal([1, 255], "uint8")),
    case("AddV2", literal([2**32 - 1], "uint32"), literal([2], "uint32")),
    case("Sub", literal([0], "uint16"), literal([1], "uint16")),
    case("Mul", literal([2**63], "uint64"), literal([3], "uint64")),
    case("Mul", literal([2**30], "int32"), literal([4], "int32")),
    case("Neg", literal([-128, 127], "int8")),
    case("Abs", literal([-128, 127], "int8")),
    case("Maximum", literal([2**63, 1], "uint64"), literal([1, 2**63 + 1], "uint64")),
    case("Minimum", literal([2**63, 1], "uint64"), literal([1, 2**63 + 1], "uint64")),
    case("FloorDiv", literal([2**64 - 1], "uint64"), literal([10], "uint64")),
    case("Less", literal([2**63, 1], "uint64"), literal([1, 2**63 + 1], "uint64")),
    case("Maximum", [1.0, 2.0, 3.0], [1.0, 2.0, 2.0], label="ties"),
    case("Minimum", [1.0, 2.0, 3.0], [1.0, 2.0, 2.0], label="ties"),
]
SUMS = [
    case("Add", strings(["a", "", "xyz"]), strings("b")),
    case("AddN", [normal(2, 3)] * 3, dtypes=f"{REAL} {COMPLEX} {SIGNED} uint8"),
    case("AddN", [normal(2, 3)]),
    case("AddN", [normal()] * 2, dtypes="float32 float64"),
    case("AddN", [normal(0)] * 2),
    case("AddN", [normal(2)] * 9, dtypes="float64"),
    case("AddN", [normal(2), normal(3)], error="ValueError"),
    [
        [
            case(op, ENDS, literal([2 + 2j, 1 + 1j, 3j], "T"), dtypes=COMPLEX, gradient=False, label="ends"),
            case(op, literal([2 + 2j, 1 + 1j, 3j], "T"), ENDS, dtypes=COMPLEX, gradient=False, label="ends"),
        ]
        for op in ("Add", "AddV2", "Sub")
    ],
    case(
        "AddN", [literal([1j, 2.0], "T"), literal([complex(INF, 1), complex(1, -INF)], "T")], dtypes=COMPLEX
    ),
    case("AddN", [literal([1j, 2.0], "T")] * 2 + [literal([complex(INF, 1), -2j], "T")], dtypes=COMPLEX),
    case("AccumulateNV2", [normal(2, 3)] * 3, shape=(2, 3), dtypes=f"{REAL} {COMPLEX} int32 int64"),
    case("AccumulateNV2", [normal()], shape=()),
]
POWERS = [
    case("Pow", positive(2, 3), normal(2, 3), dtypes=f"{REAL} {COMPLEX}"),
    case("Pow", positive(2, 3), normal(3), dtypes="float32 float64"),
    case("Pow", positive(2, 1), normal(3), dtypes="float64"),
    case("Pow", positive(), normal(2), dtypes="float64"),
    case("Pow", ints(-3, 4, (2, 3)), ints(0, 4, (2, 3)), dtypes=SIGNED),
    case("Pow", [-2.0, -2.0, 0.0, 0.0, -8.0], [2.0, 3.0, 0.0, 2.0, 1 / 3], dtypes="float32 float64"),
    case("Pow", *pairs(), dtypes="float32 float64", gradient=False, signed_zeros=True),
    case("Pow", [2, 3], [2, -1], error="InvalidArgumentError"),
    case("Pow", normal(2, 3), normal(2), error="ValueError"),
]
TWO_VARIABLES = [
    case("Atan2", normal(2, 3), normal(2, 3), dtypes=REAL),
    case("Atan2", normal(2, 1), normal(3), dtypes="float32 float64"),
    case("Atan2", *pairs(), dtypes="float32 float64", gradient=False, signed_zeros=True),
    case("Igamma", positive(2, 3), positive(2, 3), dtypes="float32 float64", rtol=2e-5),
    case("Igamma", positive(3), positive(2, 1), dtypes="float64", rtol=1e-9),
    case("Igamma", [0.0, -1.0, 1.0, 1.0, NAN, 2.0], [1.0, 1.0, 0.0, -1.0, 1.0, INF], gradient=False),
    case("Igammac", positive(2, 3), positive(2, 3), dtypes="float32 float64", rtol=2e-5),
    case("Igammac", positive(3), positive(2, 1), dtypes="float64", rtol=1e-9),
    case("Igammac", [0.0, -1.0, 1.0, 1.0, NAN, 2.0], [1.0, 1.0, 0.0, -1.0, 1.0, INF], gradient=False),
    case("IgammaGradA", positive(2, 3), positive(2, 3), dtypes="float32 float64", rtol=1e-4),
    case("IgammaGradA", [4.5, 2.0, 2.0, 0.5], [3e4, 1e3, INF, 0.0], dtypes="float32 float64"),
    case("Zeta", uniform(1.5, 5, (2, 3)), uniform(0.5, 4, (2, 3)), dtypes="float32 float64", rtol=2e-5),
    case("Zeta", uniform(1.5, 5, (3,)), uniform(0.5, 4, (2, 1)), dtypes="float64", rtol=1e-9),
    case("Zeta", [1.0, 0.5, 2.0, 2.0, 3.0], [1.0, 1.0, 0.0, -1.0, -0.5], gradient=False),
    case("Zeta", [3.0, 3.0, 4.0, 1.5, 1.0, 0.5], [0.0, -1.0, -2.0, -1.0, 0.0, -1.0], gradient=False),
    case("Polygamma", ints(1, 5, (2, 3), "T"), uniform(0.5, 4, (2, 3)), dtypes="float32 float64", rtol=2e-5),
    case("Polygamma", ints(0, 3, (3,), "T"), uniform(0.5, 4, (2, 1)), dtypes="float64", rtol=1e-9),
    case(
        "Betainc",
        positive(2, 3),
        positive(2, 3),
        uniform(0.1, 0.9, (2, 3)),
        dtypes="float32 float64",
        rtol=5e-5,
    ),
    case("Betainc", positive(), positive(), uniform(0.1, 0.9, (4,)), dtypes="float64", rtol=1e-9),
    case("Betainc", [1.0, 2.0, 0.0, 1.0], [1.0, 2.0, 1.0, NAN], [0.0, 1.0, 0.5, 0.5], gradient=False),
    case("Betainc", positive(9000), positive(9000), uniform(0, 1, (9000,)), gradient=False),
    case("Betainc", positive(2), positive(3), uniform(0, 1, (2,)), error="ValueError"),
    case("Cross", normal(3), normal(3), dtypes=f"{REAL} {SIGNED} uint8"),
    case("Cross", normal(2, 2, 3), normal(2, 2, 3), dtypes="float32 float64"),
    case("Cross", normal(2, 2), normal(2, 2), error="ValueError"),
    case("Cross", normal(2, 3), normal(3), error="ValueError"),
]
COMPLEX_PARTS = [
    [
        [
            case(op, normal(2, 3), dtypes=complex_dtype, Tout=real_dtype),
            case(op, normal(), dtypes=complex_dtype, Tout=real_dtype),
        ]
        for op in ("Real", "Imag", "Angle", "ComplexAbs")
        for complex_dtype, real_dtype in (("complex64", "float32"), ("complex128", "float64"))
    ],
    case("Conj", normal(2, 3), dtypes=COMPLEX),
    case("Conj", normal(), dtypes=COMPLEX),
    case("Complex", normal(2, 3), normal(2, 3), dtypes="float32", Tout="complex64"),
    case("Complex", normal(2, 3), normal(2, 3), dtypes="float64", Tout="complex128"),
    case("Complex", normal(2, 1), normal(3), dtypes="float64", Tout="complex128"),
    case("Complex", normal(2), normal(3), Tout="complex64", error="ValueError"),
    case("Angle", literal([0j, -1 + 0j, 1j, -1j], "complex64"), Tout="float32", label="axes", gradient=False),
    case("Sign", literal([0j, 3 + 4j, -2j], "complex64"), label="axes"),
]
COMPARISONS = [
    [
        [
            case(op, normal(2, 3), normal(2, 3), dtypes=f"{REAL} {SIGNED} {UNSIGNED}"),
            case(op, normal(2, 1), normal(3)),
            case(op, normal(), normal()),
            case(op, normal(0, 3), normal(3)),
            case(op, *pairs(), dtypes="float32 float64"),
            case(op, ints(0, 3, (3, 3)), ints(0, 3, (3, 3)), dtypes="int32 int64 uint8 float32"),
            case(op, normal(2, 3), normal(2), error="ValueError"),
        ]
        for op in (*ORDER, "Equal", "NotEqual")
    ],
    [
        [
            case(op, bools((4,)), bools((4,))),
            case(op, strings(["a", "b", ""]), strings(["a", "c", ""])),
            case(op, literal([1 + 1j, 2, NAN], "T"), literal([1 + 1j, 2j, NAN], "T"), dtypes=COMPLEX),
        ]
        for op in ("Equal", "NotEqual")
    ],
    case("Equal", normal(2, 3), normal(2), incompatible_shape_error=False),
    case("NotEqual", normal(2, 3), normal(2), incompatible_shape_error=False),
    case(
        "ApproximateEqual",
        [1.0, 1.0, 2.0, NAN, INF],
        [1.000001, 1.1, 2.0, NAN, INF],
        dtypes="float32 float64",
    ),
    case("ApproximateEqual", [1.0, 1.0, 2.0], [1.05, 1.2, 2.0], tolerance=0.1, dtypes="float32 float64"),
    case("ApproximateEqual", normal(2, 3), normal(2), error="ValueError"),
]
LOGIC = [
    [case(op, bools((2, 3)), bools((2, 3))) for op in ("LogicalAnd", "LogicalOr")],
    [case(op, bools((2, 1)), bools((3,))) for op in ("LogicalAnd", "LogicalOr")],
    [case(op, bools(), bools((2,))) for op in ("LogicalAnd", "LogicalOr")],
    [case(op, bools((2, 3)), bools((2,)), error="ValueError") for op in ("LogicalAnd", "LogicalOr")],
    case("LogicalNot", bools((2, 3))),
    case("LogicalNot", bools()),
    case(
        "Select",
        bools((2, 3)),
        normal(2, 3),
        normal(2, 3),
        dtypes=f"{REAL} {COMPLEX} {SIGNED} uint8 bool string",
    ),
    case("Select", bools((2,)), normal(2, 3), normal(2, 3), dtypes="float32 float64"),
    case("Select", True, normal(2, 3), normal(2, 3), dtypes="float32 float64"),
    case("Select", False, normal(), normal()),
    case("Select", bools((0,)), normal(0, 2), normal(0, 2)),
    case("Select", bools((3,)), normal(2, 3), normal(2, 3), error="ValueError"),
    case("Select", bools((2, 3)), normal(2, 3), normal(3), error="ValueError"),
    case(
        "SelectV2",
        bools((2, 3)),
        normal(2, 3),
        normal(2, 3),
        dtypes=f"{REAL} {COMPLEX} int32 int64 bool string",
    ),
    case("SelectV2", bools((3,)), normal(2, 3), normal(2, 1), dtypes="float32 float64"),
    case("SelectV2", bools((2, 1)), normal(3), normal(), dtypes="float64"),
    case("SelectV2", bools((2, 1, 1)), normal(1, 2), normal(3, 1), dtypes="float64"),
    case("SelectV2", True, normal(2), normal()),
    case("SelectV2", bools((2,)), normal(2, 3), normal(2, 3), error="ValueError"),
]
BIT_CASES = [
    [
        [
            case(op, ints(0, 100, (2, 3)), ints(0, 100, (2, 3)), dtypes=f"{SIGNED} {UNSIGNED}"),
            case(op, ints(-100, 100, (2, 1)), ints(-100, 100, (3,))),
            case(op, ints(0, 9, (2, 3)), ints(0, 9, (2,)), error="ValueError"),
        ]
        for op in BITS
    ],
    case("BitwiseAnd", literal([2**63 + 5], "uint64"), literal([2**64 - 1], "uint64")),
    case("Invert", ints(0, 100, (2, 3)), dtypes=f"{SIGNED} {UNSIGNED}"),
    case("Invert", ints(-100, 100, (4,))),
    [case(op, ints(0, 100, (2, 3)), ints(0, 7, (2, 3)), dtypes=f"{SIGNED} {UNSIGNED}") for op in SHIFTS],
    [case(op, ints(-100, 100, (2, 1)), ints(0, 7, (3,)), dtypes="int8 int32 int64") for op in SHIFTS],
    case("RightShift", literal([2**63 + 5], "uint64"), literal([3], "uint64")),
    case("RightShift", literal([200], "uint8"), literal([2], "uint8")),
    case("LeftShift", literal([200], "uint8"), literal([2], "uint8")),
    [
        case(op, literal([7, 60, 1], dtype), literal([0, 2**bits - 1, 3], dtype), label="far")
        for op in SHIFTS
        for dtype, bits in (("uint8", 8), ("uint16", 16), ("uint32", 32), ("uint64", 64))
    ],
]
CASTABLE = (
    "half",
    "bfloat16",
    "float32",
    "float64",
    *SIGNED.split(),
    *UNSIGNED.split(),
    "bool",
    *COMPLEX.split(),
)
CASTS = [
    [
        case("Cast", uniform(0, 50, (2, 3)), dtypes="float32 int32", SrcT="T", DstT=target, label="widely")
        for target in CASTABLE
    ],
    [case("Cast", uniform(0, 50, (3,)), dtypes=source, SrcT="T", DstT="float32") for source in CASTABLE[:-3]],
    case("Cast", bools((3,)), SrcT="bool", DstT="int32"),
    case("Cast", bools((3,)), SrcT="bool", DstT="float32"),
    case("Cast", [-1.5, -0.5, 0.5, 1.5, 2.5, -0.0], SrcT="T", DstT="int32", dtypes="float32 float64 half"),
    case("Cast", [-1, 300, 65537], SrcT="int32", DstT="uint8"),
    case("Cast", [-1, 200, 40000], SrcT="int32", DstT="int8"),
    case("Cast", [-1, 3], SrcT="int32", DstT="uint64"),
    case("Cast", literal([2**40 + 3, -1], "int64"), SrcT="int64", DstT="int32"),
    case("Cast", [0.0, -0.0, NAN, INF, 0.1], SrcT="T", DstT="bool", gradient=False),
    case("Cast", [NAN, INF, -INF, 1e10, 1e-10], SrcT="T", DstT="half", gradient=False),
    case("Cast", [1.00390625, 1.01171875, 3.0e38, NAN], SrcT="T", DstT="bfloat16", gradient=False),
    case("Cast", [1.1, 1 / 3, 1e300], SrcT="T", DstT="float32", dtypes="float64"),
    case("Cast", [1.9999, 0.3333, 7.7777], SrcT="T", DstT="half", Truncate=False),
    case("Cast", normal(3), SrcT="T", DstT="float32", dtypes="complex64", gradient=False),
    case("Cast", normal(3), SrcT="T", DstT="complex128", dtypes="complex64 float64"),
    case("Cast", normal(), SrcT="T", DstT="float64"),
    case("Cast", normal(0, 2), SrcT="T", DstT="int64"),
    case("Bitcast", normal(2, 3), type="int32"),
    case("Bitcast", normal(2, 3), type="uint8"),
    case("Bitcast", normal(2, 3), type="half"),
    case("Bitcast", normal(3, 2), type="float64"),
    case("Bitcast", normal(3), type="int64", dtypes="float64 complex64"),
    case("Bitcast", ints(0, 200, (3, 4), "uint8"), type="float32", gradient=False),
    case("Bitcast", ints(0, 200, (3, 2), "uint8"), type="int16"),
    case("Bitcast", ints(-9, 9, ()), type="uint32"),
    case("Bitcast", normal(2, 3), type="float64", error="ValueError"),
]
CLIPS = [
    case(
        "ClipByValue",
        normal(2, 3),
        literal(-0.5, "T"),
        literal(0.7, "T"),
        dtypes="float32 float64 half bfloat16",
    ),
    case("ClipByValue", ints(-9, 9, (2, 3)), literal(-3, "T"), literal(4, "T"), dtypes="int32 int64 int8"),
    case(
        "ClipByValue", normal(2, 3), uniform(-1, 0, (2, 3)), uniform(0, 1, (2, 3)), dtypes="float32 float64"
    ),
    case("ClipByValue", [NAN, INF, -INF, 0.0], -1.0, 1.0, gradient=False),
    *(
        case(
            "ClipByValue",
            literal([1, 5, 9], "T"),
            literal(low, "T"),
            literal(high, "T"),
            gradient=False,
            label="crossed",
            dtypes="float32 float64 half int32 uint8",
        )
        for low in (7, [7, 7, 7])
        for high in (3, [3, 9, 3])
    ),
    *(
        case(
            "ClipByValue",
            [1.0, 5.0, NAN],
            low,
            high,
            gradient=False,
            label="no limit",
            dtypes="float32 float64",
        )
        for low, high in ((NAN, 3.0), (3.0, NAN), ([NAN, 2.0, 2.0], [3.0, NAN, 3.0]))
    ),
    case("ClipByValue", normal(2, 3), uniform(-1, 0, (2,)), 1.0, error="InvalidArgumentError"),
    case(
        "Bucketize",
        [-5.0, 0.0, 10.0, 50.0, 150.0, 1000.0],
        boundaries=[0.0, 10.0, 100.0],
        dtypes="float32 float64",
    ),
    case("Bucketize", ints(-5, 20, (2, 3)), boundaries=[0.0, 10.0], dtypes="int32 int64"),
    case("Bucketize", normal(2), boundaries=[10.0, 0.0], error="InvalidArgumentError"),
]
CASES = [
    [
        case(op, normal(2, 3), dtypes="int32 int64", error="TypeError")
        for op in ("Acos", "Asin", "Atan", "Tan")
    ],
    case("Zeta", [2.0, 3.0], [INF, INF], label="infinity"),
    UNARY_CASES,
    GIVEN_OUTPUT_CASES,
    ARITHMETIC_CASES,
    DIVISION_BY_ZERO,
    INTEGER_DIVISION,
    WRAPPING,
    SUMS,
    POWERS,
    TWO_VARIABLES,
    COMPLEX_PARTS,
    COMPARISONS,
    LOGIC,
    BIT_CASES,
    CASTS,
    CLIPS,
]
