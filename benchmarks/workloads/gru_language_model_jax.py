"""gru_language_model in JAX: unrolled, the whole step one compiled function, parameters donated."""

from functools import partial

import jax
import jax.numpy as jnp
from words import GRULanguageModel, parameters

from measuring import median_seconds, report

model = GRULanguageModel()
words, next_words = model.words()


def cell(p, x, h):
    gates = jax.nn.sigmoid(jnp.concatenate([x, h], 1) @ p["gates"] + p["gates_bias"])
    r, u = jnp.split(gates, 2, 1)
    candidate = jnp.tanh(jnp.concatenate([x, r * h], 1) @ p["candidate"] + p["candidate_bias"])
    return u * h + (1 - u) * candidate


def loss_of(p, x, y):
    embedded = p["embedding"][x]
    h = jnp.zeros((model.batch, model.units))
    outputs = []
    for t in range(model.steps):
        h = cell(p, embedded[:, t], h)
        outputs.append(h)
    logits = jnp.stack(outputs, 1) @ p["softmax"] + p["softmax_bias"]
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[..., None], 2))


@partial(jax.jit, donate_argnums=0)
def update(p, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(p, x, y)
    norm = jnp.sqrt(sum(jnp.sum(each * each) for each in jax.tree.leaves(gradients)))
    rate = model.rate * jnp.minimum(model.norm / norm, 1)
    return loss, jax.tree.map(lambda value, gradient: value - rate * gradient, p, gradients)


state = jax.tree.map(jnp.array, parameters(model.shapes()))


def step():
    global state
    loss, state = update(state, words, next_words)
    jax.block_until_ready(state)
    return float(loss)


print("losses", *[step() for _ in range(3)])
report("step", median_seconds(step, 3) * 1e3, "ms")
