"""`flowstone.math.special`: Bessel functions, and functions that are integrals."""

from flowstone.ops.numbers.bessel_functions import (
    bessel_i0,
    bessel_i0e,
    bessel_i1,
    bessel_i1e,
    bessel_j0,
    bessel_j1,
    bessel_k0,
    bessel_k0e,
    bessel_k1,
    bessel_k1e,
    bessel_y0,
    bessel_y1,
)
from flowstone.ops.numbers.special_integrals import dawsn, expint, fresnel_cos, fresnel_sin, spence
