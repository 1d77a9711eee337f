"""Calls of the functions of `tf.layers` and of those of `tf.initializers` that are no classes."""

from class_calls import ClassCalls

VALUES = """
line = tf.reshape(tf.range(12.0), [1, 6, 2])
image = tf.reshape(tf.cos(tf.range(32.0)), [1, 4, 4, 2])
volume = tf.reshape(tf.sin(tf.range(27.0)), [1, 3, 3, 3, 1])
rows = tf.constant([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]])
def ramp(shape, dtype=None, partition_info=None):
    size = int(np.prod([int(each) for each in shape]))
    return tf.reshape(tf.cos(tf.range(float(size))), shape)
ones = tf.ones_initializer()
Input = getattr(tf.layers, 'Input', None) or tf.keras.layers.Input  # 1.15 has it there only
def square(kernel):
    return 0.5 * tf.reduce_sum(kernel * kernel)
def made(make, name):
    out = make(name)
    names = [[v.op.name, v.shape] for v in tf.global_variables(name)]
    kept = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES, name)
    return [out, out.op.name, names, len(tf.trainable_variables(name)), kept]
def kept(y):
    found = run(y)
    rows_alike = bool((found[:, 1:] == found[:, :-1]).all())
    return [list(found.shape), sorted(set(found.ravel().tolist())), rows_alike]
"""


def kernel_calls(name: str, first: str, last: str, short: str) -> str:
    """A layer with all arguments before the initialisers in place, and one with the fewest."""
    return (
        f"[made(lambda n: tf.layers.{name}({first}, {last}, name=n), '{name}_1'),"
        f" made(lambda n: tf.layers.{name}({short}, kernel_initializer=ones, name=n), '{name}_2')]"
    )


KERNELS = {
    "conv1d": kernel_calls(
        "conv1d", "line, 3, 2, 1, 'same', 'channels_last', 2, tf.nn.relu, True, ramp, ones, square",
        "trainable=False", "line, 1, [3]"),
    "conv2d": kernel_calls(
        "conv2d", "image, 2, 2, (2, 1), 'same', 'channels_last', (1, 1), tf.nn.relu, True, ramp, ones,"
        " square, square",
        "trainable=False", "image, 1, [2, 3]"),
    "conv2d_transpose": kernel_calls(
        "conv2d_transpose", "image, 1, 2, (2, 2), 'same', 'channels_last', tf.nn.relu, True, ramp, ones,"
        " square",
        "trainable=False", "image[:, :2, :2], 1, [2, 3]"),
    "conv3d": kernel_calls(
        "conv3d", "volume, 2, 2, (1, 1, 1), 'valid', 'channels_last', (1, 1, 1), tf.nn.relu, False, ramp,"
        " ones, square",
        "trainable=False", "volume, 1, [2, 3, 3]"),
    "conv3d_transpose": kernel_calls(
        "conv3d_transpose", "volume[:, :2, :2, :2], 1, 2, (1, 1, 1), 'valid', 'channels_last',"
        " tf.nn.relu, False, ramp,"
        " ones, square", "trainable=False", "volume[:, :1, :1, :1], 1, [2, 1, 2]"),
    "dense": kernel_calls(
        "dense", "rows, 2, tf.nn.relu, True, ramp, ones, square, square, None", "trainable=False", "rows, 1"),
    "separable_conv2d": (
        "[made(lambda n: tf.layers.separable_conv2d(image, 2, 2, (2, 2), 'same', 'channels_last', (1, 1),"
        " 2, tf.nn.relu,"
        " True, ramp, ramp, ones, square, square, name=n), 'separable_1'),"
        " made(lambda n: tf.layers.separable_conv2d(image, 1, 2, depthwise_initializer=ramp,"
        " pointwise_initializer=ones,"
        " name=n), 'separable_2')]"
    ),
}  # fmt: skip
OTHERS = {
    "Input": "[Input([3, None], 2, 'i', tf.int32).shape, Input([3]).dtype, type(Input([3], sparse=True))]",
    **{
        f"{kind}_pooling{rank}d": (
            f"[tf.layers.{kind}_pooling{rank}d({value}, 2, 1, 'same', 'channels_last', 'a'),"
            f" tf.layers.{kind}_pooling{rank}d({value}, pool_size=2, strides=2)]"
        )
        for kind in ("average", "max")
        for rank, value in enumerate(["line", "image", "volume"], 1)
    },
    "batch_normalization": (
        "[made(lambda n: tf.layers.batch_normalization(image, -1, 0.9, 0.01, True, True, ramp, ramp,"
        " ones, ones, square,"
        " square, training=True, name=n, fused=False), 'normal_1'),"
        " made(lambda n: tf.layers.batch_normalization(rows, center=False, name=n), 'normal_2'),"
        " [op.name for op in tf.get_collection(tf.GraphKeys.UPDATE_OPS)]]"
    ),
    "dropout": (
        "[kept(tf.layers.dropout(tf.ones([40, 50]), 0.75, [40, 1], 3, True, 'a')), tf.layers.dropout(rows),"
        " kept(tf.layers.dropout(tf.ones([40, 50]), training=tf.constant(True)))]"
    ),
    "flatten": (
        "[tf.layers.flatten(image, 'a'), tf.layers.flatten(tf.placeholder(tf.int32, [None, 2, 3])).shape]"
    ),
}
INITIALIZERS = """
with tf.variable_scope('s'):
    v = tf.get_variable('v', [2], initializer=tf.zeros_initializer())
    u = tf.get_variable('u', [2], initializer=tf.zeros_initializer(), collections=['local_variables'])
"""
STARTS = {
    "global_variables": "[tf.initializers.global_variables().name, tf.initializers.global_variables().type]",
    "local_variables": "[[c.name for c in tf.initializers.local_variables().control_inputs]]",
    "variables": "[tf.initializers.variables([v], 'a').name, run(tf.initializers.variables([u, v])),"
    " tf.initializers.variables([]).name]",
}
TABLES = [
    ClassCalls("tf.layers", VALUES, {**KERNELS, **OTHERS}),
    ClassCalls("tf.initializers", INITIALIZERS, STARTS),
]
