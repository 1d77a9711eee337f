"""`flowstone.math`: mathematics by element, reductions and segments."""

from flowstone.framework.names.late_names import late_names as _late_names
from flowstone.ops.arrays.rearranging import invert_permutation
from flowstone.ops.control.checks import is_non_decreasing, is_strictly_increasing
from flowstone.ops.networks.activations import softplus, softsign
from flowstone.ops.networks.neural_net import l2_normalize, zero_fraction
from flowstone.ops.networks.softmax import log_softmax, softmax
from flowstone.ops.numbers.accumulations import cumprod, cumsum, cumulative_logsumexp
from flowstone.ops.numbers.arithmetic import (
    abs,
    add,
    maximum,
    minimum,
    multiply,
    negative,
    pow,
    scalar_mul,
    sign,
    square,
    squared_difference,
    subtract,
)
from flowstone.ops.numbers.comparisons import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
)
from flowstone.ops.numbers.complex_numbers import angle, conj, imag, real
from flowstone.ops.numbers.division import div_no_nan as divide_no_nan
from flowstone.ops.numbers.division import divide, floordiv, floormod, mod, truediv
from flowstone.ops.numbers.extreme_positions import argmax, argmin
from flowstone.ops.numbers.functions import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    cos,
    cosh,
    digamma,
    erf,
    erfc,
    exp,
    expm1,
    floor,
    is_finite,
    is_inf,
    is_nan,
    lgamma,
    log,
    log1p,
    log_sigmoid,
    reciprocal,
    rint,
    round,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)
from flowstone.ops.numbers.ranking import in_top_k, top_k
from flowstone.ops.numbers.reductions import (
    count_nonzero,
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from flowstone.ops.numbers.segment_reductions import (
    segment_max,
    segment_mean,
    segment_min,
    segment_prod,
    segment_sum,
    unsorted_segment_max,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sum,
)
from flowstone.ops.numbers.special_functions import atan2, betainc, igamma, igammac, lbeta, polygamma, zeta
from flowstone.ops.numbers.sums import accumulate_n, add_n
from flowstone.ops.sparse.sparse_segment_reductions import bincount

__getattr__, __dir__ = _late_names(
    globals(),
    {
        "flowstone": "special",
        "flowstone.layers.confusion_matrix": "confusion_matrix",
        "flowstone.ops.numbers.approximate_ranking": "approx_max_k approx_min_k",
        "flowstone.ops.numbers.segment_means": "unsorted_segment_mean unsorted_segment_sqrt_n",
        "flowstone.ops.numbers.special_binary": "multiply_no_nan nextafter reciprocal_no_nan xdivy"
        " xlog1py xlogy",
        "flowstone.ops.numbers.special_unary": "bessel_i0 bessel_i0e bessel_i1 bessel_i1e erfcinv"
        " erfinv ndtri",
        "flowstone.ops.numbers.spreads": "polyval reduce_euclidean_norm reduce_std reduce_variance",
        "flowstone.ops.randomness.sobol": "sobol_sample",
    },
)
