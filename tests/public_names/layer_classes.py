"""Calls of the public members of the classes of `tf.layers`."""

from class_calls import ClassCalls, product

MEMBERS = {
    "__init__": "[type(it).__name__, it.trainable, y]",
    "activity_regularizer": "make(activity_regularizer=tf.nn.l2_loss).activity_regularizer is tf.nn.l2_loss",
    "add_loss": "[(l, l.add_loss(tf.reduce_sum(x), x), l.add_loss(x[0, 0]))[0].losses for l in [make()]]",
    "add_update": "[(l, l.add_update(tf.assign_add(n, 1.0)))[0] and run(l.updates, n) for l in [make()]]",
    "add_variable": ("make(name='adds').add_variable('extra', [2], initializer=half, trainable=False)"),
    "apply": "make(name='applied').apply(x)",
    "build": "[(l, l.build(x.shape))[0].built for l in [make(name='builds')]]",
    "call": "it.call(x)",
    "count_params": "it.count_params()",
    "dtype": "it.dtype",
    "get_input_at": "linked.get_input_at(0) is p",
    "get_input_shape_at": "linked.get_input_shape_at(0)",
    "get_losses_for": (
        "[(l, l.add_loss(tf.reduce_sum(x), inputs=x), l.add_loss(tf.constant(2.0)))[0].get_losses_for(i)"
        " for i in [x, None] for l in [make()]]"
    ),
    "get_output_at": "linked.get_output_at(0) is q",
    "get_output_shape_at": "linked.get_output_shape_at(0)",
    "get_updates_for": (
        "[(l.add_update(tf.assign(n, tf.reduce_sum(x)), inputs=x), l.add_update(tf.assign(n, 3.0)),"
        " len(l.get_updates_for(x)), run(l.get_updates_for(None), n))[2:] for l in [make()]]"
    ),
    "graph": "it.graph is tf.get_default_graph()",
    "inbound_nodes": "[len(unused.inbound_nodes), len(linked.inbound_nodes)]",
    "input": "linked.input is p",
    "input_shape": "linked.input_shape",
    "losses": "it.losses",
    "name": "it.name",
    "non_trainable_variables": "it.non_trainable_variables",
    "non_trainable_weights": "it.non_trainable_weights",
    "outbound_nodes": "[len(linked.outbound_nodes), tf.layers.Flatten()(q), len(linked.outbound_nodes)][::2]",
    "output": "linked.output is q",
    "output_shape": "linked.output_shape",
    "scope_name": "it.scope_name",
    "trainable_variables": "it.trainable_variables",
    "trainable_weights": "it.trainable_weights",
    "updates": "it.updates",
    "variables": "it.variables",
    "weights": "it.weights",
}


def made_by(call: str, shape: str, before: str = "") -> str:
    """A program with `make`, an instance `it` that it made, its input `x` and output `y`; `linked` is one
    called on the placeholder `p`, which gave `q`, and `n` a variable."""
    return f"""
n = tf.Variable(1.0, trainable=False)
x = tf.constant(np.sin(np.arange(np.prod({shape}))).reshape({shape}).astype('f'))
half = tf.constant_initializer(0.5)
{before}
make = lambda **more: {call}
it = make()
y = it(x)
unused = make()
linked = make()
p = tf.layers.Input(x.shape.as_list()[1:], 4)
q = linked(p)
"""


DEPTHWISE = "depthwise_initializer=half, pointwise_initializer=half, pointwise_regularizer=tf.nn.l2_loss"
KERNEL = "kernel_initializer=half, kernel_regularizer=tf.nn.l2_loss"
LAYER = """
class Scale(tf.layers.Layer):
    def build(self, shape):
        self.factor = self.add_variable('factor', [int(shape[-1])], None, half, tf.nn.l2_loss)
        self.built = True
    def call(self, inputs):
        return inputs * self.factor
"""
SETUPS = {
    "AveragePooling1D": made_by("tf.layers.AveragePooling1D(2, 2, **more)", "[1, 4, 2]"),
    "AveragePooling2D": made_by("tf.layers.AveragePooling2D(2, 2, **more)", "[1, 4, 4, 1]"),
    "AveragePooling3D": made_by("tf.layers.AveragePooling3D(2, 2, **more)", "[1, 2, 4, 2, 1]"),
    "BatchNormalization": made_by(
        "tf.layers.BatchNormalization(gamma_initializer=half, gamma_regularizer=tf.nn.l2_loss, **more)",
        "[3, 2]",
    ),
    "Conv1D": made_by(f"tf.layers.Conv1D(2, 2, {KERNEL}, **more)", "[1, 4, 2]"),
    "Conv2D": made_by(f"tf.layers.Conv2D(2, 2, {KERNEL}, **more)", "[1, 3, 3, 1]"),
    "Conv2DTranspose": made_by(f"tf.layers.Conv2DTranspose(1, 2, 2, {KERNEL}, **more)", "[1, 2, 2, 1]"),
    "Conv3D": made_by(f"tf.layers.Conv3D(2, 2, {KERNEL}, **more)", "[1, 3, 2, 3, 1]"),
    "Conv3DTranspose": made_by(f"tf.layers.Conv3DTranspose(1, 2, 2, {KERNEL}, **more)", "[1, 2, 2, 1, 1]"),
    "Dense": made_by(f"tf.layers.Dense(3, tf.nn.relu, {KERNEL}, **more)", "[2, 2]"),
    "Dropout": made_by("tf.layers.Dropout(0.3, **more)", "[2, 2]"),
    "Flatten": made_by("tf.layers.Flatten(**more)", "[2, 1, 2]"),
    "Layer": made_by("Scale(**more)", "[2, 2]", LAYER),
    "MaxPooling1D": made_by("tf.layers.MaxPooling1D(2, 2, **more)", "[1, 4, 2]"),
    "MaxPooling2D": made_by("tf.layers.MaxPooling2D(2, 2, **more)", "[1, 4, 4, 1]"),
    "MaxPooling3D": made_by("tf.layers.MaxPooling3D(2, 2, **more)", "[1, 2, 4, 2, 1]"),
    "SeparableConv2D": made_by(f"tf.layers.SeparableConv2D(2, 2, {DEPTHWISE}, **more)", "[1, 3, 3, 2]"),
}
SPECIAL = {
    "BatchNormalization.updates": "[len(it.updates), run(it.updates, it.moving_variance)]",
    "BatchNormalization.call": "it.call(x, training=True)",
    "Conv3DTranspose.build": "[(l, l.build(x.shape))[0].kernel.shape for l in [make(name='builds')]]",
    "Dropout.call": "it.call(x, training=False)",
}
INPUT_SPEC = ClassCalls(
    "tf.layers.InputSpec",
    "it = tf.layers.InputSpec('float32', None, 3, None, 2, {-1: 2})",
    {"__init__": "[it.dtype, it.shape, it.ndim, it.max_ndim, it.min_ndim, sorted(it.axes.items())]"},
)
FUNCTIONS = ClassCalls(
    "tf.layers",
    """
def data(*shape):
    return tf.constant(np.sin(np.arange(np.prod(shape))).reshape(shape).astype('f'))
def result(y):
    return [y, tf.trainable_variables(y.op.name.partition('/')[0] + '/')]
half = tf.constant_initializer(0.5)
x1, x2, x3 = data(1, 4, 2), data(1, 4, 4, 1), data(1, 2, 4, 2, 1)
""",
    {
        "Input": "tf.layers.Input([3], name='given').shape",
        "average_pooling1d": "tf.layers.average_pooling1d(x1, 2, 2, 'same')",
        "average_pooling2d": "tf.layers.average_pooling2d(x2, 2, 2, 'same')",
        "average_pooling3d": "tf.layers.average_pooling3d(x3, 2, 2, 'same')",
        "batch_normalization": "result(tf.layers.batch_normalization(x2, -1, gamma_initializer=half))",
        "conv1d": "result(tf.layers.conv1d(x1, 1, 2, 1, 'same', kernel_initializer=half))",
        "conv2d": "result(tf.layers.conv2d(x2, 1, 2, 1, 'same', kernel_initializer=half))",
        "conv2d_transpose": "result(tf.layers.conv2d_transpose(x2, 1, 2, 1, kernel_initializer=half))",
        "conv3d": "result(tf.layers.conv3d(x3, 1, 2, 1, 'same', kernel_initializer=half))",
        "conv3d_transpose": "result(tf.layers.conv3d_transpose(x3, 1, 2, 1, kernel_initializer=half))",
        "dense": "result(tf.layers.dense(x1, 3, tf.nn.tanh, kernel_initializer=half))",
        "dropout": "[tf.layers.dropout(x1, 0.3), tf.layers.dropout(x1, 0.3, training=True).shape]",
        "flatten": "tf.layers.flatten(x2)",
        "max_pooling1d": "tf.layers.max_pooling1d(x1, 2, 2, 'same')",
        "max_pooling2d": "tf.layers.max_pooling2d(x2, 2, 2, 'same')",
        "max_pooling3d": "tf.layers.max_pooling3d(x3, 2, 2, 'same')",
        "separable_conv2d": (
            "result(tf.layers.separable_conv2d("
            "x2, 1, 2, depthwise_initializer=half, pointwise_initializer=half))"
        ),
    },
    oracle="1.4.1",
)
# TensorFlow 1.4 lists updates as tensors and has the graph of a layer; later ones do not.
TABLES = [*product("tf.layers", SETUPS, MEMBERS, SPECIAL, oracle="1.4.1"), INPUT_SPEC, FUNCTIONS]
