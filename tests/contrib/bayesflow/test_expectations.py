# ruff: noqa: E501  (a case a line)
"""Expectations, entropies and divergences by samples; the numbers are TensorFlow 1.4.1's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowstone as tf

bf = tf.contrib.bayesflow
d = tf.distributions
U = np.float32([-2, -0.5, 0, 0.3, 1.5])
Z = np.float32([0.1, 0.5, -0.3])


@pytest.fixture(autouse=True)
def own_graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(tensors: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensors)


DIVERGENCES = [
    ("amari_alpha(u)", [-0.27067056, -0.30326533, 0.0, 0.40495765, 6.722533]),
    ("amari_alpha(u, self_normalized=True)", [0.59399414, 0.090204, 0.0, 0.05509883, 3.2408442]),
    ("amari_alpha(u, alpha=0.3)", [2.1485162, 0.6632954, 0.0, -0.44844902, -2.7062488]),
    ("amari_alpha(u, alpha=0.3, self_normalized=True)", [0.91328084, 0.10119635, 0.0, 0.05134931, 2.267593]),
    ("arithmetic_geometric(u)", [1.2794412, 1.1632519, 1.3862944, 1.6551353, 5.2153516]),
    ("arithmetic_geometric(u, self_normalized=True)", [0.49248677, 0.04968968, 0.0, 0.02633735, 1.4157344]),
    ("chi_square(u)", [-0.9816844, -0.63212055, 0.0, 0.8221189, 19.085537]),
    ("jeffreys(u)", [0.86466473, 0.09836733, 0.0, 0.05247882, 2.6112666]),
    ("jensen_shannon(u)", [-0.41477644, -1.0648845, -1.3862944, -1.6026565, -2.604085]),
    ("jensen_shannon(u, self_normalized=True)", [0.37217805, 0.04867765, 0.0, 0.02614155, 1.1955323]),
    ("kl_forward(u)", [-0.27067056, -0.30326533, 0.0, 0.40495765, 6.722533]),
    ("kl_forward(u, self_normalized=True)", [0.59399414, 0.090204, 0.0, 0.05509883, 3.2408442]),
    ("kl_reverse(u)", [2.0, 0.5, 0.0, -0.3, -1.5]),
    ("kl_reverse(u, self_normalized=True)", [1.1353352, 0.10653067, 0.0, 0.04985881, 1.981689]),
    ("log1p_abs(u)", [6.389056, 0.6487213, 0.0, 0.34985882, 3.481689]),
    ("modified_gan(u)", [2.126928, 0.974077, 0.6931472, 0.5543552, 0.20141327]),
    ("modified_gan(u, self_normalized=True)", [1.6945957, 0.7773423, 0.6931472, 0.72928464, 1.9422578]),
    ("pearson(u)", [0.7476451, 0.15481812, 0.0, 0.12240119, 12.122158]),
    ("squared_hellinger(u)", [0.3995764, 0.04892909, 0.0, 0.02619033, 1.247689]),
    ("total_variation(u)", [0.43233237, 0.19673467, 0.0, 0.17492941, 1.7408445]),
    ("triangular(u)", [0.65852356, 0.09636799, 0.0, 0.05208874, 2.211391]),
    ("t_power(u, 0.3)", [0.4511884, 0.13929203, 0.0, -0.09417429, -0.5683122]),
    ("t_power(u, 2.0, self_normalized=True)", [0.7476451, 0.15481812, 0.0, 0.12240124, 12.122159]),
    ("t_power(u, 0.3, self_normalized=True)", [0.19178894, 0.02125122, 0.0, 0.01078336, 0.47619456]),
    ("dual_csiszar_function(u, cs.kl_forward)", [2.0, 0.5, 0.0, -0.3, -1.5]),
    ("symmetrized_csiszar_function(u, cs.jensen_shannon)", [-0.4147764, -1.0648845, -1.3862944, -1.6026565, -2.604085]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), DIVERGENCES)
def test_csiszar_functions(text: str, expected: list[float]) -> None:
    found = run(eval(f"cs.{text}", {"cs": bf.csiszar_divergence, "u": U}))
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-6)


def test_divergences_by_samples() -> None:
    cs, q, p = bf.csiszar_divergence, d.Normal(0.0, 1.0), d.Normal(0.5, 2.0)
    for reparametrize in (None, False):
        found = cs.monte_carlo_csiszar_f_divergence(
            cs.kl_reverse, p.log_prob, q, 20000, reparametrize, seed=1
        )
        np.testing.assert_allclose(*run([found, q.kl_divergence(p)]), atol=0.03)
    with pytest.raises(TypeError, match="callable"):
        cs.monte_carlo_csiszar_f_divergence(cs.kl_reverse, 3, q, 5)


def test_gradients_without_reparametrization() -> None:
    cs, p = bf.csiszar_divergence, d.Normal(0.5, 2.0)
    loc = tf.constant(1.5)
    q = d.Normal(loc, 1.0)
    ways = [
        cs.monte_carlo_csiszar_f_divergence(cs.kl_reverse, p.log_prob, q, 20000, way, seed=1)
        for way in (True, False)
    ]
    expected = tf.gradients(q.kl_divergence(p), loc)[0]
    found, exact = run([[tf.gradients(way, loc)[0] for way in ways], expected])
    np.testing.assert_allclose(found, [exact] * 2, atol=0.05)


def test_vimco() -> None:
    cs, p = bf.csiszar_divergence, d.Normal(0.5, 1.0)
    loc = tf.constant(0.0)
    q = d.Normal(loc, 1.0)
    bound = cs.csiszar_vimco(cs.kl_reverse, p.log_prob, q, 5, num_batch_draws=20000, seed=1)
    value, gradient = run([bound, tf.gradients(bound, loc)[0]])
    # -log of a mean of five is between 0 and KL(q || p), and it falls as q nears p.
    assert 0 < value < 0.125 and gradient < 0
    with pytest.raises(ValueError, match="num_draws"):
        cs.csiszar_vimco(cs.kl_reverse, p.log_prob, q, 1)


def test_entropies_and_bounds() -> None:
    forms, entropy = bf.variational_inference.ELBOForms, bf.entropy
    q, p = d.Normal(0.0, 1.0), d.Normal(0.5, 2.0)
    found = [
        entropy.elbo_ratio(p.log_prob, q, z=Z, form=form)
        for form in (None, forms.sample, forms.analytic_entropy)
    ]
    found += [entropy.entropy_shannon(q, z=Z), entropy.entropy_shannon(q, z=Z, form=forms.sample)]
    found += [entropy.renyi_ratio(p.log_prob, q, 0.3, z=Z)]
    expected = [-0.2264806, -0.66814727, -0.2264806, 1.4189385, 0.97727185, -0.66635484]
    np.testing.assert_allclose(run(found), expected, rtol=1e-5)
    many = run(entropy.elbo_ratio(p.log_prob, q, n=20000, seed=1))
    np.testing.assert_allclose(many, -run(q.kl_divergence(p)), atol=0.02)
    alphas = [entropy.renyi_alpha(step, 10, 0.2) for step in (0, 3, 10, 20)]
    np.testing.assert_allclose(run(alphas), [0.99999, 0.83710426, 0.2, 0.2], rtol=1e-5)
    with pytest.raises(ValueError, match="not handled"):
        entropy.elbo_ratio(p.log_prob, q, z=Z, form=forms.analytic_kl)
    for arguments in ({}, {"z": Z, "n": 3}):
        with pytest.raises(ValueError, match="exactly one"):
            entropy.elbo_ratio(p.log_prob, q, **arguments)


def test_importance_sampling() -> None:
    monte_carlo = bf.monte_carlo
    q, p = d.Normal(0.0, 1.0), d.Normal(0.5, 2.0)
    plain = monte_carlo.expectation_importance_sampler(lambda z: z, p.log_prob, q, z=Z)
    log = monte_carlo.expectation_importance_sampler_logspace(lambda z: tf.log(tf.abs(z)), p.log_prob, q, z=Z)
    np.testing.assert_allclose(run([plain, log]), [0.06256735, -1.8380475], rtol=1e-5)
    near = d.Normal(0.5, 0.9)
    many = monte_carlo.expectation_importance_sampler(lambda z: z, near.log_prob, q, n=40000, seed=1)
    np.testing.assert_allclose(run(many), 0.5, atol=0.03)


def test_expectations() -> None:
    found = bf.monte_carlo.expectation(
        tf.square, tf.constant([[1.0, 2.0], [3.0, 4.0]]), axis=1, keep_dims=True
    )
    np.testing.assert_allclose(run(found), [[2.5], [12.5]])
    with pytest.raises(ValueError, match="log_prob"):
        bf.monte_carlo.expectation(tf.square, Z, use_reparametrization=False)


def test_gradients_that_are_given() -> None:
    custom = bf.custom_grad.custom_gradient
    x = tf.constant([1.0, 2.0])
    each, total = custom(x**2, 3 * x, x), custom(tf.reduce_sum(x**2), 3 * x, x, axis=0)
    found = run([each, total, tf.gradients(each, x)[0], tf.gradients(total, x)[0]])
    np.testing.assert_allclose(found[0], [1, 4])
    np.testing.assert_allclose(found[1], 5)
    np.testing.assert_allclose(found[2:], [[3, 6], [3, 6]])
    stopped = custom(tf.stop_gradient(x**2), tf.constant([5.0, 5.0]), x, fx_gx_manually_stopped=True)
    np.testing.assert_allclose(run(tf.gradients(stopped, x)[0]), [5, 5])


def potential(x: Any) -> Any:
    return tf.reduce_sum(x**2) / 2, x


def test_leapfrog_steps() -> None:
    given = (tf.constant([0.1, 0.2]), tf.constant([1.0, -1.0]), potential, tf.constant([0.1, 0.2]))
    one = run(bf.hmc.leapfrog_step(0.1, *given))
    three = run(bf.hmc.leapfrog_integrator(0.1, 3, *given))
    np.testing.assert_allclose(
        np.hstack(one), [0.1995, 0.099, 0.985025, -1.01495, 0.024800625, 0.1995, 0.099], rtol=1e-5
    )
    expected = [0.39153993, -0.10495012, 0.9257724, -1.0143536, 0.08215903, 0.39153993, -0.10495012]
    np.testing.assert_allclose(np.hstack(three), expected, rtol=1e-5)


def log_normal(x: Any) -> Any:
    return -tf.reduce_sum(tf.square(x - 1.0), -1) / 2


def test_a_chain_has_the_targets_moments() -> None:
    states, acceptance = bf.hmc.chain(300, 0.6, 3, tf.zeros([40, 2]), log_normal, event_dims=[-1])
    tf.set_random_seed(1)
    found, accepted = run([states, acceptance])
    assert found.shape == (300, 40, 2) and accepted.shape == (300, 40)
    np.testing.assert_allclose(found[50:].mean((0, 1)), [1, 1], atol=0.1)
    np.testing.assert_allclose(found[50:].var((0, 1)), [1, 1], rtol=0.1)
    assert 0.8 < accepted.mean() <= 1


def test_a_step_gives_the_density_of_its_state() -> None:
    x, acceptance, log_prob, grad = bf.hmc.kernel(
        0.3, 3, tf.constant([[0.1, 0.2], [0.3, 0.4]]), log_normal, [-1]
    )
    x, again, acceptance, log_prob, grad = run([x, log_normal(x), acceptance, log_prob, grad])
    np.testing.assert_allclose(log_prob, again, rtol=1e-5)
    np.testing.assert_allclose(grad, 1 - x, rtol=1e-4, atol=1e-6)
    assert (acceptance > 0.9).all()


def test_annealed_weights_have_the_ratio_of_normalisers() -> None:
    start = tf.random_normal([2000], seed=2)
    weights, states, acceptance = bf.hmc.ais_chain(
        10, 0.3, 2, start, lambda x: -2.0 * tf.square(x), lambda x: -tf.square(x) / 2
    )
    found, states, acceptance = run([weights, states, acceptance])
    np.testing.assert_allclose(np.exp(found).mean(), 0.5, rtol=0.05)
    np.testing.assert_allclose(states.std(), 0.5, rtol=0.1)
    assert acceptance.shape == (2000,) and acceptance.mean() > 0.8


@pytest.mark.parametrize("kind", ["normal_random_proposal", "uniform_random_proposal"])
def test_metropolis_and_hastings(kind: str) -> None:
    mh = bf.metropolis_hastings
    proposal = getattr(mh, kind)(1.5, seed=1)
    assert proposal(tf.zeros([3]))[1] is None
    state = tf.get_variable("state", [500], initializer=tf.zeros_initializer())
    density, ratio = (
        tf.get_variable(name, [500], initializer=tf.zeros_initializer()) for name in ("density", "ratio")
    )
    step = mh.evolve(state, density, ratio, lambda x: -tf.square(x - 1.0) / 2, proposal, n_steps=40, seed=3)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        x, log = session.run([state, density])
    np.testing.assert_allclose(log, -((x - 1) ** 2) / 2, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose([x.mean(), x.std()], [1, 1], atol=0.2)
