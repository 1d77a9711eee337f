"""The same network in JAX: tracing counts as building, compiling as the first run."""

from functools import partial

import jax
import jax.numpy as jnp
from shapes import BLOCKS, block_input

from measuring import median_seconds, once, report

image = block_input()
one = (jnp.full((3, 3, 8, 8), 0.01), jnp.ones(8), jnp.zeros(8))
parameters = [tuple(jnp.array(a) for a in one) for _ in range(BLOCKS)]
state = [parameters, jax.tree.map(jnp.zeros_like, parameters)]


def block(p, h):
    weights, scale, offset = p
    h = jax.lax.conv_general_dilated(h, weights, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    mean, variance = jnp.mean(h, (0, 1, 2)), jnp.var(h, (0, 1, 2))
    return jax.nn.relu((h - mean) * jax.lax.rsqrt(variance + 1e-3) * scale + offset)


def loss_of(p, h):
    for one_block in p:
        h = h + block(one_block, h)
    return jnp.mean(h)


@partial(jax.jit, donate_argnums=0)
def update(state, x):
    p, m = state
    loss, g = jax.value_and_grad(loss_of)(p, x)
    m = jax.tree.map(lambda a, d: 0.9 * a + d, m, g)
    return loss, [jax.tree.map(lambda w, a: w - 1e-3 * a, p, m), m]


def step():
    global state
    loss, state = update(state, image)
    return float(loss)


traced = []
report("build", once(lambda: traced.append(update.trace(state, image))), "s")
report("first run", once(step), "s")
report("step", median_seconds(step, warm_up=1) * 1e3, "ms")
