"""The loop as lax.while_loop (its gradient through scan) and the conditionals as lax.cond, each one jit."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from shapes import CONDITIONALS, ITERATIONS, loop_values

from measuring import median_seconds, report

matrix, vector = loop_values()
weights = jnp.asarray(matrix)


@jax.jit
def loop(x):
    _, count, result = lax.while_loop(
        lambda s: s[0] < ITERATIONS, lambda s: (s[0] + 1, s[1] + 1.0, weights @ s[2]), (0, 0.0, x)
    )
    return count + result.sum()


@jax.jit
@jax.value_and_grad
def with_gradient(x):
    (count, result), _ = lax.scan(
        lambda s, _: ((s[0] + 1.0, weights @ s[1]), None), (0.0, x), None, ITERATIONS
    )
    return count + result.sum()


@jax.jit
def conditionals(z):
    for _ in range(CONDITIONALS):
        z = lax.cond(z > 0.0, lambda z: z - 1.0, lambda z: z + 1.0, z)
    return z


def us(function, parts):
    return median_seconds(function) / parts * 1e6


one = np.float32(1)
report("while_loop iteration", us(lambda: float(loop(vector)), ITERATIONS), "us")
report("with its gradient", us(lambda: jax.block_until_ready(with_gradient(vector)), ITERATIONS), "us")
report("cond", us(lambda: float(conditionals(one)), CONDITIONALS), "us")
