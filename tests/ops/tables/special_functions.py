"""Cases of special functions, of accumulated logarithms, and of bits."""

from op_cases import case, ints, literal, normal, positive, uniform

INF, NAN = float("inf"), float("nan")
FLOATS = "float32 float64"
INVALID = "InvalidArgumentError"
BOTH = {"exclusive": True, "reverse": True}
INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64"

CASES = [
    case("Erfinv", uniform(-0.99, 0.99, (3, 4)), dtypes=FLOATS),
    case("Erfinv", [-1.0, 0.0, 1.0, 1.5, NAN], gradient=False, label="special"),
    case("Ndtri", uniform(0.01, 0.99, (3, 4)), dtypes=FLOATS, rtol=2e-5),
    case("Ndtri", [0.0, 0.5, 1.0, 1.5, NAN], gradient=False, label="special"),
    case("BesselI0e", normal(3, 4), dtypes=FLOATS),
    case("BesselI0e", [0.0, -30.0, INF, NAN], gradient=False, label="special"),
    case("BesselI1e", normal(3, 4), dtypes=FLOATS, rtol=2e-5),
    case("BesselI1e", [0.0, 2.0], label="zero", rtol=2e-5),
    case("NextAfter", [1.0, 0.0, -1.0, 2.0, INF], [2.0, -1.0, -1.0, -INF, 0.0], dtypes=FLOATS),
    case("NextAfter", normal(2, 3), normal(3), dtypes=FLOATS),
    case("MulNoNan", normal(2, 3), normal(3), dtypes=FLOATS + " complex64 half"),
    case("MulNoNan", [INF, NAN, 1.0, INF], [0.0, 0.0, NAN, 2.0], label="special"),
    case("MulNoNan", normal(2, 3), normal(2), label="shapes", error="ValueError"),
    case("Xlog1py", normal(2, 3), positive(3), dtypes=FLOATS + " half"),
    case("Xlog1py", [0.0, 0.0, 1.0, 2.0], [-1.0, NAN, -2.0, 0.0], gradient=False, label="special"),
    [
        case("CumulativeLogsumexp", normal(3, 4), literal(axis), dtypes=FLOATS, **how)
        for axis, how in ((0, {}), (1, {"exclusive": True}), (-1, {"reverse": True}), (1, BOTH))
    ],
    case("CumulativeLogsumexp", [-INF, 0.0, INF, 1.0], literal(0), gradient=False, label="special"),
    case("CumulativeLogsumexp", normal(0), literal(0)),
    case("CumulativeLogsumexp", normal(3), literal(1), label="axis", error=INVALID),
    case("PopulationCount", ints(0, 100, (2, 5)), dtypes=INTEGERS),
    case("PopulationCount", ints(-100, 100, (7,)), dtypes="int8 int16 int32 int64", label="negative"),
    case("PopulationCount", ints(0, 9, (0,))),
]
