"""k_means and mixture in JAX: the iterations in fori_loop, the whole run compiled."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from families import clustering_cases

from measuring import report, settled_seconds


def k_means(model, x, means):
    def distances(means):
        return jnp.square(x[:, None] - means[None]).sum(2)

    def body(_, means):
        nearest = distances(means).argmin(1)
        if model.one_hot:
            chosen = jax.nn.one_hot(nearest, model.centres, dtype=x.dtype)
            sums, counts = chosen.T @ x, chosen.sum(0)
        else:
            sums = jax.ops.segment_sum(x, nearest, model.centres)
            counts = jax.ops.segment_sum(jnp.ones_like(x[:, 0]), nearest, model.centres)
        return jnp.where(counts[:, None] > 0, sums / jnp.maximum(counts, 1)[:, None], means)

    means = jax.lax.fori_loop(0, model.iterations, body, means)
    return distances(means).min(1).sum(), means


def mixture(model, x, means):
    def log_densities(means, variances, weights):
        scaled = jnp.square(x[:, None] - means) / variances + jnp.log(variances)
        return jnp.log(weights) - 0.5 * scaled.sum(2)

    def body(_, state):
        shares = jax.nn.softmax(log_densities(*state), 1)
        counts = shares.sum(0)
        means = shares.T @ x / counts[:, None]
        variances = shares.T @ (x * x) / counts[:, None] - means * means + 1e-3
        return means, variances, counts / model.points

    start = means, jnp.ones_like(means), jnp.ones_like(means[:, 0]) / model.centres
    last = jax.lax.fori_loop(0, model.iterations, body, start)
    return -jax.nn.logsumexp(log_densities(*last), 1).sum(), last[0]


def measure(label, model):
    points, centres = model.data()
    function = jax.jit(partial({"k_means": k_means, "mixture": mixture}[model.kind], model))

    def run():
        loss, means = function(points, centres)
        return float(loss), np.asarray(means)

    print("losses" + label, run()[0])
    report("loop" + label, settled_seconds(run) * 1e3, "ms")


for label, model in clustering_cases():
    with jax.enable_x64(model.dtype == "float64"):
        measure(label, model)
