"""Stochastic tensors, their losses and bounds; names and shapes are TensorFlow 1.4.1's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowstone as tf

bf = tf.contrib.bayesflow
d = tf.contrib.distributions
st = bf.stochastic_tensor
vi = bf.variational_inference
estimators = bf.stochastic_gradient_estimators


@pytest.fixture(autouse=True)
def own_graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(tensors: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensors)


def test_a_draw_is_a_tensor() -> None:
    tensor = st.StochasticTensor(d.Normal(2.0, 1e-6))
    assert (tensor.name, tensor.dtype, tensor.graph) == (
        "StochasticTensor/",
        tf.float32,
        tf.get_default_graph(),
    )
    assert isinstance(tensor, st.BaseStochasticTensor) and tensor.value_type.shape == ()
    assert tensor.loss(tf.constant(1.0)) is None and not tensor.value_type.stop_gradient
    found = run([tf.convert_to_tensor(tensor), tf.add(tensor, 1.0), tensor.mean(), tensor.entropy()])
    np.testing.assert_allclose(found[:3], [2, 3, 2], rtol=1e-4)
    assert found[3] < 0
    with pytest.raises(TypeError, match="Distribution"):
        st.StochasticTensor(3)


def test_types_of_values() -> None:
    with pytest.raises(ValueError, match="value type"):
        st.get_current_value_type()
    with st.value_type(st.MeanValue()) as _:
        mean = st.StochasticTensor(d.Normal([1.0, 2.0], 3.0))
        assert isinstance(st.get_current_value_type(), st.MeanValue)
        with st.value_type(st.SampleValue((3,), stop_gradient=True)):
            draws = st.StochasticTensor(d.Normal([1.0, 2.0], 3.0))
    assert mean.loss(tf.constant(1.0)) is None
    assert draws.value().shape.as_list() == [3, 2] and draws.loss(tf.ones([3, 2])).shape.as_list() == [3, 2]
    np.testing.assert_allclose(run(mean.value()), [1, 2])


def test_observations() -> None:
    seen = st.ObservedStochasticTensor(d.Normal(0.0, 1.0), value=[[1.0, 2.0]])
    assert seen.name == "ObservedStochasticTensor/" and seen.loss(1.0) is None
    np.testing.assert_allclose(run(seen.value()), [[1, 2]])
    with pytest.raises(ValueError, match="Rank of observed value"):
        st.ObservedStochasticTensor(d.Normal([0.0, 1.0], 1.0), value=1.0)


def test_the_gradient_of_an_expected_loss() -> None:
    logits = tf.constant(0.3)
    draw = st.StochasticTensor(d.Bernoulli(logits=logits * tf.ones([40000])))
    loss = tf.square(tf.cast(draw, tf.float32) * 2.0 - 0.5)
    total = bf.stochastic_graph.surrogate_loss([loss])
    gradient, p = run([tf.gradients(total, logits)[0] / 40000.0, tf.sigmoid(logits)])
    np.testing.assert_allclose(gradient, p * (1 - p) * (1.5**2 - 0.5**2), atol=0.02)


def test_surrogate_losses() -> None:
    plain = tf.constant([1.0, 2.0])
    np.testing.assert_allclose(run(bf.stochastic_graph.surrogate_loss([plain])), [1, 2])
    with pytest.raises(ValueError, match="dimensionality"):
        bf.stochastic_graph.surrogate_loss([tf.constant(1.0)])
    with pytest.raises(TypeError, match="list"):
        bf.stochastic_graph.surrogate_loss(plain)


def test_score_functions() -> None:
    draw = st.StochasticTensor(d.Bernoulli(0.3))
    loss, value = tf.constant([3.0]), draw.value()
    plain = estimators.score_function(draw, value, loss)
    lower = estimators.score_function(draw, value, loss, baseline=0.5)
    constant = estimators.get_score_function_with_constant_baseline(0.5, name="x")(draw, value, loss)
    with_baseline = estimators.get_score_function_with_baseline(lambda tensor, loss: loss - 1.0)(
        draw, value, loss
    )
    with_advantage = estimators.get_score_function_with_advantage(lambda tensor, loss: loss * 2.0)(
        draw, value, loss
    )
    found = run([plain, lower, constant, with_baseline, with_advantage, draw.distribution.log_prob(value)])
    np.testing.assert_allclose(np.ravel(found[:5]), np.array([3, 2.5, 2.5, 1, 6]) * found[5], rtol=1e-5)
    assert constant.op.name.startswith("x/") and plain.op.name.startswith("ScoreFunction/")


def test_a_baseline_that_is_a_moving_mean() -> None:
    loss = tf.placeholder_with_default(np.float32([2.0, 4.0]), [2])
    baseline = estimators.get_mean_baseline(0.5)(None, loss)
    assert not tf.trainable_variables()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = [session.run(baseline), session.run(baseline, {loss: [6.0, 6.0]})]
    # The mean of 3, then that of 3 and 6 with half and all of the weight.
    np.testing.assert_allclose(found, [3.0, (0.5 * 3 + 6) / 1.5], rtol=1e-5)


def test_bounds_of_evidence() -> None:
    q, prior = d.Normal(0.0, 1.0), d.Normal(0.5, 2.0)
    z = st.StochasticTensor(q, name="z")
    vi.register_prior(z, prior)
    likelihood = tf.reduce_sum(z.value()) * tf.ones([3])
    forms = vi.ELBOForms
    for form in (forms.default, forms.sample, forms.analytic_kl, forms.analytic_entropy):
        bound = vi.elbo(likelihood, form=form)
        assert bound.shape.as_list() == [3]
        terms = {
            forms.default: -q.kl_divergence(prior),
            forms.analytic_kl: -q.kl_divergence(prior),
            forms.sample: prior.log_prob(z.value()) - q.log_prob(z.value()),
            forms.analytic_entropy: prior.log_prob(z.value()) + q.entropy(),
        }
        found, expected = run([bound, likelihood + terms[form]])
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    given = vi.elbo(likelihood, {z: d.Normal(0.0, 1.0)}, keep_batch_dim=False)
    joint = vi.elbo_with_log_joint(likelihood)
    found = run([given - likelihood, joint - likelihood, q.entropy()])
    np.testing.assert_allclose(found[0], 0, atol=1e-6)
    np.testing.assert_allclose(found[1], found[2], rtol=1e-5)


def test_bounds_of_nothing() -> None:
    with pytest.raises(ValueError, match="stochastic"):
        vi.elbo(tf.constant([1.0]))
    with pytest.raises(TypeError, match="StochasticTensor"):
        vi.register_prior(3, 4)
    with pytest.raises(TypeError, match="constant"):
        vi.ELBOForms.check_form("x")
    with pytest.raises(TypeError, match="analytic_kl"):
        vi.elbo_with_log_joint(tf.constant([1.0]), form=vi.ELBOForms.analytic_kl)


def test_stochastic_variables() -> None:
    variables = bf.stochastic_variables
    getter = variables.make_stochastic_variable_getter(
        dist_cls=d.NormalWithSoftplusScale, prior=d.Normal(0.0, 1.0)
    )
    with tf.variable_scope("sv", custom_getter=getter):
        w = tf.get_variable("w", [2, 3])
    assert isinstance(w, st.StochasticTensor) and w.value().shape.as_list() == [2, 3]
    assert [v.op.name for v in tf.trainable_variables()] == ["sv/w_loc", "sv/w_scale"]
    loss = -vi.elbo(tf.reduce_sum(tf.square(w.value())) * tf.ones([1]), keep_batch_dim=False)
    assert all(gradient is not None for gradient in tf.gradients(loss, tf.trainable_variables()))
    own = variables.get_stochastic_variable(
        tf.get_variable,
        "own",
        [2],
        d.Normal,
        dist_kwargs={"validate_args": True},
        param_initializers={"loc": tf.ones_initializer(), "scale": tf.constant_initializer(1e-6)},
    )
    np.testing.assert_allclose(run(own.value()), [1, 1], rtol=1e-4)
