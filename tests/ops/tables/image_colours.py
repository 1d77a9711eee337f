"""Cases of colours: to hue, saturation and value and back, and adjusted."""

from collections.abc import Iterator

import numpy as np

from op_cases import case, literal, normal, uniform

INVALID = "InvalidArgumentError"
SINGLE = {"rtol": 1e-5, "atol": 1e-6}
EVERY = [[r, g, b] for r in (0.0, 0.5, 1.0) for g in (0.0, 0.5, 1.0) for b in (0.0, 0.5, 1.0)]
STRANGE = [[-0.1, 0.5, 0.2], [-0.5, -0.5, -0.2], [3.0, 2.0, 1.5], [0.9, -0.5, -0.6], [0.0, -0.1, -0.5]]


def conversions() -> Iterator:
    """Every order of the channels, equal ones, and what is no colour."""
    for op in ("RGBToHSV", "HSVToRGB"):
        yield case(op, uniform(0, 1, (3, 4, 3)), dtypes="float32 float64 half bfloat16")
        yield case(op, [*EVERY, *STRANGE], dtypes="float32 float64", **SINGLE)
        yield case(op, uniform(0, 1, (3,)))
        yield case(op, uniform(0, 1, (0, 4, 3)))
        yield case(op, uniform(0, 1, (2, 4)), error="FailedPreconditionError")
        yield case(op, 0.5, error=INVALID)
    yield case("HSVToRGB", [[1.0, 1, 1], [1.5, 0.5, 1], [-0.2, 1, 1], [0.3, 2, 1], [0.3, 0.5, -1]])


def adjustments() -> Iterator:
    """Stronger, weaker and turned around; images of several ranks."""
    for op, strengths in (
        ("AdjustContrastv2", (0.0, 0.3, 2.5, -1.0)),
        ("AdjustHue", (0.0, 0.3, -0.8, 2.2)),
        ("AdjustSaturation", (0.0, 0.3, 2.5)),
    ):
        for strength in strengths:
            given = literal(strength, "float32")
            yield case(op, uniform(0, 1, (2, 3, 4, 3)), given, label=str(strength), **SINGLE)
        yield case(op, [[*EVERY, *STRANGE]], literal(0.4, "float32"), **SINGLE)
        yield case(op, uniform(0, 1, (3, 4, 3)), given, **SINGLE)
        yield case(op, uniform(0, 1, (2, 1, 3, 4, 3)), given, **SINGLE)
        yield case(op, uniform(0, 1, (0, 3, 4, 3)), given)
        yield case(op, normal(4, 3), given, error=INVALID)
        yield case(op, normal(2, 4, 3), np.ones(1, np.float32), error=INVALID)
    yield case("AdjustContrastv2", normal(2, 4, 2), given, **SINGLE)
    yield case("AdjustHue", normal(2, 4, 2), given, error=INVALID)
    yield case("AdjustSaturation", normal(2, 4, 2), given, error=INVALID)


def old_contrast() -> Iterator:
    """Contrast cut to a range."""
    op, bounds = "AdjustContrast", [literal(value, "float32") for value in (1.5, 20.0, 200.0)]
    many = "uint8 int16 int32 float32 float64 int8"
    yield case(op, uniform(0, 120, (2, 3, 4, 3)), *bounds, dtypes=many, gradient=False, rtol=1e-5)
    yield case(op, uniform(0, 255, (3, 4, 2)), *bounds, gradient=False, rtol=1e-5)
    yield case(op, uniform(0, 255, (4, 2)), *bounds, error=INVALID)
    yield case(op, uniform(0, 255, (3, 4, 2)), np.ones(2, np.float32), *bounds[1:], error=INVALID)
    yield case(op, uniform(0, 255, (3, 4, 2)), *bounds[:2], np.ones(2, np.float32), error=INVALID)


CASES = [*old_contrast(), *conversions(), *adjustments()]
