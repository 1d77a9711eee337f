"""Autoencoders, variational ones and GANs in JAX: the whole step (of a GAN both) one compiled function."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from families import generative_cases, values
from families_jax import optimiser

from measuring import report, settled_seconds


class Networks:
    """The two networks over given parameters."""

    def __init__(self, model):
        self.model = model
        self.depth = len(model.filters or model.hidden)
        self.activation = {"tanh": jnp.tanh}.get(model.activation) or getattr(jax.nn, model.activation)

    def encoder(self, p, x):
        for i in range(self.depth):
            x = self.activation(self.layer(p, f"encoder{i}", x))
        return self.layer(p, f"encoder{self.depth}", x.reshape(len(x), -1))

    def decoder(self, p, z):
        x = self.layer(p, "decoder0", z)
        if self.model.filters:
            x = x.reshape(-1, *self.model.smallest)
        for i in range(1, self.depth + 1):
            x = self.layer(p, f"decoder{i}", self.activation(x))
        return x

    def layer(self, p, name, x):
        weights, bias = p[name], p[name + "_bias"]
        if weights.ndim == 2:
            return x @ weights + bias
        names = ("NHWC", "HWIO", "NHWC")
        if name.startswith("encoder"):
            return jax.lax.conv_general_dilated(x, weights, (2, 2), "SAME", dimension_numbers=names) + bias
        x = jax.lax.conv_transpose(x, weights, (2, 2), "SAME", dimension_numbers=names, transpose_kernel=True)
        if name + "_scale" in p:
            mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
            x = (x - mean) * (jax.lax.rsqrt(variance + 1e-3) * p[name + "_scale"])
        return x + bias


def entropy(label, logits):
    return jax.nn.softplus(logits) - label * logits


def measure(label, model):
    networks = Networks(model)
    images, codes = model.data()
    p = {name: jnp.array(value) for name, value in values(model.shapes(), model.dtype).items()}

    def autoencoder(own, others, x, z):
        return jnp.mean(jnp.square(jax.nn.sigmoid(networks.decoder(own, networks.encoder(own, x))) - x))

    def variational(own, others, x, z):
        mean, logarithm = jnp.split(networks.encoder(own, x), 2, 1)
        logits = networks.decoder(own, mean + jnp.exp(0.5 * logarithm) * z)
        divergence = -0.5 * jnp.sum(1 + logarithm - mean * mean - jnp.exp(logarithm))
        return (jnp.sum(entropy(x, logits)) + divergence) / model.batch

    def judged(own, others, x, z):
        drawn = networks.encoder(own, jax.nn.sigmoid(networks.decoder(others, z)))
        return jnp.mean(entropy(1, networks.encoder(own, x)) + entropy(0, drawn))

    def deceived(own, others, x, z):
        return jnp.mean(entropy(1, networks.encoder(others, jax.nn.sigmoid(networks.decoder(own, z)))))

    single = {"autoencoder": autoencoder, "variational": variational}.get(model.kind)
    losses = [(single, "")] if single else [(judged, "encoder"), (deceived, "decoder")]
    parts = [{name: p[name] for name in p if name.startswith(prefix)} for _, prefix in losses]
    optimisers = [optimiser(model.optimiser, part, model.rate) for part in parts]

    @partial(jax.jit, donate_argnums=0, static_argnames="known")
    def train(state, x, z, known):
        parts, states, key = state
        parts, states, found = list(parts), list(states), []
        if model.kind == "variational" and not known:
            key, drawing = jax.random.split(key)
            z = jax.random.normal(drawing, z.shape, z.dtype)
        for i, (loss_of, _) in enumerate(losses):
            loss, gradients = jax.value_and_grad(loss_of)(parts[i], parts[i - 1], x, z)
            parts[i], states[i] = optimisers[i][1](parts[i], states[i], gradients)
            found.append(loss)
        return found, (parts, states, key)

    @jax.jit
    def decoded(p, x, z):
        z = networks.encoder(p, x) if model.kind == "autoencoder" else z
        return jax.nn.sigmoid(networks.decoder(p, z))

    state = (parts, [first for first, _ in optimisers], jax.random.PRNGKey(0))

    def step(known=model.kind != "variational"):
        nonlocal state
        found, state = train(state, images, codes, known)
        jax.block_until_ready(state)
        return [float(loss) for loss in found]

    def decode():
        return np.asarray(decoded(state[0][-1], images, codes))

    print("losses" + label, *[step(True) for _ in range(3)])
    report("step" + label, settled_seconds(step) * 1e3, "ms")
    report("images" + label, settled_seconds(decode) * 1e3, "ms")


for label, model in generative_cases():
    with jax.enable_x64(model.dtype == "float64"):
        measure(label, model)
