# ruff: noqa: E501  (a case a line)
"""Draws of contrib's distributions have their moments, and flow gradients where they are reparameterized."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

d = tf.contrib.distributions
b = d.bijectors

TRIL = [[1.0, 0.0], [0.5, 2.0]]
SAMPLED = [
    "d.Poisson([0.5, 4.0])",
    "d.Geometric(probs=[0.2, 0.7])",
    "d.Logistic([0.5, -1.0], [2.0, 0.5])",
    "d.HalfNormal([0.5, 2.0])",
    "d.InverseGamma([7.0, 9.0], 2.0)",
    "d.Chi2([3.0, 5.0])",
    "d.NegativeBinomial([2.0, 5.0], probs=[0.3, 0.6])",
    "d.Kumaraswamy([2.0, 0.7], 1.5)",
    "d.OneHotCategorical(probs=[0.2, 0.3, 0.5], dtype=tf.float32)",
    "d.MultivariateNormalDiag([1.0, -1.0], [0.5, 2.0])",
    "d.MultivariateNormalTriL([1.0, -1.0], TRIL)",
    "d.MultivariateNormalFullCovariance([1.0, -1.0], [[2.0, 0.5], [0.5, 1.0]])",
    "d.MultivariateNormalDiagPlusLowRank([1.0, -1.0], [1.0, 2.0], scale_perturb_factor=[[1.0], [0.5]])",
    "d.VectorLaplaceDiag([1.0, -1.0], [0.5, 2.0])",
    "d.VectorExponentialDiag([1.0, -1.0], [0.5, 2.0])",
    "d.Independent(d.Normal([[0.0, 1.0], [2.0, 3.0]], 2.0))",
    "d.BatchReshape(d.Normal([0.0, 1.0, 2.0, 3.0], 2.0), [2, 2])",
    "d.Mixture(d.Categorical(probs=[0.3, 0.7]), [d.Normal(-1.0, 0.5), d.Normal(2.0, 1.0)])",
    "d.MixtureSameFamily(d.Categorical(probs=[0.3, 0.7]), d.MultivariateNormalDiag([[-1.0, 1.0], [3.0, 0.0]]))",
    "d.WishartCholesky(4.0, TRIL)",
    "d.PoissonLogNormalQuadratureCompound([0.0, 0.2], 0.1, 4, d.quadrature_scheme_lognormal_gauss_hermite)",
    "d.VectorDiffeomixture([[0.5]], [1.0], d.Normal(0.0, 1.0), loc=[None, [2.0, 2.0]], "
    "scale=[tf.linalg.LinearOperatorDiag([1.1, 0.7]), tf.linalg.LinearOperatorDiag([2.5, 3.0])])",
]


def evaluated(text: str) -> Any:
    return eval(text, {"d": d, "b": b, "tf": tf, "TRIL": TRIL})


@pytest.mark.parametrize("text", SAMPLED)
def test_large_samples_have_the_moments(text: str) -> None:
    count = 20000
    with tf.Graph().as_default(), tf.Session() as session:
        p = evaluated(text)
        try:
            mean = p.mean()
        except NotImplementedError:
            mean = p.probs
        drawn, mean, variance = session.run([p.sample(count, seed=5), mean, p.variance()])
    assert drawn.shape == (count, *mean.shape)
    np.testing.assert_array_less(np.abs(drawn.mean(0) - mean), 5 * np.sqrt(variance / count) + 1e-6)
    np.testing.assert_allclose(drawn.astype(np.float64).var(0), variance, rtol=0.12)


@pytest.mark.parametrize(
    "text",
    [
        "d.Cauchy(0.5, 2.0)",
        "d.SinhArcsinh(0.5, 2.0, 0.3, 1.2)",
        "d.QuantizedDistribution(d.Normal(0.4, 2.0), -3.0, 3.0)",
        "d.RelaxedBernoulli(0.7, probs=0.3)",
        "d.TransformedDistribution(d.Normal(0.5, 1.0), b.Exp())",
        "d.LaplaceWithSoftplusScale(0.5, 0.3)",
    ],
)
def test_draws_are_below_as_often_as_the_cdf_says(text: str) -> None:
    points = np.float32([-1.0, 0.0, 0.2, 0.6, 2.0]) if "Relaxed" not in text else np.float32([0.1, 0.5, 0.9])
    if "Exp" in text:
        points = np.abs(points) + np.float32(0.1)
    with tf.Graph().as_default(), tf.Session() as session:
        p = evaluated(text)
        drawn, expected = session.run([p.sample(20000, seed=3), p.cdf(points)])
    found = (drawn[:, None] <= points).mean(0)
    np.testing.assert_allclose(found, expected, atol=0.02)


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("d.RelaxedOneHotCategorical(0.1, probs=probs)", 3),
        ("d.ExpRelaxedOneHotCategorical(0.1, logits=tf.log(probs))", 3),
        ("d.OneHotCategorical(probs=probs)", 3),
    ],
)
def test_the_largest_element_is_the_class_drawn(text: str, classes: int) -> None:
    probs = np.float32([0.2, 0.3, 0.5])
    with tf.Graph().as_default(), tf.Session() as session:
        p = eval(text, {"d": d, "tf": tf, "probs": probs})
        drawn = session.run(p.sample(20000, seed=3))
    found = np.bincount(drawn.argmax(-1), minlength=classes) / len(drawn)
    np.testing.assert_allclose(found, probs, atol=0.02)


def test_autoregressive_draws_depend_on_earlier_elements() -> None:
    def of(x: Any) -> Any:
        earlier = tf.concat([tf.zeros_like(x[..., :1]), x[..., :-1]], -1)
        return d.Independent(d.Normal(2.0 * earlier, 0.1), 1)

    with tf.Graph().as_default(), tf.Session() as session:
        drawn = session.run(d.Autoregressive(of, sample0=np.ones(3, np.float32)).sample(4000, seed=2))
    # The first has the mean 0, and each is near twice the one before.
    np.testing.assert_allclose(drawn[:, 0].std(), 0.1, rtol=0.1)
    np.testing.assert_allclose((drawn[:, 1:] - 2 * drawn[:, :-1]).std(0), 0.1, rtol=0.1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d.MultivariateNormalDiag(loc, tf.ones_like(loc))", [1.0, 1.0]),
        ("d.TransformedDistribution(d.Normal(0., 1.), b.Affine(shift=loc, scale_tril=TRIL), event_shape=[2])", [1.0, 1.0]),
        ("d.Independent(d.Logistic(loc, 1.))", [1.0, 1.0]),
    ],
)  # fmt: skip
def test_gradients_flow_through_draws(text: str, expected: list[float]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        loc = tf.constant([0.5, -1.0])
        p = eval(text, {"d": d, "b": b, "tf": tf, "TRIL": TRIL, "loc": loc})
        assert p.reparameterization_type is d.FULLY_REPARAMETERIZED
        gradient = session.run(tf.gradients(p.sample(seed=1), loc)[0])
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


def test_the_probability_of_a_draw_needs_no_inverse() -> None:
    with tf.Graph().as_default() as graph:
        p = d.TransformedDistribution(d.Normal(0.5, 1.0), b.Exp())
        draw = p.sample(3, seed=1)
        before = {node.name for node in graph.get_operations()}
        p.log_prob(draw)
        added = {node.type for node in graph.get_operations() if node.name not in before}
        assert "Log" not in {kind for kind in added if kind == "Log1p"}
        inverses = [n for n in graph.get_operations() if n.name not in before and "/inverse/" in n.name]
        assert all(node.type not in ("Log", "Exp") for node in inverses)


def test_the_entropy_of_kumaraswamys_distribution_is_the_integral() -> None:
    x = np.linspace(0, 1, 200002)[1:-1].astype(np.float64)
    with tf.Graph().as_default(), tf.Session() as session:
        p = d.Kumaraswamy(np.float64(3.0), np.float64(2.0))
        entropy, log_prob = session.run([p.entropy(), p.log_prob(x)])
    np.testing.assert_allclose(entropy, -(np.exp(log_prob) * log_prob).mean(), rtol=1e-4)


def test_the_determinant_of_inverse_triangles_is_that_of_its_elements() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        elements = tf.constant([0.7, 2.0, -1.0])
        x = d.fill_triangular(elements)
        y = d.fill_triangular_inverse(b.MatrixInverseTriL().forward(x))
        rows = [tf.gradients(y[index], elements)[0] for index in range(3)]
        jacobian, found = session.run([tf.stack(rows), b.MatrixInverseTriL().forward_log_det_jacobian(x, 2)])
    np.testing.assert_allclose(found, np.log(abs(np.linalg.det(jacobian))), rtol=1e-4)


def test_wisharts_with_a_batch_of_degrees_of_freedom() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        p = d.WishartFull([3.0, 5.0], [[2.0, 0.5], [0.5, 1.0]])
        mean, stddev = session.run([p.mean(), p.stddev()])
    scale = np.array([[2.0, 0.5], [0.5, 1.0]])
    diagonal = np.diag(scale)
    variance = scale**2 + np.outer(diagonal, diagonal)
    np.testing.assert_allclose(mean, [3 * scale, 5 * scale], rtol=1e-5)
    np.testing.assert_allclose(stddev, np.linalg.cholesky([3 * variance, 5 * variance]), rtol=1e-5)


def test_shares_by_gauss_and_hermite() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        points, weights = session.run(d.quadrature_scheme_softmaxnormal_gauss_hermite([0.3], [2.0], 12))
        drawn = session.run(tf.sigmoid(tf.random_normal([200000], 0.3, 2.0, seed=1)))
    assert points.shape == (2, 12)
    np.testing.assert_allclose(points.sum(0), 1, rtol=1e-6)
    np.testing.assert_allclose((points * weights).sum(-1), [drawn.mean(), 1 - drawn.mean()], atol=5e-3)


def test_streams_of_seeds() -> None:
    stream, same, other = d.SeedStream(3, "a"), d.SeedStream(3, "a"), d.SeedStream(3, "b")
    seeds = [stream() for _ in range(4)]
    assert seeds == [same() for _ in range(4)] and len(set(seeds)) == 4
    assert other() not in seeds and d.SeedStream(None, "a")() is None
    assert (stream.original_seed, stream.salt) == (3, "a") and d.SeedStream(stream, "c").original_seed == 3


def test_draws_of_an_overridden_event_come_in_the_base_distributions_order() -> None:
    with tf.Graph().as_default(), tf.Session() as s:
        drawn = s.run(d.MultivariateNormalDiag(tf.zeros(2), tf.ones(2)).sample(3, seed=4))
    # From TensorFlow 1.15.5, on a CPU.
    expected = [[0.29629603, -0.03141323], [-0.05471061, 0.03763179], [2.564978, -0.6494583]]
    np.testing.assert_allclose(drawn, expected, rtol=1e-6)
