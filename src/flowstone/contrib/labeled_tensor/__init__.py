"""`tf.contrib.labeled_tensor`: tensors whose axes have names, and operations that find axes by them."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.labeled_tensor.batching": "batch shuffle_batch",
        "flowstone.contrib.labeled_tensor.core": "Axes Axis AxisOrderError LabeledTensor abs=abs_function"
        " acos add align as_axis asin atan axis_order_scope ceil check_axis_order convert_to_labeled_tensor"
        " cos define_binary_op define_unary_op digamma div equal erf erfc exp expand_dims floor greater"
        " greater_equal identity igamma igammac impose_axis_order less less_equal lgamma log logical_and"
        " logical_not logical_or logical_xor maximum minimum mod mul neg not_equal polygamma"
        " pow=pow_function reciprocal round=round_function rsqrt sigmoid sign sin slice=slice_function sqrt"
        " square squared_difference sub tan tanh transpose zeta",
        "flowstone.contrib.labeled_tensor.io_ops": "FixedLenFeature parse_example parse_single_example"
        " placeholder",
        "flowstone.contrib.labeled_tensor.ops": "boolean_mask cast concat constant matmul ones_like pack"
        " pad random_crop rename_axis reshape select squeeze tile unpack verify_tensor_all_finite where"
        " zeros_like",
        "flowstone.contrib.labeled_tensor.reductions": "ReduceAxes ReduceAxis define_reduce_op foldl map_fn"
        " reduce_all reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum",
        "flowstone.contrib.labeled_tensor.sugar": "ReshapeCoder",
    },
    "nn",
)
