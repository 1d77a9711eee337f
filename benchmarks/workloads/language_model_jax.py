"""The language models in JAX: scan over time or, with VARIANT=unrolled, the same unrolled; the whole step one
compiled function, parameters donated.
"""

import os
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from shapes import SENTENCES, VOCABULARY, language_model

from measuring import median_seconds, report

layers, units, steps, words, next_words = language_model()
is_unrolled = os.environ["VARIANT"] == "unrolled"
random = np.random.default_rng(0)


def uniform(*shape):
    return jnp.asarray(random.random(shape, np.float32) * np.float32(0.2) - np.float32(0.1))


parameters = {
    "embedding": uniform(VOCABULARY, units),
    "layers": [(uniform(2 * units, 4 * units), uniform(4 * units)) for _ in range(layers)],
    "softmax": (uniform(units, VOCABULARY), uniform(VOCABULARY)),
}


def layer(weights, bias, inputs):
    """[steps, sentences, units] of outputs."""

    def cell(state, x):
        c, h = state
        i, j, f, o = jnp.split(jnp.concatenate([x, h], 1) @ weights + bias, 4, 1)
        c = c * jax.nn.sigmoid(f) + jax.nn.sigmoid(i) * jnp.tanh(j)
        h = jnp.tanh(c) * jax.nn.sigmoid(o)
        return (c, h), h

    zero = jnp.zeros((SENTENCES, units))
    return jax.lax.scan(cell, (zero, zero), inputs, unroll=steps if is_unrolled else 1)[1]


def loss_of(parameters, x, y):
    outputs = parameters["embedding"][x].swapaxes(0, 1)
    for weights, bias in parameters["layers"]:
        outputs = layer(weights, bias, outputs)
    weights, bias = parameters["softmax"]
    logits = outputs.swapaxes(0, 1).reshape(-1, units) @ weights + bias
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y.reshape(-1, 1), 1))


@partial(jax.jit, donate_argnums=0)
def update(parameters, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(gradients)))
    scale = 5.0 / jnp.maximum(norm, 5.0)
    return loss, jax.tree.map(lambda value, gradient: value - scale * gradient, parameters, gradients)


def step():
    global parameters
    loss, parameters = update(parameters, words, next_words)
    jax.block_until_ready(parameters)
    return float(loss)


milliseconds = median_seconds(step, 3) * 1e3
report("static step", milliseconds, "ms")
report("dynamic step", milliseconds, "ms")
