# ruff: noqa: E501  (a case a line)
"""How programs of TensorFlow 1.4 and 1.15 call and extend contrib's distributions and bijectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

d = tf.contrib.distributions
b = d.bijectors


def run(tensors: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensors)


@pytest.fixture(autouse=True)
def own_graph() -> Any:
    with tf.Graph().as_default():
        yield


def test_the_distributions_of_the_core_are_here() -> None:
    for name in (
        "Distribution",
        "Normal",
        "Bernoulli",
        "Categorical",
        "Gamma",
        "kl_divergence",
        "RegisterKL",
    ):
        assert getattr(d, name) is getattr(tf.distributions, name)
    assert issubclass(b.Exp, tf.distributions.bijectors.Bijector)


def test_the_rank_of_events_may_be_the_constructors() -> None:
    x = np.float32([[0.5, 1.0], [2.0, -1.0]])
    once, each = b.Softplus(event_ndims=1), b.Softplus()
    found = run(
        [
            once.forward_log_det_jacobian(x),
            each.forward_log_det_jacobian(x, 1),
            each.forward_log_det_jacobian(x),
        ]
    )
    np.testing.assert_allclose(found[0], found[1])
    np.testing.assert_allclose(found[0], found[2].sum(-1), rtol=1e-6)
    assert run(b.Exp(event_ndims=1).event_ndims) == 1 and b.Exp().event_ndims is None
    np.testing.assert_allclose(
        run(once.inverse_log_det_jacobian(x + 2.0, "name")), run(each.inverse_log_det_jacobian(x + 2.0, 1))
    )


@pytest.mark.parametrize("kind", [b.Exp, b.Softplus, b.AbsoluteValue])
def test_the_rank_in_the_place_of_tensorflow_1_4(kind: Any) -> None:
    x = np.float32([[0.5, 1.0], [2.0, 1.0]])
    ours, named = kind(1), kind(event_ndims=1)
    found = run([f.inverse_log_det_jacobian(x) for f in (ours, named)])
    np.testing.assert_allclose(*found)
    assert ours.validate_args is False and run(ours.event_ndims) == 1
    assert run(b.SoftmaxCentered(0).forward([0.0, 0.0])).shape == (2, 2)


class Doubling(b.Bijector):
    """A bijector as programs of TensorFlow 1.4 define them: it sums over the event itself."""

    def __init__(self) -> None:
        super().__init__(event_ndims=1, name="doubling")

    def _forward(self, x: Any) -> Any:
        return 2.0 * x

    def _inverse(self, y: Any) -> Any:
        return y / 2.0

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -np.float32(np.log(2.0)) * tf.reduce_sum(tf.ones_like(y), axis=-1)


class Tripling(tf.distributions.bijectors.Bijector):
    """The same of `tf.distributions.bijectors`."""

    def __init__(self) -> None:
        super().__init__(event_ndims=1, name="tripling")

    def _forward(self, x: Any) -> Any:
        return 3.0 * x

    def _inverse(self, y: Any) -> Any:
        return y / 3.0

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -np.float32(np.log(3.0)) * tf.reduce_sum(tf.ones_like(y), axis=-1)


@pytest.mark.parametrize(("kind", "factor"), [(Doubling, 2.0), (Tripling, 3.0)])
def test_bijectors_that_sum_over_the_event_themselves(kind: Any, factor: float) -> None:
    p = d.TransformedDistribution(d.MultivariateNormalDiag([0.0, 1.0]), kind())
    same = d.MultivariateNormalDiag([0.0, factor], [factor, factor])
    value = np.float32([[0.5, 1.0], [2.0, -1.0]])
    found, expected = run([p.log_prob(value), same.log_prob(value)])
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    drawn, log_prob, again = run(list(_draw(p)))
    np.testing.assert_allclose(log_prob, again, rtol=1e-4)
    assert drawn.shape == (5, 2)


def _draw(p: Any) -> Any:
    draw = p.sample(5, seed=1)
    yield from (draw, p.log_prob(draw), p.log_prob(tf.identity(draw)))


def test_softmax_of_single_numbers() -> None:
    x = np.float32([-1.0, 0.0, 2.0])
    for f in (b.SigmoidCentered(), b.SoftmaxCentered(event_ndims=0)):
        shares = 1 / (1 + np.exp(-x))
        y, back, forward, inverse = run(
            [f.forward(x), f.inverse(np.stack([shares, 1 - shares], -1)), f.forward_log_det_jacobian(x, 0),
             f.inverse_log_det_jacobian(np.stack([shares, 1 - shares], -1), 1)]
        )  # fmt: skip
        np.testing.assert_allclose(y, np.stack([shares, 1 - shares], -1), rtol=1e-5)
        np.testing.assert_allclose(back, x, atol=1e-5)
        np.testing.assert_allclose(forward, np.log(shares * (1 - shares)), rtol=1e-5)
        np.testing.assert_allclose(inverse, -forward, rtol=1e-4)
        assert f.forward_event_shape([]).as_list() == [2] and f.inverse_event_shape([2]).as_list() == []


def test_words_of_tensorflow_1_4() -> None:
    p = d.Independent(d.Normal([[0.0], [1.0]], 1.0), reduce_batch_ndims=1)
    assert p.event_shape.as_list() == [1] and p.reduce_batch_ndims == p.reinterpreted_batch_ndims == 1
    assert p.distribution.batch_shape.as_list() == [2, 1]
    compound = d.PoissonLogNormalQuadratureCompound(0.0, 1.0, quadrature_polynomial_degree=3)
    assert compound.quadrature_size == compound.quadrature_polynomial_degree == 3
    np.testing.assert_allclose(
        run(d.BernoulliWithSigmoidProbs([0.5]).probs), run(tf.sigmoid([0.5])), rtol=1e-6
    )


class Scaling(b.ConditionalBijector):
    """y = factor x."""

    def __init__(self) -> None:
        super().__init__(forward_min_event_ndims=0, name="scaling")

    def _forward(self, x: Any, factor: Any = 1.0) -> Any:
        return factor * x

    def _inverse(self, y: Any, factor: Any = 1.0) -> Any:
        return y / factor

    def _forward_log_det_jacobian(self, x: Any, factor: Any = 1.0) -> Any:
        return tf.log(factor * tf.ones_like(x))


def test_conditions_of_bijectors() -> None:
    f, x = Scaling(), tf.constant([1.0, 2.0])
    two, three = tf.constant(2.0), tf.constant(3.0)
    found = run([f.forward(x, factor=two), f.forward(x, factor=three), f.inverse(x, factor=two), f.forward(x),
                 f.forward_log_det_jacobian(x, 1, factor=two), f.inverse_log_det_jacobian(x, 0, factor=three)])  # fmt: skip
    np.testing.assert_allclose(found[0], [2, 4])
    np.testing.assert_allclose(found[1], [3, 6])
    np.testing.assert_allclose(found[2], [0.5, 1])
    np.testing.assert_allclose(found[3], [1, 2])
    np.testing.assert_allclose(found[4], 2 * np.log(2), rtol=1e-6)
    np.testing.assert_allclose(found[5], [-np.log(3)] * 2, rtol=1e-6)
    chain = b.Chain([b.Exp(), f])
    np.testing.assert_allclose(run(chain._forward(x, scaling={"factor": two})), np.exp([2.0, 4.0]), rtol=1e-5)


def test_conditions_of_distributions() -> None:
    p = d.ConditionalTransformedDistribution(d.Normal(1.0, 1.0), Scaling())
    condition = {"bijector_kwargs": {"factor": tf.constant(2.0)}}
    same, value = d.Normal(2.0, 2.0), np.float32([0.5, 3.0])
    for method in ("log_prob", "prob", "cdf", "log_cdf", "survival_function", "log_survival_function"):
        found, expected = run([getattr(p, method)(value, **condition), getattr(same, method)(value)])
        np.testing.assert_allclose(found, expected, rtol=1e-5, err_msg=method)
    drawn, plain = run([p.sample(4, seed=1, **condition), p.distribution.sample(4, seed=1)])
    assert drawn.shape == plain.shape == (4,)


class Shifted(d.ConditionalDistribution):
    """A normal distribution whose mean is a condition."""

    def __init__(self) -> None:
        super().__init__(tf.float32, d.FULLY_REPARAMETERIZED, False, True, name="shifted")

    def _batch_shape(self) -> Any:
        return tf.TensorShape([])

    def _event_shape(self) -> Any:
        return tf.TensorShape([])

    def _sample_n(self, n: Any, seed: Any = None, mean: Any = 0.0) -> Any:
        return mean + tf.zeros([n])

    def _log_prob(self, value: Any, mean: Any = 0.0) -> Any:
        return -tf.square(value - mean)

    def _cdf(self, value: Any, mean: Any = 0.0) -> Any:
        return tf.sigmoid(value - mean)


def test_own_conditional_distributions() -> None:
    p = Shifted()
    found = run([p.sample([2], mean=3.0), p.log_prob(1.0, mean=3.0), p.prob(1.0, mean=3.0), p.cdf(1.0, mean=1.0),
                 p.log_cdf(1.0, mean=1.0), p.survival_function(1.0, mean=1.0), p.log_survival_function(1.0, mean=1.0)])  # fmt: skip
    np.testing.assert_allclose(found[0], [3, 3])
    np.testing.assert_allclose(found[1:], [-4, np.exp(-4), 0.5, np.log(0.5), 0.5, np.log(0.5)], rtol=1e-5)


def test_batch_normalization_of_a_batch() -> None:
    y = np.float32([[1.0, 2.0, 4.0], [4.0, 5.0, 9.0]])
    f = b.BatchNormalization()
    x, inverse, forward = run(
        [f.inverse(y), f.inverse_log_det_jacobian(y, 1), f.forward_log_det_jacobian(y, 1)]
    )
    # From TensorFlow 1.15.5, with new variables.
    np.testing.assert_allclose(
        x, [[-0.9997779, -0.9997778, -0.99992], [0.9997778, 0.999778, 0.9999199]], rtol=1e-5
    )
    np.testing.assert_allclose([inverse, forward], [-1.7277453, 1.5 * np.log(1.001)], rtol=1e-3)
    assert {v.op.name for v in tf.trainable_variables()} == {
        "batch_normalization/gamma",
        "batch_normalization/beta",
    }


def test_masks_of_dense_layers() -> None:
    x = tf.constant([[1.0, 10.0, 100.0]])
    ones = tf.ones_initializer()
    shown = b.masked_dense(x, 3, num_blocks=3, kernel_initializer=ones, name="own")
    hidden = b.masked_dense(x, 6, num_blocks=3, exclusive=True, kernel_initializer=ones)
    np.testing.assert_allclose(run(shown), [[1, 11, 111]])
    np.testing.assert_allclose(run(hidden), [[0, 0, 1, 1, 11, 11]])
    assert [v.op.name for v in tf.trainable_variables()][:2] == ["own/kernel", "own/bias"]


def test_a_masked_kernel_stays_masked_in_training() -> None:
    loss = tf.reduce_sum(b.masked_dense(tf.constant([[1.0, 10.0]]), 2, num_blocks=2))
    kernel = tf.trainable_variables()[0]
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run(kernel)[1, 0] == 0


def test_flows_are_trained() -> None:
    shifts = b.masked_autoregressive_default_template([8])
    p = d.TransformedDistribution(d.Normal(0.0, 1.0), b.MaskedAutoregressiveFlow(shifts), event_shape=[2])
    data = np.random.RandomState(0).normal(3.0, 0.5, [64, 2]).astype(np.float32)
    loss = -tf.reduce_mean(p.log_prob(data))
    names = {v.op.name for v in tf.trainable_variables()}
    assert names == {
        f"masked_autoregressive_default_template/dense{n}/{w}" for n in ("", "_1") for w in ("kernel", "bias")
    }
    step = tf.train.AdamOptimizer(0.05).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(loss)
        for _ in range(60):
            session.run(step)
        assert session.run(loss) < before - 2.0
        assert session.run(p.sample(3, seed=1)).shape == (3, 2)


def test_shapes_that_are_known_in_steps_only() -> None:
    loc = tf.placeholder(tf.float32, None)
    scale = tf.placeholder(tf.float32, [None, None])
    p = d.MultivariateNormalTriL(tf.placeholder_with_default(np.float32([0.0, 1.0]), [None]), scale)
    poisson = d.Poisson(loc)
    assert p.event_shape.as_list() == [None] and poisson.batch_shape.ndims is None
    tensors = [
        tf.shape(p.sample(3)),
        p.event_shape_tensor(),
        p.batch_shape_tensor(),
        p.log_prob([[0.0, 1.0]]),
        poisson.sample([2]),
    ]
    with tf.Session() as session:
        found = session.run(tensors, {loc: [1.0, 2.0, 3.0], scale: [[1.0, 0.0], [0.0, 1.0]]})
    assert found[0].tolist() == [3, 2] and found[1].tolist() == [2] and found[2].tolist() == []
    np.testing.assert_allclose(found[3], -np.log(2 * np.pi), rtol=1e-5)
    assert found[4].shape == (2, 3)


def test_copies_and_parameters() -> None:
    p = d.MultivariateNormalDiag([0.0, 1.0], [1.0, 2.0])
    q = p.copy(loc=[5.0, 5.0])
    np.testing.assert_allclose(run(q.mean()), [5, 5])
    np.testing.assert_allclose(run(q.stddev()), [1, 2])
    assert set(p.parameters) == {
        "loc",
        "scale_diag",
        "scale_identity_multiplier",
        "validate_args",
        "allow_nan_stats",
        "name",
    }
    assert run(d.Chi2(3.0).copy(df=7.0).df) == 7
    assert d.Logistic.param_static_shapes([2])["loc"].as_list() == [2]


def test_ranks_that_are_no_numbers() -> None:
    for arguments in ({"forward_min_event_ndims": -1}, {"inverse_min_event_ndims": 0.5}):
        with pytest.raises(ValueError, match="least rank"):
            b.Bijector(**arguments)
    with pytest.raises(ValueError, match="at most one size"):
        b.Reshape([-1, -1])
    with pytest.raises(ValueError, match="only one may be"):
        d.BatchReshape(d.Normal([0.0, 1.0], 1.0), [-1, -1])
    with pytest.raises(NotImplementedError, match="forward_fn"):
        b.Inline(forward_min_event_ndims=0).forward(1.0)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("python.ops.mvn_diag", "MultivariateNormalDiag"),
        ("python.ops.relaxed_onehot_categorical", "RelaxedOneHotCategorical"),
        ("python.ops.bijectors.affine", "Affine"),
        ("python.ops.bijectors.masked_autoregressive", "masked_dense"),
        ("python.ops.distribution_util", "fill_triangular"),
        ("python.ops.vector_laplace_linear_operator", "VectorLaplaceLinearOperator"),
        ("python.ops.mvn_linear_operator", "MultivariateNormalLinearOperator"),
    ],
)
def test_modules_within_the_package(module: str, name: str) -> None:
    found = tf.contrib.distributions
    for part in module.split("."):
        found = getattr(found, part)
    assert callable(getattr(found, name))


def test_one_determinant_for_all_parts_of_an_event_counts_for_each() -> None:
    twice = b.Inline(
        lambda x: 2 * x,
        lambda y: y / 2,
        inverse_log_det_jacobian_fn=lambda y: -tf.log(2.0),
        forward_min_event_ndims=0,
    )
    x = tf.placeholder_with_default([[0.3, -0.7, 2.0], [1.2, 0.4, 0.0]], None)
    with tf.Session() as session:
        found = session.run([twice.forward_log_det_jacobian(each, 1) for each in (tf.ones([2, 3]), x)])
    np.testing.assert_allclose(found, 2 * [3 * np.log(2)], rtol=1e-6)  # TensorFlow 1.15.5: 2.0794


def test_a_transformed_distribution_stands_in_the_scope_of_what_it_transforms() -> None:
    with tf.name_scope("s"):
        normal = d.Normal(0.0, 1.0)
    with tf.name_scope("u"):
        transformed = d.TransformedDistribution(normal, b.Exp())
        assert d.TransformedDistribution(normal).name == "s/Normal/"
    assert transformed.name == "exps/Normal/"
    assert str(transformed).startswith('tfp.distributions.TransformedDistribution("exps/Normal/", ')


def test_templates_of_real_nvp_have_one_name() -> None:
    """As in TensorFlow 1.15, whose checkpoints have it, whatever `name` says."""
    bijectors = tf.contrib.distributions.bijectors
    with tf.Graph().as_default():
        for name in (None, "mine"):
            bijectors.RealNVP(1, bijectors.real_nvp_default_template([3], name=name)).forward(tf.ones([4, 2]))
        scopes = [variable.op.name.split("/")[0] for variable in tf.trainable_variables()[::4]]
    assert scopes == ["real_nvp_default_template", "real_nvp_default_template_1"]


def test_an_event_over_a_batch_has_probabilities() -> None:
    base = tf.distributions.Normal([0.0, 1.0, 2.0], 1.0)
    y = np.float32([[0.5, 1.0], [2.0, 1.5], [3.0, 0.1]])
    found = d.TransformedDistribution(base, b.Exp(), event_shape=[2])
    each = d.TransformedDistribution(base, b.Exp()).log_prob(y.T)
    np.testing.assert_allclose(*run([found.log_prob(y), tf.reduce_sum(each, 0)]), rtol=1e-5)


@pytest.mark.parametrize("sample", [(), (4,), (4, 2)])
def test_vectors_go_through_operators_of_a_batch_as_columns(sample: Any) -> None:
    x = np.random.RandomState(0).randn(*sample, 3, 2).astype(np.float32)
    scale = np.float32([[[2.0, 0.0], [k, 1.0]] for k in range(3)])
    for given in (tf.constant(x), tf.placeholder_with_default(x, None)):
        affine = b.AffineLinearOperator(
            1.0, tf.linalg.LinearOperatorLowerTriangular(scale, is_non_singular=True)
        )
        y = affine.forward(given)
        back = affine.inverse(tf.identity(y))
        found = run([y, back])
        np.testing.assert_allclose(
            found[0], np.einsum("bij,...bj->...bi", scale, x) + 1.0, rtol=1e-5, atol=1e-5
        )
        np.testing.assert_allclose(found[1], x, rtol=1e-4, atol=1e-5)
