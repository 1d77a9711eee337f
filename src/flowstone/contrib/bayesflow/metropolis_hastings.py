"""The algorithm of Metropolis and Hastings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf

__all__ = ["evolve", "normal_random_proposal", "uniform_random_proposal"]


def evolve(
    initial_sample: Any,
    initial_log_density: Any,
    initial_log_accept_ratio: Any,
    log_unnormalized_prob_fn: Callable[[Any], Any],
    proposal_fn: Callable[[Any], Any],
    n_steps: int = 1,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """The operation that takes Markov chains `n_steps` forward and keeps them in variables.

    Args:
        initial_sample: the variable of states.
        initial_log_density: that of the logarithm of their density.
        initial_log_accept_ratio: that of the logarithm of the last ratio of acceptance.
        log_unnormalized_prob_fn: the logarithm of the density, of states, up to a constant.
        proposal_fn: gives of states new ones, and the logarithm of the ratio of the proposals' densities,
            back over forth, or None for 0.
        n_steps: how many steps.
        seed: of the choices.
        name: the scope of its operations, ``metropolis_hastings`` by default.
    """
    with tf.name_scope(name or "metropolis_hastings"):
        start = tf.convert_to_tensor(initial_sample)

        def step(index: Any, state: Any, log_density: Any, _: Any) -> Any:
            proposal, ratio = proposal_fn(state)
            new_density = log_unnormalized_prob_fn(proposal)
            log_accept = new_density - log_density
            log_accept = log_accept if ratio is None else log_accept + ratio
            uniform = tf.random_uniform(tf.shape(log_accept), dtype=log_accept.dtype, seed=seed)
            accepted = tf.log(uniform) < log_accept
            whole = accepted
            for _axis in range((state.shape.ndims or 0) - (accepted.shape.ndims or 0)):
                whole = whole[..., None]
            state = tf.where(tf.broadcast_to(whole, tf.shape(state)), proposal, state)
            density = tf.where(accepted, new_density, log_density)
            return index + 1, state, density, log_accept

        first = log_unnormalized_prob_fn(start)
        ratio = tf.convert_to_tensor(initial_log_accept_ratio)
        _, sample, density, ratio = tf.while_loop(
            lambda index, *_: index < n_steps, step, (tf.constant(0), start, first, ratio)
        )
        return tf.group(
            tf.assign(initial_sample, sample),
            tf.assign(initial_log_density, density),
            tf.assign(initial_log_accept_ratio, ratio),
        )


def uniform_random_proposal(
    step_size: float = 1.0, seed: int | None = None, name: str | None = None
) -> Callable[[Any], Any]:
    """A proposal for `evolve` that adds uniform noise of -step_size to step_size."""

    def propose(state: Any, interval: Any = step_size) -> Any:
        with tf.name_scope(name or "proposer"):
            state = tf.convert_to_tensor(state, name="state")
            noise = tf.random_uniform(tf.shape(state), -interval, interval, dtype=state.dtype, seed=seed)
            return state + noise, None

    return propose


def normal_random_proposal(
    scale: float = 1.0, seed: int | None = None, name: str | None = None
) -> Callable[[Any], Any]:
    """A proposal for `evolve` that adds normal noise of the standard deviation `scale`."""

    def propose(state: Any, scale: Any = scale) -> Any:
        with tf.name_scope(name or "proposer"):
            state = tf.convert_to_tensor(state, name="state")
            noise = tf.random_normal(tf.shape(state), 0.0, scale, dtype=state.dtype, seed=seed)
            return state + noise, None

    return propose
