"""Calls of the functions of `tf.nn` that convolve and pool."""

from class_calls import ClassCalls

VALUES = """
line = tf.reshape(tf.range(12.0), [1, 6, 2])
image = tf.reshape(tf.cos(tf.range(50.0)), [1, 5, 5, 2])
even = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
volume = tf.reshape(tf.sin(tf.range(27.0)), [1, 3, 3, 3, 1])
k1 = tf.reshape(tf.range(12.0), [3, 2, 2])
k2 = tf.reshape(tf.sin(tf.range(8.0)), [2, 2, 2, 1])
k3 = tf.reshape(tf.range(8.0), [2, 2, 2, 1, 1])
points = tf.reshape(tf.range(4.0), [1, 1, 2, 2])
mask = tf.reshape(tf.range(4.0), [2, 2, 1])
one = [1, 1, 1, 1]
two = [1, 2, 2, 1]
cubes = [1, 2, 2, 2, 1]
small = tf.bitcast(tf.cast(tf.reshape(tf.range(16) * 10, [1, 4, 4, 1]), tf.uint8), tf.quint8)
filters = tf.bitcast(tf.constant([[[[1]], [[2]]], [[[3]], [[250]]]], tf.uint8), tf.quint8)
def whole(parts, dtype):
    return [tf.bitcast(parts[0], dtype), parts[1], parts[2]]
def alone(make):
    with tf.Graph().as_default():
        return make()
"""
CONVOLUTIONS = {
    "atrous_conv2d": (
        "[tf.nn.atrous_conv2d(image, k2, 2, 'VALID', 'a'), tf.nn.atrous_conv2d(image, k2, 1, 'SAME')]"
    ),
    "atrous_conv2d_transpose": (
        "tf.nn.atrous_conv2d_transpose(image[:, :3, :3, :1], k2, [1, 5, 5, 2], 2, 'VALID', 'a')"
    ),
    "conv1d": "[tf.nn.conv1d(line, k1, 2, 'SAME', True, 'NHWC', 'a'), tf.nn.conv1d(line, k1, 1, 'VALID')]",
    "conv2d": (
        "[tf.nn.conv2d(image, k2, two, 'SAME', True, 'NHWC', name='a'), tf.nn.conv2d(image, k2, one,"
        " 'VALID')]"
    ),
    "conv2d_backprop_filter": (
        "tf.nn.conv2d_backprop_filter(image, [2, 2, 2, 1], image[:, :3, :3, :1], two, 'SAME', True,"
        " 'NHWC', name='a')"
    ),
    "conv2d_backprop_input": (
        "tf.nn.conv2d_backprop_input([1, 5, 5, 2], k2, image[:, :3, :3, :1], two, 'SAME', True, 'NHWC',"
        " name='a')"
    ),
    "conv2d_transpose": (
        "[tf.nn.conv2d_transpose(image[:, :3, :3, :1], k2, [1, 5, 5, 2], two, 'SAME', 'NHWC', 'a'),"
        " tf.nn.conv2d_transpose(image[:, :2, :2, :1], k2, tf.constant([1, 3, 3, 2]), one, padding='VALID')]"
    ),
    "conv3d": (
        "[tf.nn.conv3d(volume, k3, cubes, 'SAME', 'NDHWC', name='a'), tf.nn.conv3d(volume, k3, [1] * 5,"
        " 'VALID')]"
    ),
    "conv3d_backprop_filter_v2": (
        "tf.nn.conv3d_backprop_filter_v2(volume, [2, 2, 2, 1, 1], volume[:, :2, :2, :2], cubes, 'SAME',"
        " 'NDHWC', name='a')"
    ),
    "conv3d_transpose": (
        "tf.nn.conv3d_transpose(volume[:, :2, :2, :2], k3, [1, 3, 3, 3, 1], cubes, 'SAME', 'NDHWC', 'a')"
    ),
    "convolution": (
        "[tf.nn.convolution(image, k2, 'VALID', [1, 1], [2, 1], 'a', 'NHWC'),"
        " tf.nn.convolution(image, k2, 'SAME', strides=[2, 1]), tf.nn.convolution(volume, k3, 'VALID')]"
    ),
    "depthwise_conv2d": (
        "[tf.nn.depthwise_conv2d(image, k2, one, 'VALID', [2, 2], 'a', 'NHWC'),"
        " tf.nn.depthwise_conv2d(image, k2, two, 'SAME')]"
    ),
    "depthwise_conv2d_native": "tf.nn.depthwise_conv2d_native(image, k2, two, 'SAME', 'NHWC', name='a')",
    "depthwise_conv2d_native_backprop_filter": (
        "tf.nn.depthwise_conv2d_native_backprop_filter("
        "image, [2, 2, 2, 1], image[:, :3, :3], two, 'SAME', 'NHWC', name='a')"
    ),
    "depthwise_conv2d_native_backprop_input": (
        "tf.nn.depthwise_conv2d_native_backprop_input("
        "[1, 5, 5, 2], k2, image[:, :3, :3], two, 'SAME', 'NHWC', name='a')"
    ),
    "dilation2d": "tf.nn.dilation2d(even, mask, one, two, 'SAME', 'a')",
    "erosion2d": "tf.nn.erosion2d(even, mask, one, two, 'SAME', 'a')",
    "separable_conv2d": (
        "[tf.nn.separable_conv2d(image, k2, points, one, 'VALID', [2, 2], 'a', 'NHWC'),"
        " tf.nn.separable_conv2d(image, k2, points, two, 'SAME')]"
    ),
    "with_space_to_batch": (
        "[tf.nn.with_space_to_batch(even, [2, 2], 'VALID', lambda x, c, p: tf.nn.max_pool(x, two, one,"
        " p), [2, 2],"
        " [1, 2], 'NHWC'),"
        " tf.nn.with_space_to_batch(even, [1, 1], 'SAME', lambda x, c, p: tf.nn.max_pool(x, two, one, p),"
        " [2, 2])]"
    ),
}
POOLS = {
    "avg_pool": (
        "[tf.nn.avg_pool(image, two, one, 'SAME', 'NHWC', 'a'), tf.nn.avg_pool(even, two, two, 'VALID')]"
    ),
    "avg_pool3d": "tf.nn.avg_pool3d(volume, cubes, [1] * 5, 'SAME', 'NDHWC', 'a')",
    "fractional_avg_pool": (
        "list(tf.nn.fractional_avg_pool(even, [1.0, 2.0, 2.0, 1.0], True, True, True, 3, 4, 'a'))"
    ),
    "fractional_max_pool": (
        "list(tf.nn.fractional_max_pool(even, [1.0, 2.0, 2.0, 1.0], False, False, True, 3, 4, 'a'))"
    ),
    "max_pool": (
        "[tf.nn.max_pool(image, two, one, 'SAME', 'NHWC', 'a'), tf.nn.max_pool(even, two, two, 'VALID')]"
    ),
    "max_pool3d": "tf.nn.max_pool3d(volume, cubes, [1] * 5, 'SAME', 'NDHWC', 'a')",
    "max_pool_with_argmax": (
        "[list(tf.nn.max_pool_with_argmax(even, two, two, 'VALID', Targmax=tf.int64, name='a')),"
        " tf.nn.max_pool_with_argmax(image, two, two, 'SAME').argmax]"
    ),
    "pool": (
        "[tf.nn.pool(image, [2, 2], 'MAX', 'VALID', [2, 1], [1, 1], 'a', 'NHWC'),"
        " tf.nn.pool(even, [2, 2], 'AVG', 'SAME', strides=[2, 1]), tf.nn.pool(line, [3], 'AVG', 'VALID')]"
    ),
}
QUANTIZED = {
    "quantized_avg_pool": (
        "whole(tf.nn.quantized_avg_pool(small, 0.0, 6.0, two, two, 'VALID', 'a'), tf.uint8)"
    ),
    "quantized_conv2d": (
        "whole(tf.nn.quantized_conv2d(small, filters, 0.0, 6.0, -1.0, 1.0, two, 'VALID', tf.qint32,"
        " name='a'), tf.int32)"
    ),
    "quantized_max_pool": (
        "whole(tf.nn.quantized_max_pool(small, 0.0, 6.0, two, two, 'VALID', 'a'), tf.uint8)"
    ),
    "quantized_relu_x": (
        "alone(lambda: [[each.dtype, each.shape] for each in tf.nn.quantized_relu_x("
        "tf.placeholder(tf.quint8, [2, 3]), 2.0, 0.0, 6.0, tf.quint8, 'a')])"
    ),
}
TABLES = [ClassCalls("tf.nn", VALUES, {**CONVOLUTIONS, **POOLS, **QUANTIZED})]
