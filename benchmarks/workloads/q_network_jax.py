"""q_network in JAX: the whole step one compiled function, parameters donated."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from families import q_network_cases, values
from families_jax import optimiser

from measuring import report, settled_seconds


def measure(label, model):
    activation = {"relu": jax.nn.relu, "tanh": jnp.tanh}[model.activation]
    initial = {name: jnp.array(value) for name, value in values(model.shapes(), model.dtype).items()}
    target = {name: value for name, value in initial.items() if name.startswith("target")}
    own = {name: value for name, value in initial.items() if name.startswith("value")}
    fed = model.transitions()
    first, update = optimiser(model.optimiser, own, model.rate)

    def action_values(p, prefix, x):
        for i in range(len(model.hidden) + 1):
            x = (activation(x) if i else x) @ p[f"{prefix}{i}"] + p[f"{prefix}{i}_bias"]
        return x

    def loss_of(p, target, observed, actions, rewards, following, ends):
        best = action_values(target, "target", following).max(1)
        targets = rewards + (1 - ends) * model.discount * best
        predicted = action_values(p, "value", observed)
        error = jnp.abs(targets - jnp.take_along_axis(predicted, actions[:, None], 1)[:, 0])
        if model.huber:
            return jnp.mean(jnp.where(error > 1, error - 0.5, 0.5 * error * error))
        return jnp.mean(error * error)

    @partial(jax.jit, donate_argnums=0)
    def train(state, target, *fed):
        p, rest = state
        loss, gradients = jax.value_and_grad(loss_of)(p, target, *fed)
        return loss, update(p, rest, gradients)

    @jax.jit
    def best_action(p, observed):
        return action_values(p, "value", observed).argmax(1)

    state = (own, first)

    def step():
        nonlocal state
        loss, state = train(state, target, *fed)
        return float(loss)

    def act():
        return np.asarray(best_action(state[0], fed[0][:1]))

    print("losses" + label, *[step() for _ in range(3)])
    report("step" + label, settled_seconds(step) * 1e3, "ms")
    report("action" + label, settled_seconds(act) * 1e3, "ms")


for label, model in q_network_cases():
    with jax.enable_x64(model.dtype == "float64"):
        measure(label, model)
