"""Optimisers by the names of `families`, in JAX: the first state, and update(p, state, gradients)."""

import jax
import jax.numpy as jnp


def optimiser(name, p, rate):
    """As tf.train makes it with defaults, and a momentum of 0.9; `p`: the first parameters."""

    def filled(value):
        return jax.tree.map(lambda each: jnp.full_like(each, value), p)

    first = {
        "sgd": (),
        "momentum": (filled(0),),
        "adagrad": (filled(0.1),),
        "rmsprop": (filled(1),),
        "adam": (filled(0), filled(0), jnp.zeros((), "int32")),
        "ftrl": (filled(0.1), filled(0)),
    }[name]

    def update(p, state, g):
        match name:
            case "sgd":
                return jax.tree.map(lambda w, d: w - rate * d, p, g), ()
            case "momentum":
                sums = jax.tree.map(lambda a, d: 0.9 * a + d, state[0], g)
                return jax.tree.map(lambda w, a: w - rate * a, p, sums), (sums,)
            case "adagrad":
                squares = jax.tree.map(lambda a, d: a + d * d, state[0], g)
                new = jax.tree.map(lambda w, a, d: w - rate * d * jax.lax.rsqrt(a), p, squares, g)
                return new, (squares,)
            case "rmsprop":
                squares = jax.tree.map(lambda a, d: 0.9 * a + 0.1 * d * d, state[0], g)
                new = jax.tree.map(lambda w, a, d: w - rate * d / jnp.sqrt(a + 1e-10), p, squares, g)
                return new, (squares,)
            case "adam":
                return adam(p, state, g)
        return ftrl(p, state, g)

    def adam(p, state, g):
        m, v, t = state
        t = t + 1
        bias = jnp.sqrt(1 - 0.999 ** t.astype("float32")) / (1 - 0.9 ** t.astype("float32"))
        m = jax.tree.map(lambda a, d: 0.9 * a + 0.1 * d, m, g)
        v = jax.tree.map(lambda a, d: 0.999 * a + 0.001 * d * d, v, g)
        new = jax.tree.map(
            lambda w, a, b: w - (rate * bias).astype(w.dtype) * a / (jnp.sqrt(b) + 1e-8), p, m, v
        )
        return new, (m, v, t)

    def ftrl(p, state, g):
        squares = jax.tree.map(lambda a, d: a + d * d, state[0], g)
        linear = jax.tree.map(
            lambda z, d, w, a, b: z + d - (jnp.sqrt(b) - jnp.sqrt(a)) / rate * w,
            state[1], g, p, state[0], squares,
        )  # fmt: skip
        new = jax.tree.map(lambda z, b: -z * rate / jnp.sqrt(b), linear, squares)
        return new, (squares, linear)

    return first, update
