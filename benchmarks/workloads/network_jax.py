"""softmax_regression and perceptron in JAX: the whole step one compiled function, parameters donated."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from shapes import network

from measuring import median_seconds, report

settings, images, labels = network()
rate = settings["rate"]
random = np.random.RandomState(1)
parameters = [
    (jnp.asarray(random.randn(m, n).astype("f") * 0.05), jnp.zeros(n))
    for m, n in zip(settings["sizes"], settings["sizes"][1:])
]


def loss_of(p, x, y):
    for i, (w, b) in enumerate(p):
        x = (jax.nn.relu(x) if i else x) @ w + b
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1))


def sgd(state, g):
    return [jax.tree.map(lambda w, d: w - rate * d, state[0], g)]


def adam(state, g):
    p, m, v, t = state
    t = t + 1
    rate_t = rate * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    m = jax.tree.map(lambda a, d: 0.9 * a + 0.1 * d, m, g)
    v = jax.tree.map(lambda a, d: 0.999 * a + 0.001 * d * d, v, g)
    return [jax.tree.map(lambda w, a, b: w - rate_t * a / (jnp.sqrt(b) + 1e-8), p, m, v), m, v, t]


def zeros():
    return jax.tree.map(jnp.zeros_like, parameters)


state = [parameters, zeros(), zeros(), jnp.float32(0)] if settings["adam"] else [parameters]


@partial(jax.jit, donate_argnums=0)
def update(state, x, y):
    loss, g = jax.value_and_grad(loss_of)(state[0], x, y)
    return loss, (adam if settings["adam"] else sgd)(state, g)


def step():
    global state
    loss, state = update(state, images, labels)
    return float(loss)


report("step", median_seconds(step, 20) * 1e3, "ms")
