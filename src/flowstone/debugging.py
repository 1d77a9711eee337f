"""`flowstone.debugging`: checks of values, types and shapes."""

from flowstone.framework.names.late_names import late_names as _late_names
from flowstone.ops.arrays.identities import check_numerics
from flowstone.ops.arrays.identities import verify_tensor_all_finite as assert_all_finite
from flowstone.ops.control.checks import (
    assert_equal,
    assert_greater,
    assert_greater_equal,
    assert_less,
    assert_less_equal,
    assert_near,
    assert_negative,
    assert_non_negative,
    assert_non_positive,
    assert_none_equal,
    assert_positive,
    assert_rank,
    assert_rank_at_least,
    assert_rank_in,
    is_non_decreasing,
    is_strictly_increasing,
)
from flowstone.ops.control.conditionals import Assert
from flowstone.ops.control.type_checks import (
    assert_integer,
    assert_proper_iterable,
    assert_same_float_dtype,
    assert_scalar,
    assert_type,
    is_numeric_tensor,
)
from flowstone.ops.numbers.functions import is_finite, is_inf, is_nan

__getattr__, __dir__ = _late_names(
    globals(),
    {
        "flowstone.client.process_settings": "get_log_device_placement set_log_device_placement",
        "flowstone.framework.process.debugging_switches": "disable_check_numerics disable_traceback_filtering"
        " enable_traceback_filtering is_traceback_filtering_enabled",
        "flowstone.framework.names.refused_names": "enable_check_numerics",
        "flowstone.ops.control.shape_checks": "assert_shapes",
    },
)
