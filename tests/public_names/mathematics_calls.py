"""Calls of the element-wise functions of `tf`: arithmetic, comparisons, casts, special ones, clipping."""

from class_calls import ClassCalls

VALUES = """
u = tf.constant([0.1, 0.5, 0.9])
r = tf.constant([[-2.5, -0.5, 0.0], [0.5, 1.5, 7.25]])
s = tf.constant([2.0, -3.0, 0.5])
p = tf.constant([1.5, 2.0, 10.0])
q = tf.constant([0.5, 3.0, 4.25])
odd = tf.constant([1.0, float('nan'), float('inf'), float('-inf')])
c = tf.constant([1 + 2j, -3 + 0.5j], tf.complex64)
i = tf.constant([-7, 7, 8, -8])
j = tf.constant([2, -2, 3, 3])
yes = tf.constant([True, True, False, False])
no = tf.constant([True, False, True, False])
"""
UNARY = {
    "abs": "[tf.abs(r, 'a'), tf.abs(c), tf.abs(i)]",
    "acos": "tf.acos(u, 'a')",
    "acosh": "tf.acosh(p, 'a')",
    "angle": "tf.angle(c, 'a')",
    "asin": "tf.asin(u, 'a')",
    "asinh": "tf.asinh(r, 'a')",
    "atan": "tf.atan(r, 'a')",
    "atanh": "tf.atanh(u, 'a')",
    "ceil": "tf.ceil(r, 'a')",
    "conj": "[tf.conj(c, 'a'), tf.conj(r)]",
    "cos": "[tf.cos(r, 'a'), tf.cos(c)]",
    "cosh": "tf.cosh(r, 'a')",
    "digamma": "tf.digamma(p, 'a')",
    "erf": "tf.erf(r, 'a')",
    "erfc": "tf.erfc(r, 'a')",
    "exp": "[tf.exp(r, 'a'), tf.exp(c)]",
    "expm1": "tf.expm1(r, 'a')",
    "floor": "tf.floor(r, 'a')",
    "imag": "[tf.imag(c, 'a').op.name, tf.imag(c)]",
    "is_finite": "tf.is_finite(odd, 'a')",
    "is_inf": "tf.is_inf(odd, 'a')",
    "is_nan": "tf.is_nan(odd, 'a')",
    "lgamma": "tf.lgamma(p, 'a')",
    "log": "[tf.log(p, 'a'), tf.log(s), tf.log(c)]",
    "log1p": "tf.log1p(p, 'a')",
    "log_sigmoid": "tf.log_sigmoid(r, 'a')",
    "logical_not": "tf.logical_not(yes, 'a')",
    "negative": "[tf.negative(r, 'a'), tf.negative(i)]",
    "real": "[tf.real(c, 'a'), tf.real(r)]",
    "reciprocal": "tf.reciprocal(s, 'a')",
    "rint": "tf.rint(r, 'a')",
    "round": "[tf.round(r, 'a'), tf.round(i)]",
    "rsqrt": "tf.rsqrt(p, 'a')",
    "sigmoid": "tf.sigmoid(r, 'a')",
    "sign": "[tf.sign(r, 'a'), tf.sign(i), tf.sign(c)]",
    "sin": "tf.sin(r, 'a')",
    "sinh": "tf.sinh(r, 'a')",
    "sqrt": "[tf.sqrt(p, 'a'), tf.sqrt(s)]",
    "square": "[tf.square(r, 'a'), tf.square(i)]",
    "tan": "tf.tan(r, 'a')",
    "tanh": "tf.tanh(r, 'a')",
}
BINARY = {
    "add": "[tf.add(r, s, 'a'), tf.add(tf.constant(['a', 'b']), 'c')]",
    "atan2": "tf.atan2(r, s, 'a')",
    "betainc": "tf.betainc(p, q, u, 'a')",
    "complex": "[tf.complex(s, u, 'a'), tf.complex(np.float64([1]), np.float64([2])).dtype]",
    "div": "[tf.div(i, j, 'a'), tf.div(r, s)]",
    "divide": "[tf.divide(i, j, 'a'), tf.divide(r, s)]",
    "equal": "[tf.equal(r, s, 'a'), tf.equal(tf.constant(['a', 'b']), 'b'), tf.equal(odd, odd)]",
    "floor_div": "[tf.floor_div(i, j, 'a'), tf.floor_div(r, s)]",
    "floordiv": "[tf.floordiv(i, j, 'a'), tf.floordiv(r, s)]",
    "floormod": "[tf.floormod(i, j, 'a'), tf.floormod(r, s)]",
    "greater": "tf.greater(r, tf.zeros([3]), 'a')",
    "greater_equal": "tf.greater_equal(r, tf.zeros([3]), 'a')",
    "igamma": "tf.igamma(p, q, 'a')",
    "igammac": "tf.igammac(p, q, 'a')",
    "less": "tf.less(r, tf.zeros([3]), 'a')",
    "less_equal": "tf.less_equal(r, tf.zeros([3]), 'a')",
    "logical_and": "tf.logical_and(yes, no, 'a')",
    "logical_or": "tf.logical_or(yes, no, 'a')",
    "logical_xor": "[tf.logical_xor(yes, no, 'a'), tf.logical_xor(yes, no).op.name]",
    "maximum": "[tf.maximum(r, s, 'a'), tf.maximum(i, j)]",
    "minimum": "[tf.minimum(r, s, 'a'), tf.minimum(i, j)]",
    "mod": "[tf.mod(i, j, 'a'), tf.mod(r, s)]",
    "multiply": "[tf.multiply(r, s, 'a'), tf.multiply(c, c)]",
    "not_equal": "[tf.not_equal(r, s, 'a'), tf.not_equal(odd, odd)]",
    "polygamma": "tf.polygamma(tf.constant([1.0, 2.0, 3.0]), p, 'a')",
    "pow": "[tf.pow(p, s, 'a'), tf.pow(i, [2, 3, 0, 1])]",
    "realdiv": "tf.realdiv(r, s, 'a')",
    "scalar_mul": "[tf.scalar_mul(2.0, r), tf.scalar_mul(3, tf.IndexedSlices(i, j)).values]",
    "squared_difference": "[tf.squared_difference(r, s, 'a'), tf.squared_difference(i, j)]",
    "subtract": "[tf.subtract(r, s, 'a'), tf.subtract(i, j)]",
    "truediv": "[tf.truediv(i, j, 'a'), tf.truediv(r, s)]",
    "truncatediv": "tf.truncatediv(i, j, 'a')",
    "truncatemod": "[tf.truncatemod(i, j, 'a'), tf.truncatemod(r, s)]",
    "zeta": "tf.zeta(p, q, 'a')",
}
CASTS = {
    "bitcast": "[tf.bitcast(tf.constant([1.0, -2.0]), tf.int32, 'a'), tf.bitcast(i, tf.uint8)[0]]",
    "cast": "[tf.cast(r, tf.int32, 'a'), tf.cast(i, tf.bool), tf.cast(c, tf.float32), tf.cast(i, tf.uint8)]",
    "saturate_cast": "[tf.saturate_cast([-5.0, 300.0, 7.9], tf.uint8, 'a'), tf.saturate_cast(i, tf.int8)]",
    "to_bfloat16": "[tf.cast(tf.to_bfloat16(r, 'a'), tf.float32), tf.to_bfloat16(r).dtype]",
    "to_double": "tf.to_double(i, 'a')",
    "to_float": "tf.to_float(i, 'a')",
    "to_int32": "tf.to_int32(r, 'a')",
    "to_int64": "tf.to_int64(r, 'a')",
}
NORMS = {
    "clip_by_average_norm": "tf.clip_by_average_norm(r, 0.5, 'a')",
    "clip_by_global_norm": (
        "[list(tf.clip_by_global_norm([r, None, s], 2.0, None, 'a')), tf.clip_by_global_norm([s], 1.0,"
        " p[2])[0]]"
    ),
    "clip_by_norm": "[tf.clip_by_norm(r, 2.0, None, 'a'), tf.clip_by_norm(r, 2.0, [1])]",
    "clip_by_value": "[tf.clip_by_value(r, -1.0, 1.0, 'a'), tf.clip_by_value(i, -5, 5)]",
    "global_norm": "tf.global_norm([r, None, tf.IndexedSlices(s, j)], 'a')",
    "lbeta": "[tf.lbeta(tf.stack([p, q]), 'a'), tf.lbeta(p[:0])]",
    "norm": (
        "[tf.norm(r, 1, 1, True, 'a'), tf.norm(r), tf.norm(r, np.inf, [0, 1]), tf.norm(c), tf.norm(r, 3, 0)]"
    ),
    "add_n": "[tf.add_n([i, j, i], 'a'), tf.add_n([r])]",
    "accumulate_n": "tf.accumulate_n([i, j, i], [4], tf.int32, 'a')",
    "check_numerics": "[tf.check_numerics(r, 'none here', 'a'), tf.check_numerics(odd, 'some here')]",
    "verify_tensor_all_finite": "tf.verify_tensor_all_finite(r, 'none here', 'a')",
    "is_non_decreasing": "[tf.is_non_decreasing(i, 'a'), tf.is_non_decreasing([1, 1, 2])]",
    "is_strictly_increasing": "[tf.is_strictly_increasing(i, 'a'), tf.is_strictly_increasing([1, 1, 2])]",
}
QUANTISED = """
v = tf.constant([[-7.0, -1.3, 0.2], [2.6, 4.9, 9.0]])
g = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
low = tf.constant([-6.0, -1.0, 0.0])
high = tf.constant([6.0, 1.0, 8.0])
"""
FAKE = {
    "fake_quant_with_min_max_args": "tf.fake_quant_with_min_max_args(v, -2, 5, 4, True, 'a')",
    "fake_quant_with_min_max_args_gradient": (
        "tf.fake_quant_with_min_max_args_gradient(g, v, -2, 5, 4, True, 'a')"
    ),
    "fake_quant_with_min_max_vars": "tf.fake_quant_with_min_max_vars(v, -2.0, 5.0, 4, True, 'a')",
    "fake_quant_with_min_max_vars_gradient": (
        "list(tf.fake_quant_with_min_max_vars_gradient(g, v, -2.0, 5.0, 4, True, 'a'))"
    ),
    "fake_quant_with_min_max_vars_per_channel": (
        "tf.fake_quant_with_min_max_vars_per_channel(v, low, high, 4, True, 'a')"
    ),
    "fake_quant_with_min_max_vars_per_channel_gradient": (
        "list(tf.fake_quant_with_min_max_vars_per_channel_gradient(g, v, low, high, 4, True, 'a'))"
    ),
    "quantize_v2": (
        "[tf.cast(part, tf.float32) for part in tf.quantize_v2(v, -8.0, 8.0, tf.quint8, 'MIN_FIRST', 'a')]"
    ),
    "dequantize": (
        "[tf.dequantize(tf.cast(tf.constant([[0, 100, 255]]), tf.quint8), -8.0, 8.0, 'MIN_FIRST', 'a')]"
    ),
    "quantized_concat": (
        "[tf.cast(part, tf.float32) for part in tf.quantized_concat("
        "1, [tf.cast(tf.constant([[1, 200]]), tf.quint8)] * 2, [0.0, 0.0], [1.0, 2.0], 'a')]"
    ),
}
TABLES = [
    ClassCalls("tf", VALUES, {**UNARY, **BINARY, **CASTS, **NORMS}),
    ClassCalls("tf", QUANTISED, FAKE),
]
