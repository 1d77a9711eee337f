"""transformer_block in JAX: the whole step one compiled function, parameters donated."""

from functools import partial

import jax
import jax.numpy as jnp
from words import TransformerBlock, parameters

from measuring import median_seconds, report

model = TransformerBlock()
inputs, targets = model.sequences()
width = model.units // model.heads


def dense(p, x, name):
    return x @ p[name] + p[f"{name}_bias"]


def normalised(p, x, i):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + model.epsilon) * p[f"scale{i}"] + p[f"offset{i}"]


def attended(p, x):
    joint = dense(p, x, "joint").reshape(model.batch, model.steps, 3, model.heads, width)
    queries, keys, values = joint.transpose(2, 0, 3, 1, 4)
    scores = queries @ keys.swapaxes(2, 3) * width**-0.5
    found = (jax.nn.softmax(scores) @ values).transpose(0, 2, 1, 3)
    return dense(p, found.reshape(x.shape), "projection")


@jax.jit
def loss_of(p, x, y):
    x = normalised(p, x + attended(p, x), 1)
    x = normalised(p, x + dense(p, jax.nn.relu(dense(p, x, "hidden")), "output"), 2)
    return jnp.mean((x - y) ** 2)


@partial(jax.jit, donate_argnums=0)
def update(p, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(p, x, y)
    return loss, jax.tree.map(lambda value, gradient: value - model.rate * gradient, p, gradients)


state = jax.tree.map(jnp.array, parameters(model.shapes()))


def forward():
    return float(loss_of(state, inputs, targets))


def step():
    global state
    loss, state = update(state, inputs, targets)
    jax.block_until_ready(state)
    return float(loss)


print("losses", forward(), *[step() for _ in range(3)])
report("forward", median_seconds(forward, 3) * 1e3, "ms")
report("step", median_seconds(step, 3) * 1e3, "ms")
