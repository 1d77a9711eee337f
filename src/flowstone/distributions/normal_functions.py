"""The normal distribution function, its logarithm and its inverse, and the Laplace one's logarithm.

`log_ndtr` takes -ndtr(-x) far above zero and an asymptotic series far below, so that neither loses digits.
`ndtri` is the rational approximation of the Cephes library (Moshier 1984): one fraction around 1/2, two in
z = sqrt(-2 log p) for the tails. All are differentiable; branches that are not taken are kept finite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import constant, fill, zeros_like
from flowstone.ops.arrays.shapes import shape

_LOG_2PI = math.log(2 * math.pi)
# Above the first bound -ndtr(-x) is the logarithm; below the second the series is.
_BOUNDS = {dtypes.float32: (5.0, -10.0), dtypes.float64: (8.0, -20.0)}

# Numerator and denominator, highest power first.
_CENTRE = (
    (-5.99633501014107895267e1, 9.80010754185999661536e1, -5.66762857469070293439e1,
     1.39312609387279679503e1, -1.23916583867381258016e0),
    (1.0, 1.95448858338141759834e0, 4.67627912898881538453e0, 8.63602421390890590575e1,
     -2.25462687854119370527e2, 2.00260212380060660359e2, -8.20372256168333339912e1,
     1.59056225126211695515e1, -1.18331621121330003142e0),
)  # fmt: skip
_NEAR_TAIL = (
    (4.05544892305962419923e0, 3.15251094599893866154e1, 5.71628192246421288162e1,
     4.40805073893200834700e1, 1.46849561928858024014e1, 2.18663306850790267539e0,
     -1.40256079171354495875e-1, -3.50424626827848203418e-2, -8.57456785154685413611e-4),
    (1.0, 1.57799883256466749731e1, 4.53907635128879210584e1, 4.13172038254672030440e1,
     1.50425385692907503408e1, 2.50464946208309415979e0, -1.42182922854787788574e-1,
     -3.80806407691578277194e-2, -9.33259480895457427372e-4),
)  # fmt: skip
_FAR_TAIL = (
    (3.23774891776946035970e0, 6.91522889068984211695e0, 3.93881025292474443415e0,
     1.33303460815807542389e0, 2.01485389549179081538e-1, 1.23716634817820021358e-2,
     3.01581553508235416007e-4, 2.65806974686737550832e-6, 6.23974539184983293730e-9),
    (1.0, 6.02427039364742014255e0, 3.67983563856160859403e0, 1.37702099489081330271e0,
     2.16236993594496635890e-1, 1.34204006088543189037e-2, 3.28014464682127739104e-4,
     2.89247864745380683936e-6, 6.79019408009981274425e-9),
)  # fmt: skip


def ndtr(x: Tensor) -> Tensor:
    """The standard normal distribution function of float32 or float64."""
    with get_default_graph().name_scope("ndtr"):
        return _ndtr(_supported(x))


def _supported(x: Tensor) -> Tensor:
    if x.dtype.base_dtype not in _BOUNDS:
        raise TypeError(f"x.dtype={x.dtype.name} is not supported; float32 and float64 are.")
    return x


def _ndtr(x: Tensor) -> Tensor:
    half_sqrt_2 = constant(0.5 * math.sqrt(2.0), x.dtype, name="half_sqrt_2")
    w = x * half_sqrt_2
    size = F.Abs(w)
    central = F.Less(size, half_sqrt_2)
    outer = F.SelectV2(w > 0.0, 2.0 - F.Erfc(size), F.Erfc(size))
    return 0.5 * F.SelectV2(central, 1.0 + F.Erf(w), outer)


def log_ndtr(x: Tensor) -> Tensor:
    """The logarithm of `ndtr`, accurate in both tails."""
    with get_default_graph().name_scope("log_ndtr"):
        upper, lower = _BOUNDS[_supported(x).dtype.base_dtype]
        high = F.Neg(_ndtr(F.Neg(x)))
        middle = F.Log(_ndtr(F.Maximum(x, lower)))
        low = _log_ndtr_far_below(F.Minimum(x, lower))
        return F.SelectV2(x > upper, high, F.SelectV2(x > lower, middle, low))


def _log_ndtr_far_below(x: Tensor) -> Tensor:
    """-x²/2 - log(-x √2π) + log(1 - 1/x² + 3/x⁴ - 15/x⁶)"""
    square = F.Square(x)
    fourth = square * square
    series = 1.0 + 3.0 / fourth - (1.0 / square + 15.0 / (fourth * square))
    return -0.5 * square - F.Log(F.Neg(x)) - 0.5 * _LOG_2PI + F.Log(series)


def _polynomial(coefficients: Sequence[float], x: Tensor) -> Tensor:
    result = coefficients[0] * x
    for coefficient in coefficients[1:-1]:
        result = (result + coefficient) * x
    return result + coefficients[-1]


def _fraction(coefficients: tuple[Sequence[float], Sequence[float]], x: Tensor) -> Tensor:
    above, below = coefficients
    return _polynomial(above, x) / _polynomial(below, x)


def ndtri(p: Tensor) -> Tensor:
    """The x with ndtr(x) = p; -inf at 0, inf at 1, NaN outside [0, 1]."""
    with get_default_graph().name_scope("ndtri"):
        _supported(p)
        limit = -math.expm1(-2.0)  # 1 - exp(-2)
        mirrored = p > limit
        low = F.SelectV2(mirrored, 1.0 - p, p)
        inside = F.SelectV2(low <= 0.0, fill(shape(p), constant(0.5, p.dtype)), low)
        centre = inside - 0.5
        square = F.Square(centre)
        middle = -math.sqrt(2 * math.pi) * (centre + centre * square * _fraction(_CENTRE, square))
        z = F.Sqrt(-2.0 * F.Log(inside))
        base = z - F.Log(z) / z
        inverse = 1.0 / z
        far = base - _fraction(_FAR_TAIL, inverse) / z
        near = base - _fraction(_NEAR_TAIL, inverse) / z
        tail = F.SelectV2(z >= 8.0, far, near)
        x = F.SelectV2(inside > math.exp(-2.0), middle, tail)
        x = F.SelectV2(mirrored, x, F.Neg(x))
        x = F.SelectV2(F.Equal(p, zeros_like(p)), constant(-math.inf, p.dtype), x)
        x = F.SelectV2(F.Equal(p, constant(1.0, p.dtype)), constant(math.inf, p.dtype), x)
        outside = F.LogicalOr(p < 0.0, p > 1.0)
        return F.SelectV2(outside, constant(math.nan, p.dtype), x)


def log_cdf_laplace(x: Tensor) -> Tensor:
    """The logarithm of the standard Laplace distribution function."""
    with get_default_graph().name_scope("log_cdf_laplace"):
        below = -math.log(2.0) + x
        above = F.Log1p(-0.5 * F.Exp(F.Neg(F.Abs(x))))
        return F.SelectV2(x < 0.0, below, above)
