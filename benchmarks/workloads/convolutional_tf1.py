"""The convolutional networks: the loss alone (forward), a training step; memory: the peak of AlexNet's."""

from tf1 import tf  # isort: skip
from resident_memory import peak, resident

from measuring import median_seconds, report
from networks import (
    EPSILON,
    NETWORK,
    RATE,
    WORKLOAD,
    Concatenation,
    Convolution,
    Dense,
    Depthwise,
    GlobalAverage,
    MaxPooling,
    Residual,
    images_and_labels,
    parameters,
)

imported = resident()
activation = getattr(tf.nn, NETWORK.activation)


def sequence(layers, values, x):
    for layer, own in zip(layers, values):
        x = applied(layer, own, x)
    return x


def applied(layer, values, x):
    match layer:
        case Convolution():
            x = convolution(layer, values, x)
        case Depthwise(_, stride):
            weights, *rest = [variable(value) for value in values]
            x = tf.nn.depthwise_conv2d(x, weights, [1, stride, stride, 1], "SAME")
            return activation(tf.nn.fused_batch_norm(x, *rest, epsilon=EPSILON)[0])
        case MaxPooling(size, stride, padding):
            return tf.nn.max_pool(x, [1, size, size, 1], [1, stride, stride, 1], padding)
        case GlobalAverage():
            return tf.reduce_mean(x, [1, 2])
        case Concatenation(branches):
            return tf.concat([sequence(branch, own, x) for branch, own in zip(branches, values)], 3)
        case Residual(body, shortcut):
            return activation(sequence(shortcut, values[0], x) + sequence(body, values[1], x))
        case Dense(units):
            weights, bias = variable(values[0].reshape(-1, units)), variable(values[1])
            x = tf.nn.bias_add(tf.matmul(tf.reshape(x, [NETWORK.batch, -1]), weights), bias)
    return activation(x) if layer.activated else x


def convolution(layer, values, x):
    weights, *rest = [variable(value) for value in values]
    x = tf.nn.conv2d(x, weights, [1, layer.stride, layer.stride, 1], layer.padding)
    if NETWORK.normalised:
        return tf.nn.fused_batch_norm(x, *rest, epsilon=EPSILON)[0]
    return tf.nn.bias_add(x, *rest)


def variable(value):
    made = tf.Variable(tf.zeros(value.shape))
    initial.append((made, value))
    return made


initial = []
x = tf.placeholder(tf.float32, [NETWORK.batch, *NETWORK.image])
y = tf.placeholder(tf.int64, [NETWORK.batch])
logits = sequence(NETWORK.layers, parameters(NETWORK), x)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
train = tf.train.GradientDescentOptimizer(RATE).minimize(loss)
session = tf.Session()
while initial:
    made, value = initial.pop()
    made.load(value, session)
del value
images, labels = images_and_labels(NETWORK)


def forward():
    return session.run(loss, {x: images, y: labels})


def step():
    return session.run([train, loss], {x: images, y: labels})[1]


if WORKLOAD == "memory":
    report("peak", peak(step) - imported, "MB")
else:
    print("losses", forward(), step(), forward())
    report("forward", median_seconds(forward, 10) * 1e3, "ms")
    report("step", median_seconds(step, 3) * 1e3, "ms")
