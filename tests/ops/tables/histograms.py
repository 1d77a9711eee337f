"""Histograms of fixed bins."""

from __future__ import annotations

from op_cases import case, literal, normal, uniform

NUMBERS = "int32 int64 float32 float64"
RANGE = literal([-2, 6], "T")
EDGES = literal([-7, -2, -1, 0, 1, 2, 5, 6, 9], "T")

CASES = [
    case("HistogramFixedWidth", normal(40), RANGE, 5, dtypes=NUMBERS, gradient=False),
    case("HistogramFixedWidth", EDGES, RANGE, 8, dtypes=NUMBERS, gradient=False),
    case(
        "HistogramFixedWidth", EDGES, RANGE, 3, dtypes=NUMBERS, gradient=False, label="thirds", dtype="int64"
    ),
    case("HistogramFixedWidth", uniform(0, 1, (3, 4, 5)), [0.0, 1.0], 7, gradient=False),
    case("HistogramFixedWidth", normal(), RANGE, 1, gradient=False),
    case("HistogramFixedWidth", normal(0, 3), RANGE, 4, dtypes=NUMBERS, gradient=False),
    case("HistogramFixedWidth", literal([float("inf"), -float("inf"), 0.0]), [0.0, 5.0], 2, gradient=False),
    case("HistogramFixedWidth", literal([1.0, float("nan")]), [0.0, 5.0], 2, error="InvalidArgumentError"),
    case("HistogramFixedWidth", normal(3), [5.0, 0.0], 2, error="InvalidArgumentError", label="reversed"),
    case("HistogramFixedWidth", normal(3), [5.0, 5.0], 2, error="InvalidArgumentError", label="empty"),
    case("HistogramFixedWidth", normal(3), [0.0, float("nan")], 2, error="InvalidArgumentError", label="NaN"),
    case("HistogramFixedWidth", normal(3), [0.0, 1.0, 2.0], 2, error="InvalidArgumentError"),
    case("HistogramFixedWidth", normal(3), 1.0, 2, error="ValueError"),
    case("HistogramFixedWidth", normal(3), RANGE, 0, error="InvalidArgumentError"),
    case("HistogramFixedWidth", normal(3), RANGE, -1, error="ValueError"),
    case("HistogramFixedWidth", normal(3), RANGE, [2], error="ValueError"),
]
