"""`flowstone.quantization`: numbers as small integers with a range, and how training simulates that."""

from flowstone.ops.quantization.arithmetic import quantized_concat
from flowstone.ops.quantization.conversions import dequantize, quantize
from flowstone.ops.quantization.fake_quantization import (
    fake_quant_with_min_max_args,
    fake_quant_with_min_max_args_gradient,
    fake_quant_with_min_max_vars,
    fake_quant_with_min_max_vars_gradient,
    fake_quant_with_min_max_vars_per_channel,
    fake_quant_with_min_max_vars_per_channel_gradient,
)
from flowstone.ops.quantization.rounding import quantize_and_dequantize, quantize_and_dequantize_v2
