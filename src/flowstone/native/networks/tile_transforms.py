"""The transforms of Winograd's algorithm for tiles of six by six, as matrices and as LLVM's text.

A convolution's outputs y[i] = sum over j of d[i + j] g[j], m of r taps, m + r = 7, are products of
polynomials of degree five. They are multiplied at six points and interpolated: ``y = A ((G g) * (B d))``, in
two dimensions by applying each matrix to rows and columns. The points are 0, infinity and plus and minus the
roots of 1/2 and 2: among small numbers these lose the fewest digits, a fifth of what 1 and 2 lose.

Source: A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks (2015); how the points decide
the error: B. Barabasz and others, Error Analysis and Improving the Accuracy of Winograd Convolution (2020).
"""

from __future__ import annotations

from typing import NamedTuple

from flowstone.native.codegen.structured import Code

__all__ = ["SIDE", "Transforms", "transform", "transforms"]

SIDE = 6
"""Elements of a tile in one direction."""

_POINTS = (0.0, 0.5**0.5, -(0.5**0.5), 2**0.5, -(2**0.5))  # and infinity
Matrix = tuple[tuple[float, ...], ...]


class Transforms(NamedTuple):
    """`data` [6, 6], `taps` [6, r] and `results` [m, 6]: B, G and A."""

    data: Matrix
    taps: Matrix
    results: Matrix


def transforms(taps: int) -> Transforms:
    """Those of filters of so many taps, for 7 - `taps` outputs."""
    outputs = SIDE + 1 - taps
    data, filters, columns = [], [], []
    for i, point in enumerate(_POINTS):
        others = [other for j, other in enumerate(_POINTS) if j != i]
        scale = 1.0
        for other in others:
            scale *= point - other
        data.append((*_product(others), 0.0))
        filters.append(tuple(point**k / scale for k in range(taps)))
        columns.append([point**k for k in range(outputs)])
    data.append(_product(list(_POINTS)))
    filters.append((*[0.0] * (taps - 1), 1.0))
    columns.append([*[0.0] * (outputs - 1), 1.0])
    results = tuple(tuple(column[k] for column in columns) for k in range(outputs))
    return Transforms(tuple(data), tuple(filters), results)


def _product(roots: list[float]) -> tuple[float, ...]:
    """The coefficients of the polynomial with these roots, the lowest first."""
    found = [1.0]
    for root in roots:
        found = [low - root * high for low, high in zip([0.0, *found], [*found, 0.0])]
    return tuple(0.0 if abs(x) < 1e-12 else x for x in found)


# ---- text


def transform(e: Code, matrix: Matrix, values: list[str]) -> list[str]:
    """The matrix applied to the rows and the columns of a square of vectors, row by row."""
    side, count = len(matrix[0]), len(matrix)
    columns = [_applied(e, matrix, values[j::side]) for j in range(side)]
    return [x for i in range(count) for x in _applied(e, matrix, [column[i] for column in columns])]


def _applied(e: Code, matrix: Matrix, values: list[str]) -> list[str]:
    """The matrix times a column of vectors. Points with two signs share their sums."""
    if len(matrix) == SIDE:
        found = [_sum(e, list(zip(matrix[0], values)))]
        for row in (matrix[1], matrix[3]):
            even, odd = (_sum(e, list(zip(row, values))[k::2]) for k in (0, 1))
            found += [e.plus(even, odd), e.minus(even, odd)]
        return [*found, _sum(e, list(zip(matrix[5], values)))]
    both = [e.plus(values[1], values[2]), e.plus(values[3], values[4])]
    apart = [e.minus(values[1], values[2]), e.minus(values[3], values[4])]
    return [
        _sum(e, [(row[0], values[0]), (row[5], values[5]), *zip(row[1::2], apart if k % 2 else both)])
        for k, row in enumerate(matrix)
    ]


def _sum(e: Code, terms: list[tuple[float, str]]) -> str:
    """The weighted sum of vectors."""
    terms = sorted([term for term in terms if term[0]], key=lambda term: abs(term[0] - 1.0) > 1e-12)
    total = ""
    for factor, x in terms:
        if abs(factor - 1.0) < 1e-12:
            total = e.plus(total, x) if total else x
        else:
            total = e.fma(x, e.number(factor), total) if total else e.times(x, e.number(factor))
    return total
