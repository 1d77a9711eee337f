"""Cases of quantisation: conversions and their simulation with gradients.

Numbers at the upper end of 32-bit integers are left out: there the oracle's conversion overflows.
"""

import numpy as np

from op_cases import case, ints, literal, normal, uniform

INVALID, UNIMPLEMENTED = "InvalidArgumentError", "UnimplementedError"
TYPES = ("quint8", "qint8", "quint16", "qint16", "qint32")
MODES = ("MIN_COMBINED", "MIN_FIRST", "SCALED")
LOW, HIGH = np.float32(-1), np.float32(2)
NUMBERS = np.float32([-3, -1.26, -1, -0.5, -0.25, 0, 0.004, 0.2, 0.5, 1, 1.7])


def conversions() -> list:
    """Every type, mode and rounding; ranges that are moved; slices; what is refused."""
    op, back = "QuantizeV2", "Dequantize"
    cases = []
    for dtype in TYPES:
        limits = np.iinfo(dtype.lstrip("q") if dtype.startswith("qu") else dtype[1:])
        every = [limits.min, limits.min + 1, limits.max // 3, limits.max // 2]
        every += [] if dtype == "qint32" else [limits.max - 1, limits.max]
        for mode in MODES:
            form = {"T": dtype, "mode": mode}
            cases += [
                case(op, NUMBERS, LOW, HIGH, label=dtype, **form),
                case(op, uniform(-1, 1.5, (3, 4)), LOW, np.float32(1.625), label=dtype + " others", **form),
                case(back, literal(every, dtype), LOW, HIGH, mode=mode, label=dtype),
                case(
                    back,
                    literal(every, dtype),
                    np.float32(-0.3),
                    np.float32(0.7),
                    mode=mode,
                    label=dtype + " more",
                ),
            ]
        cases.append(
            case(op, NUMBERS, LOW, HIGH, T=dtype, mode="SCALED", round_mode="HALF_TO_EVEN", label=dtype)
        )
    for low, high in ((1, 2), (-2, -1), (0, 0), (1, 1), (0, 0.001), (-1e6, 1e6)):
        for mode in MODES:
            ends = np.float32(low), np.float32(high)
            cases.append(case(op, NUMBERS, *ends, T="quint8", mode=mode, label=f"{low} to {high}"))
    columns = np.float32([-1, -2, -0.5, -1]), np.float32([2, 1, 3, 0.5])
    for dtype, mode in (("qint8", "SCALED"), ("quint8", "MIN_COMBINED")):
        cases.append(case(op, uniform(-2, 2, (3, 4)), *columns, T=dtype, mode=mode, axis=1))
    halves = np.float32([-1.5, -0.5, 0.5, 1.5, 2.5])
    ends = np.float32(-128), np.float32(127)
    narrow = {"mode": "SCALED", "narrow_range": True}
    eights = ints(-100, 100, (3, 4), "qint8")
    return cases + [
        case(op, halves, *ends, T="qint8", mode="SCALED", round_mode="HALF_TO_EVEN", label="halves"),
        case(op, halves, *ends, T="qint8", mode="SCALED", label="halves"),
        case(op, NUMBERS, LOW, HIGH, T="qint8", **narrow),
        case(op, NUMBERS, LOW, HIGH, T="qint8", ensure_minimum_range=5.0),
        case(op, normal(0, 2), LOW, HIGH, T="quint8"),
        case(back, eights, LOW, HIGH, label="narrow", **narrow),
        case(back, eights, *columns, mode="SCALED", axis=1),
        case(back, eights, HIGH, HIGH, mode="MIN_FIRST", label="empty range"),
        case(op, NUMBERS, HIGH, LOW, T="quint8", label="turned round", error=INVALID),
        case(op, NUMBERS, LOW, HIGH, T="quint8", round_mode="HALF_TO_EVEN", label="rounding", error=INVALID),
        case(
            op,
            normal(3, 4),
            *columns,
            T="quint8",
            mode="MIN_FIRST",
            axis=1,
            label="slices",
            error=UNIMPLEMENTED,
        ),
    ]


def fake_quantisation() -> list:
    """Ranges as attributes, as inputs and by channel, with their gradients; few bits; empty ranges."""
    args, variables, channels = (f"FakeQuantWithMinMax{kind}" for kind in ("Args", "Vars", "VarsPerChannel"))
    x = np.float32([[-7, -6, -3.3, -0.01], [0, 0.02, 0.03, 2.5], [5.95, 6, 6.1, 100]])
    cases = []
    for form in (
        {},
        {"num_bits": 4},
        {"narrow_range": True},
        {"num_bits": 2, "narrow_range": True},
        {"num_bits": 16},
    ):
        for low, high in ((-6, 6), (-0.1, 0.37), (0, 2.5), (0.5, 3), (-4, -1)):
            ends = {"min": low, "max": high, **form}
            cases.append(case(args, x, **ends))
            cases.append(case(variables, x, np.float32(low), np.float32(high), label=f"{low} {high}", **form))
        several = np.float32([-1, -6, 0, -0.3]), np.float32([1, 6, 4, 0.7])
        cases += [
            case(channels, x, *several, **form),
            case(channels + "Gradient", normal(3, 4), x, *several, gradient=False, **form),
            case(variables + "Gradient", normal(3, 4), x, LOW, HIGH, gradient=False, **form),
            case(args + "Gradient", normal(3, 4), x, gradient=False, **form),
        ]
    zero, four = np.float32(0), np.zeros(4, np.float32)
    return cases + [
        case(variables, x, zero, zero, label="empty range"),
        case(channels, x, four, four, label="empty range"),
        case(channels, np.float32([0.3, -8, 2.3, 0]), *several, label="vector"),
        case(channels, normal(2, 3, 2, 4), *several),
        case(args, normal(0, 3)),
        case(variables, normal(0, 3), LOW, HIGH),
        case(args, x, min=2.0, max=1.0, label="turned round", error=INVALID),
        case(args, x, num_bits=1, label="bits", error=INVALID),
        case(channels, x, four[:3], four[:3], label="channels", error=INVALID),
    ]


def rounding() -> list:
    """Quantised and back in one op: signed, unsigned, of few bits, both roundings, narrow, by slices."""
    x, floats = uniform(-1.5, 2, (3, 4)), "float32 float64"
    low, high = literal(-1.25, "T"), literal(1.5, "T")
    given = {"range_given": True}
    cases = []
    for version in ("V2", "V4"):
        op = f"QuantizeAndDequantize{version}"
        for form in (
            {},
            {"num_bits": 4},
            {"signed_input": False},
            {"round_mode": "HALF_UP"},
            {"narrow_range": True},
        ):
            cases += [
                case(op, x, low, high, dtypes=floats, **form),
                case(op, x, low, high, dtypes=floats, **form, **given),
            ]
        several = literal([-1, -2, -0.25, -0.5], "T"), literal([1, 0.5, 1, 3], "T")
        cases += [
            case(op, x, *several, axis=1),
            case(op, literal(np.zeros(3), "T"), low, high, label="zeros"),
            case(op, x, high, low, label="turned round", error=INVALID, **given),
        ]
    third, bits = "QuantizeAndDequantizeV3", np.int32(5)
    return cases + [
        case(third, x, low, high, bits, dtypes=floats),
        case(third, x, low, high, bits, range_given=False, signed_input=False),
        case(third, x, low, high, np.int32(70), label="bits", error=INVALID),
        case("QuantizeAndDequantizeV4Grad", normal(3, 4), x, low, high, dtypes=floats, gradient=False),
        case("QuantizeAndDequantizeV4Grad", normal(3, 4), x, *several, axis=1, gradient=False),
    ]


CASES = [*conversions(), *fake_quantisation(), *rounding()]
