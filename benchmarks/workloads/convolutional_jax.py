"""The convolutional networks in JAX: NHWC, the whole step one compiled function, parameters donated."""

from functools import partial

import jax
import jax.numpy as jnp
import shapes  # noqa: F401 - makes `measuring` importable
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
activation = {"relu": jax.nn.relu, "relu6": jax.nn.relu6, "tanh": jnp.tanh}[NETWORK.activation]


def sequence(layers, values, x):
    for layer, own in zip(layers, values):
        x = applied(layer, own, x)
    return x


def applied(layer, values, x):
    match layer:
        case Convolution():
            x = convolution(layer.stride, layer.padding, *values, x)
        case Depthwise(_, stride):
            weights, *rest = values
            weights = weights.transpose(0, 1, 3, 2)
            return activation(convolution(stride, "SAME", weights, *rest, x, groups=x.shape[3]))
        case MaxPooling(size, stride, padding):
            window, strides = (1, size, size, 1), (1, stride, stride, 1)
            return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, strides, padding)
        case GlobalAverage():
            return x.mean((1, 2))
        case Concatenation(branches):
            return jnp.concatenate([sequence(branch, own, x) for branch, own in zip(branches, values)], 3)
        case Residual(body, shortcut):
            return activation(sequence(shortcut, values[0], x) + sequence(body, values[1], x))
        case Dense(units):
            weights, bias = values
            x = x.reshape(NETWORK.batch, -1) @ weights.reshape(-1, units) + bias
    return activation(x) if layer.activated else x


def convolution(stride, padding, weights, *rest, groups=1):
    *scale, offset, x = rest
    x = jax.lax.conv_general_dilated(
        x, weights, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )  # fmt: skip
    if scale:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        x = (x - mean) * (jax.lax.rsqrt(variance + EPSILON) * scale[0])
    return x + offset


@jax.jit
def loss_of(values, x, y):
    logits = sequence(NETWORK.layers, values, x)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1))


@partial(jax.jit, donate_argnums=0)
def update(values, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(values, x, y)
    return loss, jax.tree.map(lambda value, gradient: value - RATE * gradient, values, gradients)


state = jax.tree.map(jnp.array, parameters(NETWORK))
images, labels = images_and_labels(NETWORK)


def forward():
    return float(loss_of(state, images, labels))


def step():
    global state
    loss, state = update(state, images, labels)
    jax.block_until_ready(state)
    return float(loss)


if WORKLOAD == "memory":
    report("peak", peak(step) - imported, "MB")
else:
    print("losses", forward(), step(), forward())
    report("forward", median_seconds(forward, 3) * 1e3, "ms")
    report("step", median_seconds(step, 3) * 1e3, "ms")
