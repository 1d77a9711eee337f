"""skip_gram in JAX: gradients of the gathered rows, added into donated parameters."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from words import SkipGram, parameters

from measuring import median_seconds, report

model = SkipGram()
words, neighbours = model.words()
expected = jnp.log(jnp.asarray(model.expected()))


def loss_of(embedded, true_weights, true_bias, noise_weights, noise_bias):
    true = (embedded * true_weights).sum(1) + true_bias
    noise = embedded @ noise_weights.T + noise_bias
    return (jax.nn.softplus(-true) + jax.nn.softplus(noise).sum(1)).mean()


@partial(jax.jit, donate_argnums=0)
def update(state, x, y):
    embedding, weights, bias, key = state
    key, drawing = jax.random.split(key)
    uniform = jax.random.uniform(drawing, (model.negatives,))
    drawn = jnp.exp(uniform * np.log(model.vocabulary + 1)) - 1
    drawn = jnp.minimum(drawn.astype(jnp.int32), model.vocabulary - 1)
    rows = embedding[x], weights[y], bias[y] - expected[y], weights[drawn], bias[drawn] - expected[drawn]
    loss, gradients = jax.value_and_grad(loss_of, argnums=tuple(range(5)))(*rows)
    dx, dw, db, dw_noise, db_noise = [-model.rate * gradient for gradient in gradients]
    embedding = embedding.at[x].add(dx)
    weights = weights.at[y].add(dw).at[drawn].add(dw_noise)
    bias = bias.at[y].add(db).at[drawn].add(db_noise)
    return loss, (embedding, weights, bias, key)


state = (*map(jnp.array, parameters(model.shapes()).values()), jax.random.PRNGKey(0))


def step():
    global state
    loss, state = update(state, words, neighbours)
    jax.block_until_ready(state)
    return float(loss)


print("losses", *[step() for _ in range(5)])
report("step", median_seconds(step, 20) * 1e3, "ms")
