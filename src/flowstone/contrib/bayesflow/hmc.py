"""Hamiltonian Monte Carlo."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flowstone as tf

__all__ = ["ais_chain", "chain", "kernel", "leapfrog_integrator", "leapfrog_step"]


LogProb = Callable[[Any], Any]


def _reduced(value: Any, event_dims: Any) -> Any:
    return tf.reduce_sum(value, axis=event_dims) if len(event_dims) else value


def _choices(acceptance: Any, x: Any, event_dims: Any) -> tuple[Any, Any]:
    """Which proposals are taken, with these probabilities: of chains, and of x's shape."""
    accepted = tf.random_uniform(tf.shape(acceptance), dtype=x.dtype) < acceptance
    whole = accepted
    for axis in sorted(each % x.shape.ndims for each in event_dims):
        whole = tf.expand_dims(whole, axis)
    return accepted, tf.broadcast_to(whole, tf.shape(x))


def kernel(
    step_size: Any,
    n_leapfrog_steps: int,
    x: Any,
    target_log_prob_fn: LogProb,
    event_dims: Any = (),
    x_log_prob: Any = None,
    x_grad: Any = None,
    name: str | None = None,
) -> Any:
    """One step of Hamiltonian Monte Carlo (Neal, "MCMC using Hamiltonian dynamics", 2011).

    Args:
        step_size: of the leapfrog integrator; broadcasts with x.
        n_leapfrog_steps: how many of them.
        x: the states of the chains, floating.
        target_log_prob_fn: the logarithm of the density, of the shape of x without the event.
        event_dims: the dimensions of x that are one state.
        x_log_prob, x_grad: the logarithm and its gradient at x, if they are known.
        name: the scope of its operations, ``hmc_kernel`` by default.

    Returns the new states, the probabilities of acceptance, the logarithm and its gradient there.
    """
    with tf.name_scope(name or "hmc_kernel"):
        x = tf.convert_to_tensor(x, name="x")

        def potential_and_grad(position: Any) -> Any:
            log_prob = target_log_prob_fn(position)
            return -log_prob, -tf.gradients(log_prob, position)[0]

        if x_log_prob is None or x_grad is None:
            potential, grad = potential_and_grad(x)
        else:
            potential, grad = -tf.convert_to_tensor(x_log_prob), -tf.convert_to_tensor(x_grad)
        momentum = tf.random_normal(tf.shape(x), dtype=x.dtype)
        new_x, new_momentum, new_potential, new_grad = leapfrog_integrator(
            step_size, n_leapfrog_steps, x, momentum, potential_and_grad, grad
        )
        energy = potential + 0.5 * _reduced(tf.square(momentum), event_dims)
        new_energy = new_potential + 0.5 * _reduced(tf.square(new_momentum), event_dims)
        gain = energy - new_energy
        gain = tf.where(tf.is_finite(gain), gain, tf.fill(tf.shape(gain), tf.constant(-math.inf, gain.dtype)))
        acceptance = tf.exp(tf.minimum(gain, 0.0))
        accepted, whole = _choices(acceptance, x, event_dims)
        return (
            tf.where(whole, new_x, x),
            acceptance,
            -tf.where(accepted, new_potential, potential),
            -tf.where(whole, new_grad, grad),
        )


def chain(
    n_iterations: int,
    step_size: Any,
    n_leapfrog_steps: int,
    initial_x: Any,
    target_log_prob_fn: LogProb,
    event_dims: Any = (),
    name: str | None = None,
) -> Any:
    """The states of Markov chains: `n_iterations` steps of `kernel`, whose arguments the others are.

    Returns the states [n_iterations, ...] after each step, and the probabilities of acceptance.
    """
    with tf.name_scope(name or "hmc_chain"):
        initial_x = tf.convert_to_tensor(initial_x, name="initial_x")
        log_prob = target_log_prob_fn(initial_x)
        grad = tf.gradients(log_prob, initial_x)[0]

        def step(state: Any, _: Any) -> Any:
            x, _, log_prob, grad = state
            return kernel(step_size, n_leapfrog_steps, x, target_log_prob_fn, event_dims, log_prob, grad)

        start = (initial_x, tf.zeros_like(log_prob), log_prob, grad)
        states = tf.scan(step, tf.range(n_iterations), initializer=start)
        return states[0], states[1]


def ais_chain(
    n_iterations: int,
    step_size: Any,
    n_leapfrog_steps: int,
    initial_x: Any,
    target_log_prob_fn: LogProb,
    proposal_log_prob_fn: LogProb,
    event_dims: Any = (),
    name: str | None = None,
) -> Any:
    """Annealed importance sampling from a proposal to a target by Hamiltonian Monte Carlo (Neal, 2001).

    Args:
        n_iterations: how many steps from the proposal to the target.
        initial_x: draws from the proposal.
        proposal_log_prob_fn: the logarithm of the proposal's density.
        step_size, n_leapfrog_steps, target_log_prob_fn, event_dims, name: as of `kernel`.

    Returns the logarithms of the weights, whose exponentials have the ratio of both normalisers as their
    mean; the last states; the mean probabilities of acceptance.
    """
    with tf.name_scope(name or "hmc_ais_chain"):
        x = tf.convert_to_tensor(initial_x, name="initial_x")
        proposal, target = proposal_log_prob_fn(x), target_log_prob_fn(x)

        def step(index: Any, weights: Any, x: Any, total: Any) -> Any:
            beta = (tf.cast(index, x.dtype) + 1.0) / n_iterations

            def between(position: Any) -> Any:
                return (1.0 - beta) * proposal_log_prob_fn(position) + beta * target_log_prob_fn(position)

            weights = weights + (target_log_prob_fn(x) - proposal_log_prob_fn(x)) / n_iterations
            x, acceptance, _, _ = kernel(step_size, n_leapfrog_steps, x, between, event_dims)
            return index + 1, weights, x, total + acceptance

        start = (tf.constant(0), tf.zeros_like(proposal + target), x, tf.zeros_like(proposal + target))
        _, weights, x, total = tf.while_loop(lambda index, *_: index < n_iterations, step, start)
        return weights, x, total / n_iterations


def leapfrog_integrator(
    step_size: Any,
    n_steps: Any,
    initial_position: Any,
    initial_momentum: Any,
    potential_and_grad: Callable[[Any], Any],
    initial_grad: Any,
    name: str | None = None,
) -> Any:
    """`leapfrog_step`, `n_steps` times: the position, the momentum, the potential and its gradient then."""
    with tf.name_scope(name or "leapfrog_integrator"):
        position = tf.convert_to_tensor(initial_position)
        momentum, grad = tf.convert_to_tensor(initial_momentum), tf.convert_to_tensor(initial_grad)
        potential = potential_and_grad(position)[0]

        def body(index: Any, position: Any, momentum: Any, _: Any, grad: Any) -> Any:
            return (index + 1, *leapfrog_step(step_size, position, momentum, potential_and_grad, grad))

        start = (tf.constant(0), position, momentum, potential, grad)
        return tf.while_loop(lambda index, *_: index < n_steps, body, start)[1:]


def leapfrog_step(
    step_size: Any,
    position: Any,
    momentum: Any,
    potential_and_grad: Callable[[Any], Any],
    grad: Any,
    name: str | None = None,
) -> Any:
    """Half a step of the momentum, one of the position, and another half.

    Args:
        step_size: broadcasts with the position.
        position, momentum: of one shape.
        potential_and_grad: gives the potential and its gradient at a position.
        grad: the gradient at the position.
        name: the scope of its operations, ``leapfrog_step`` by default.

    Returns the position, the momentum, the potential and its gradient after the step.
    """
    with tf.name_scope(name or "leapfrog_step"):
        momentum = momentum - 0.5 * step_size * grad
        position = position + step_size * momentum
        potential, grad = potential_and_grad(position)
        return position, momentum - 0.5 * step_size * grad, potential, grad
