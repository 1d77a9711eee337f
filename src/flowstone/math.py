"""`flowstone.math`: mathematics by element, reductions and segments."""

from flowstone.ops.accumulations import cumprod, cumsum
from flowstone.ops.activations import softplus, softsign
from flowstone.ops.arithmetic import (
    abs,
    accumulate_n,
    add,
    add_n,
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
from flowstone.ops.checks import is_non_decreasing, is_strictly_increasing
from flowstone.ops.comparisons import (
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
from flowstone.ops.complex_numbers import angle, conj, imag, real
from flowstone.ops.division import div_no_nan as divide_no_nan
from flowstone.ops.division import divide, floordiv, floormod, mod, truediv
from flowstone.ops.extreme_positions import argmax, argmin
from flowstone.ops.functions import (
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
from flowstone.ops.neural_net import l2_normalize, zero_fraction
from flowstone.ops.ranking import in_top_k, top_k
from flowstone.ops.rearranging import invert_permutation
from flowstone.ops.reductions import (
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
from flowstone.ops.segment_reductions import (
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
from flowstone.ops.softmax import log_softmax, softmax
from flowstone.ops.sparse_segment_reductions import bincount
from flowstone.ops.special_functions import atan2, betainc, igamma, igammac, lbeta, polygamma, zeta
