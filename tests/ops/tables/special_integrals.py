"""Cases of Bessel functions of both kinds, and of functions that are integrals."""

from op_cases import case, normal, uniform

INF, NAN = float("inf"), float("nan")
FLOATS = "float32 float64"
EVERYWHERE = ("BesselI0", "BesselI1", "BesselJ0", "BesselJ1", "Dawsn", "FresnelCos", "FresnelSin")
ABOVE_ZERO = (
    "BesselK0",
    "BesselK0e",
    "BesselK1",
    "BesselK1e",
    "BesselY0",
    "BesselY1",
    "Expint",
    "Spence",
)
# The oracle's own float32 values are this far from those that it has in float64.
LOOSE = {"float32": {"rtol": 3e-5, "atol": 3e-6}, "float64": {"rtol": 1e-10, "atol": 1e-12}}
# Arguments of every segment.
WIDE = (0.05, 0.5, 1.3, 1.99, 2.01, 3.9, 4.1, 5.9, 6.1, 7.9, 8.1, 15.0, 17.0, 39.0, 41.0, 60.0)

CASES = [
    [case(name, normal(3, 4), dtypes=kind, **how) for name in EVERYWHERE for kind, how in LOOSE.items()],
    [
        case(name, uniform(0.1, 5.0, (3, 4)), dtypes=kind, **how)
        for name in ABOVE_ZERO
        for kind, how in LOOSE.items()
    ],
    [
        case(name, list(WIDE), dtypes=kind, label="wide", **how)
        for name in (*EVERYWHERE, *ABOVE_ZERO)
        for kind, how in LOOSE.items()
    ],
    [
        case(name, uniform(0.2, 3.0, (2, 3)), dtypes="float16", gradient=False)
        for name in (*EVERYWHERE, *ABOVE_ZERO)
        if name.startswith("Bessel")
    ],
    [
        case(name, [-2.5, -0.5, 0.0, NAN, 1e30], gradient=False, label="special", **LOOSE["float32"])
        for name in ("Dawsn", "FresnelCos", "FresnelSin")
    ],
    [
        case(name, [-INF, -1.0, 0.0, INF, NAN], dtypes="float64", gradient=False, label="special")
        for name in (*EVERYWHERE, *ABOVE_ZERO)
    ],
    [case(name, normal(0, 2)) for name in (*EVERYWHERE, *ABOVE_ZERO)],
    [case(name, 0.0, label="zero") for name in ("BesselJ1", "Dawsn", "FresnelCos")],
    case("Spence", [1.0, 2.0], label="one"),
    case("BesselI0e", list(WIDE), dtypes=FLOATS, label="wide", rtol=3e-5),
    case("BesselI1e", list(WIDE), dtypes=FLOATS, label="wide", rtol=3e-5),
]
