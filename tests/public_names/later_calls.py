"""Calls of functions of later TensorFlows, or whose results 1.15 lacks: the oracle is 2.21's compat.v1."""

from class_calls import ClassCalls

ORACLE = "2.21.0"

VALUES = """
x = tf.constant([[3.0, 1.0, 2.0, 9.0], [5.0, 4.0, 8.0, 7.0]])
i = tf.constant([[3, 1, 2], [5, 4, 8]])
c = tf.constant([1 + 2j, 3 - 1j], tf.complex64)
seq = tf.reshape(x, [1, 8, 1])
kernel = tf.reshape(tf.range(6.0), [3, 2, 1])
images = tf.reshape(tf.range(32.0), [1, 4, 4, 2])
square = tf.reshape(tf.range(8.0), [2, 2, 2, 1])
shown = tf.constant([1.5, float('nan'), 0.0, float('inf')])
"""

MATH = {
    "approx_max_k": "list(tf.math.approx_max_k(x, 2))",
    "confusion_matrix": "[tf.math.confusion_matrix([1, 0, 2], [1, 2, 2]),"
    " tf.math.confusion_matrix([1, 0], [1, 0], 3, tf.float32, weights=[0.5, 2.0])]",
    "polyval": "[tf.math.polyval([1.0, 2.0, 3.0], x), tf.math.polyval([], x), tf.math.polyval([x, 2.0], x),"
    " tf.gradients(tf.math.polyval([1.0, 2.0, 3.0], x), x)[0]]",
    "polyval.error": "tf.math.polyval(3.0, x)",
    "reciprocal_no_nan": "[tf.math.reciprocal_no_nan(shown), tf.math.reciprocal_no_nan(c),"
    " tf.math.reciprocal_no_nan(x).op.name, tf.gradients(tf.math.reciprocal_no_nan(x), x)[0]]",
    "reciprocal_no_nan.error": "tf.math.reciprocal_no_nan(i)",
    "reduce_euclidean_norm": "[tf.math.reduce_euclidean_norm(x), tf.math.reduce_euclidean_norm(x, 1, True),"
    " tf.math.reduce_euclidean_norm(i, [0]), tf.math.reduce_euclidean_norm(x, 0).op.name]",
    "reduce_std": "[tf.math.reduce_std(x), tf.math.reduce_std(x, axis=0, keepdims=True),"
    " tf.math.reduce_std(c),"
    " tf.gradients(tf.math.reduce_std(x), x)[0]]",
    "reduce_std.error": "tf.math.reduce_std(i)",
    "reduce_variance": "[tf.math.reduce_variance(x), tf.math.reduce_variance(x, 1),"
    " tf.math.reduce_variance(c),"
    " tf.math.reduce_variance(x, [0, 1], True), tf.gradients(tf.math.reduce_variance(x), x)[0]]",
    "unsorted_segment_mean": "[tf.math.unsorted_segment_mean(x, [1, -1], 3),"
    " tf.math.unsorted_segment_mean(x, [[0, 1, 1, 0], [0, 0, 0, 3]], 4),"
    " tf.gradients(tf.math.unsorted_segment_mean(x, [1, 1], 2), x)[0]]",
    "unsorted_segment_sqrt_n": "[tf.math.unsorted_segment_sqrt_n(x, [1, 1], 3),"
    " tf.math.unsorted_segment_sqrt_n(x, [[0, 1, 1, 0], [0, 0, 0, 3]], 4),"
    " tf.gradients(tf.math.unsorted_segment_sqrt_n(x, [1, 1], 2), x)[0]]",
    "xdivy": "[tf.math.xdivy(shown, 0.0), tf.math.xdivy([0.0, 2.0], [0.0, 4.0], 'q')]",
    "xlogy": "[tf.math.xlogy(shown, 0.0), tf.math.xlogy([0.0, 2.0], [0.0, 4.0], 'q')]",
}
NN = {
    "approx_max_k": "list(tf.nn.approx_max_k(x, 1))",
    "avg_pool1d": "[tf.nn.avg_pool1d(seq, 2, 2, 'VALID'), tf.nn.avg_pool1d(seq, [3], [2], 'SAME'),"
    " tf.nn.avg_pool1d(seq, [1, 2, 1], [1, 3, 1], 'SAME', name='p').op.name]",
    "avg_pool_v2": "[tf.nn.avg_pool_v2(seq, 2, 2, 'VALID'), tf.nn.avg_pool_v2(images, 2, 2, 'SAME'),"
    " tf.nn.avg_pool_v2(images[:, None], 2, 1, 'SAME').shape]",
    "avg_pool_v2.error": "tf.nn.avg_pool_v2(x, 2, 2, 'VALID')",
    "collapse_repeated": "list(tf.nn.collapse_repeated([[1, 1, 2, 2, 3], [4, 5, 5, 5, 6]], [5, 3]))"
    " + list(tf.nn.collapse_repeated([[7, 7]], [2]))",
    "compute_average_loss": "[tf.nn.compute_average_loss([1.0, 2.0, 3.0]),"
    " tf.nn.compute_average_loss([1.0, 2.0, 3.0], [0.5, 0.5, 1.0], 6)]",
    "compute_average_loss.rank": "tf.nn.compute_average_loss(1.0)",
    "compute_average_loss.size": "tf.nn.compute_average_loss([1.0], global_batch_size=2.0)",
    "conv1d_transpose": "[tf.nn.conv1d_transpose(seq, kernel, [1, 16, 2], 2),"
    " tf.nn.conv1d_transpose(seq, kernel, [1, 10, 2], 1, 'VALID', name='t').op.name]",
    "conv_transpose": "[tf.nn.conv_transpose(seq, kernel, [1, 16, 2], 2),"
    " tf.nn.conv_transpose(images, tf.ones([2, 2, 1, 2]), [1, 8, 8, 1], 2),"
    " tf.nn.conv_transpose(images[:, :, None], tf.ones([2, 2, 2, 1, 2]), [1, 8, 2, 8, 1], 2).shape]",
    "max_pool1d": "[tf.nn.max_pool1d(seq, 2, 2, 'VALID'), tf.nn.max_pool1d(seq, [3], [2], 'SAME'),"
    " tf.nn.max_pool1d(seq, 2, 2, 'VALID', name='p').op.name]",
    "max_pool_v2": "[tf.nn.max_pool_v2(seq, 2, 2, 'VALID'), tf.nn.max_pool_v2(images, 2, 2, 'SAME'),"
    " tf.nn.max_pool_v2(images[:, None], 2, 1, 'SAME').shape]",
    "scale_regularization_loss": "tf.nn.scale_regularization_loss([1.0, 2.0])",
}
OF_TF = {
    "conv": "tf.conv(images, square, [1, 1, 1, 1], 'SAME', explicit_paddings=[], dilations=[])",
    "decode_compressed": "tf.decode_compressed([b'abc'], '')",
    "extract_volume_patches": "tf.extract_volume_patches("
    "images[:, None], [1, 1, 2, 2, 1], [1, 1, 2, 2, 1], 'VALID')",
    "get_logger": "tf.get_logger().name",
    "grad_pass_through": "[tf.grad_pass_through(tf.floor)(shown[:1]),"
    " tf.gradients(3 * tf.grad_pass_through(tf.floor)(x), x)[0]]",
    "is_symbolic_tensor": "[tf.is_symbolic_tensor(each) for each in (x, 3, tf.SparseTensor([[0]], [1],"
    " [1]))]",
    "no_gradient": "tf.no_gradient is tf.NotDifferentiable",
    "nondifferentiable_batch_function": "tf.nondifferentiable_batch_function(1, 10, 0)(lambda a: a * 2)(x)",
    "py_function": "[tf.py_function(lambda a: a.numpy() * 2, [x], tf.float32),"
    " tf.py_function(lambda a, b: [a + b, a], [x, x], [tf.float32, tf.float32]),"
    " tf.py_function(lambda a: len(a.numpy()), [tf.constant('abc')], tf.int32)]",
    "recompute_grad": "[tf.recompute_grad(lambda a: tf.sin(a) * a)(x),"
    " tf.gradients(tf.recompute_grad(lambda a, b: tf.sin(a) * b)(x, x), x)[0]]",
    "repeat": "[tf.repeat([1, 2, 3], 2), tf.repeat([[1, 2], [3, 4]], [1, 2], axis=0), tf.repeat(x, 2,"
    " axis=-1),"
    " tf.repeat(7, 3), tf.repeat([1, 2, 3], [1, 0, 2]), tf.repeat([1, 2], [0, 0]),"
    " tf.gradients(tf.repeat(1.0 * x, [1, 2], axis=0), x)[0], tf.repeat(x, 3, 1).shape]",
    "repeat.sizes": "tf.repeat([1, 2, 3], [1, 2])",
    "repeat.rank": "tf.repeat([1, 2, 3], [[1, 2, 3]])",
    "repeat.axis": "tf.repeat([1, 2, 3], 2, axis=3)",
    "switch_case": "[tf.switch_case(tf.constant(n), [lambda: 1, lambda: 2, lambda: 3]) for n in (-1, 0,"
    " 1, 3)]"
    " + [tf.switch_case(tf.constant(n), {1: lambda: 1, 0: lambda: 2}, lambda: 9) for n in (0, 1, 2)]"
    " + [tf.switch_case(tf.constant(1), [(1, lambda: (1, 2.0)), (0, lambda: (3, 4.0))])]",
    "switch_case.float": "tf.switch_case(tf.constant(1.0), [lambda: 1])",
    "switch_case.int": "tf.switch_case(1, [lambda: 1])",
    "switch_case.none": "tf.switch_case(tf.constant(0), [])",
    "switch_case.number": "tf.switch_case(tf.constant(0), 3)",
    "switch_case.gap": "tf.switch_case(tf.constant(0), {5: lambda: 1, 2: lambda: 2})",
    "switch_case.twice": "tf.switch_case(tf.constant(0), [(0, lambda: 1), (0, lambda: 2)])",
    "switch_case.text": "tf.switch_case(tf.constant(0), {'a': lambda: 1})",
    "switch_case.value": "tf.switch_case(tf.constant(0), [1])",
    "to_complex128": "[tf.to_complex128(x), tf.to_complex128(x, 'd').op.name]",
    "to_complex64": "[tf.to_complex64(i), tf.to_complex64(x).op.name]",
    "unsorted_segment_mean": "tf.unsorted_segment_mean(x, [0, 0], 1)",
    "unsorted_segment_sqrt_n": "tf.unsorted_segment_sqrt_n(x, [0, 0], 1)",
    "vectorized_map": "[tf.vectorized_map(lambda a: tf.reduce_sum(a * a), x),"
    " tf.vectorized_map(lambda a: {'s': a[0] + a[1], 'd': a[0] - 1.0}, (x, x[:1])),"
    " tf.vectorized_map(lambda a: tf.cast(a > 2, tf.int32), tf.placeholder_with_default(x, [None, None])),"
    " tf.vectorized_map(lambda a: a * 2, tf.zeros([0, 3])).shape]",
}
DEBUGGING = {
    "assert_shapes": "[tf.debugging.assert_shapes(pairs) is None for pairs in ("
    " [(x, ('N', 4)), (i, ('N', 'Q'))], {x: '24'}, [(x, (None, 4)), (i, ('*', 3))], [(tf.constant(3.0),"
    " ())])]",
    "assert_shapes.size": "tf.debugging.assert_shapes([(x, (3, 4))])",
    "assert_shapes.name": "tf.debugging.assert_shapes([(x, ('N', 'Q')), (i, ('N', 'Q'))])",
    "assert_shapes.rank": "tf.debugging.assert_shapes([(x, (..., 'N', 3, 4))])",
    "assert_shapes.order": "tf.debugging.assert_shapes([(x, ('N', ...))])",
    "assert_shapes.step": "run(tf.debugging.assert_shapes("
    "[(tf.placeholder_with_default(x, [None, None]), ('N', 'Q')), (tf.zeros([5]), ('Q',))]))",
    "disable_check_numerics": "tf.debugging.disable_check_numerics()",
    "disable_traceback_filtering": "[tf.debugging.disable_traceback_filtering(),"
    " tf.debugging.is_traceback_filtering_enabled()]",
    "enable_traceback_filtering": "tf.debugging.enable_traceback_filtering()",
    "is_traceback_filtering_enabled": "tf.debugging.is_traceback_filtering_enabled()",
    "get_log_device_placement": "tf.debugging.get_log_device_placement()",
}
TABLES = [
    ClassCalls("tf.math", VALUES, MATH, ORACLE),
    ClassCalls("tf.nn", VALUES, NN, ORACLE),
    ClassCalls("tf", VALUES, OF_TF, ORACLE),
    ClassCalls("tf.debugging", VALUES, DEBUGGING, ORACLE),
]
