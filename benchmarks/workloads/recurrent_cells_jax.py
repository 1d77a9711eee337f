"""The cells in JAX, by scan: the whole step one compiled function, parameters donated."""

from functools import partial

import jax
import jax.numpy as jnp
from families import recurrence_cases, values
from families_jax import optimiser

from measuring import report, settled_seconds


def basic(model, p, x, h):
    return (jnp.tanh(jnp.concatenate([x, h], 1) @ p["kernel"] + p["bias"]),)


def gru(model, p, x, h):
    gates = jax.nn.sigmoid(jnp.concatenate([x, h], 1) @ p["gates"] + p["gates_bias"])
    r, u = jnp.split(gates, 2, 1)
    candidate = jnp.concatenate([x, r * h], 1) @ p["candidate"] + p["candidate_bias"]
    return (u * h + (1 - u) * jnp.tanh(candidate),)


def lstm(model, p, x, c, h):
    product = jnp.concatenate([x, h], 1) @ p["kernel"] + p.get("bias", 0)
    i, j, f, o = jnp.split(product, 4, 1)
    if model.cell == "normalised":
        i, j, f, o = (normalised(p, gate, name) for gate, name in zip((i, j, f, o), "ijfo"))
    if model.cell == "peephole":
        i, f = i + p["w_i_diag"] * c, f + p["w_f_diag"] * c
    c = c * jax.nn.sigmoid(f + 1) + jax.nn.sigmoid(i) * jnp.tanh(j)
    if model.cell == "peephole":
        o += p["w_o_diag"] * c
    if model.cell == "normalised":
        c = normalised(p, c, "c")
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return c, h @ p["projection"] if model.cell == "projected" else h


def normalised(p, x, name):
    mean, variance = x.mean(1, keepdims=True), x.var(1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p[f"{name}_scale"] + p[f"{name}_offset_bias"]


def measure(label, model):
    p = {name: jnp.array(value) for name, value in values(model.shapes(), model.dtype).items()}
    fed = model.sequences()
    first, update = optimiser(model.optimiser, p, model.rate)
    cell = {"gru": gru, "basic": basic}.get(model.cell, lstm)

    def loss_of(p, x, labels, lengths):
        def body(state, at):
            x, t = at
            new = cell(model, p, x, *state)
            if model.lengths:
                new = tuple(jnp.where((t < lengths)[:, None], a, b) for a, b in zip(new, state))
            return new, None

        state = (jnp.zeros((model.batch, model.state), x.dtype),)
        if cell is lstm:
            state = (jnp.zeros((model.batch, model.units), x.dtype), *state)
        state, _ = jax.lax.scan(body, state, (x.transpose(1, 0, 2), jnp.arange(model.steps)))
        logits = jax.nn.log_softmax(state[-1] @ p["classes0"] + p["classes0_bias"])
        return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], 1))

    @partial(jax.jit, donate_argnums=0)
    def train(state, *fed):
        p, rest = state
        loss, gradients = jax.value_and_grad(loss_of)(p, *fed)
        return loss, update(p, rest, gradients)

    evaluate, state = jax.jit(loss_of), (p, first)

    def step():
        nonlocal state
        loss, state = train(state, *fed)
        jax.block_until_ready(state)
        return float(loss)

    def forward():
        return float(evaluate(state[0], *fed))

    print("losses" + label, *[step() for _ in range(3)])
    report("step" + label, settled_seconds(step) * 1e3, "ms")
    report("forward" + label, settled_seconds(forward) * 1e3, "ms")


for label, model in recurrence_cases():
    with jax.enable_x64(model.dtype == "float64"):
        measure(label, model)
