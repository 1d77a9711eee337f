# ruff: noqa: E501, UP031, B023  (a case a line; Python 3.7; functions are called at once)
"""Expressions of distributions, bijectors and functions, and what is asked of each, by both libraries alike.

The names in an expression: ``tf``, ``d`` (tf.contrib.distributions), ``b`` (its bijectors), ``np``, ``op``
(LinearOperators). It runs on Python 3.7, which TensorFlow 1.15 needs.
"""

import numpy as np

INF = float("inf")
NUMBERS = [-2.5, -1.0, 0.0, 0.3, 1.0, 4.0]
POSITIVE = [0.1, 0.7, 1.0, 2.5, 6.0]
COUNTS = [0.0, 1.0, 2.0, 5.0]
SHARES = [0.05, 0.3, 0.5, 0.92]
PLANE = [[0.5, -1.0], [0.0, 2.0], [3.0, 1.5]]
TRIL = "[[1., 0.], [0.5, 2.]]"

# (name, expression, values)
CASES = [
    ("poisson", "d.Poisson(rate=[[0.5], [3.0]])", [0.0, 1.0, 4.0]),
    ("poisson-log", "d.Poisson(log_rate=[-1.0, 2.0])", [[0.0, 1.0], [3.0, 9.0]]),
    ("geometric", "d.Geometric(probs=[0.2, 0.5, 0.9])", [0.0, 1.0, 4.0]),
    ("geometric-logits", "d.Geometric(logits=[-1.0, 1.0])", [[0.0, 2.0], [1.0, 7.0]]),
    ("logistic", "d.Logistic(0.5, 2.0)", NUMBERS),
    ("logistic-batch", "d.Logistic([[0.5], [1.0]], [2.0, 0.1])", [0.2, 0.9]),
    ("cauchy", "d.Cauchy(0.5, 2.0)", NUMBERS),
    ("cauchy-batch", "d.Cauchy([[0.5], [1.0]], [2.0, 0.1])", [0.2, 0.9]),
    ("half_normal", "d.HalfNormal([1.5])", NUMBERS),
    ("inverse_gamma", "d.InverseGamma(3.0, [[2.0], [0.5]])", POSITIVE),
    ("inverse_gamma-nan", "d.InverseGamma([0.5, 1.5, 2.5], 2.0)", [0.5, 1.0, 2.0]),
    ("inverse_gamma-softplus", "d.InverseGammaWithSoftplusConcentrationRate(3.0, -1.0)", POSITIVE),
    ("chi2", "d.Chi2([1.0, 3.0, 4.5])", [0.5, 1.0, 2.0]),
    ("chi2-abs", "d.Chi2WithAbsDf([-3.7, 4.2])", [0.5, 2.0]),
    ("binomial", "d.Binomial(5.0, probs=[0.2, 0.7, 0.5, 0.9])", COUNTS),
    ("binomial-logits", "d.Binomial([4.0, 6.0], logits=[-1.0, 1.0])", [[0.0, 2.0], [4.0, 6.0]]),
    ("negative_binomial", "d.NegativeBinomial(5.0, probs=[0.2, 0.7, 0.5, 0.9])", COUNTS),
    ("negative_binomial-logits", "d.NegativeBinomial([1.0, 3.5], logits=[[-1.0], [1.0]])", [0.0, 3.0]),
    ("deterministic", "d.Deterministic([0.0, 1.0, 2.0], atol=0.1)", [0.05, 1.2, 2.0]),
    ("deterministic-rtol", "d.Deterministic(10.0, rtol=0.1)", [9.1, 8.9, 11.0, 12.0]),
    ("vector_deterministic", "d.VectorDeterministic([[0.0, 1.0], [2.0, 2.0]])", [[0.0, 1.0], [2.0, 3.0]]),
    ("one_hot", "d.OneHotCategorical(logits=[[0.3, -1.0, 2.0], [0.0, 0.0, 0.5]])", [[1, 0, 0], [0, 0, 1]]),
    ("one_hot-float", "d.OneHotCategorical(probs=[0.3, 0.2, 0.5], dtype=tf.float32)", [0.0, 1.0, 0.0]),
    ("exp_relaxed", "d.ExpRelaxedOneHotCategorical(0.7, logits=[0.3, -1.0, 2.0])", [-1.5, -2.0, -0.4419]),
    ("relaxed_one_hot", "d.RelaxedOneHotCategorical([0.7, 2.0], probs=[[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])", [[0.2, 0.2, 0.6], [0.1, 0.1, 0.8]]),
    ("relaxed_bernoulli", "d.RelaxedBernoulli(0.5, logits=[-1.0, 0.0, 1.0, 3.0])", SHARES),
    ("relaxed_bernoulli-probs", "d.RelaxedBernoulli([0.5, 2.0], probs=[[0.2], [0.6]])", [0.3, 0.9]),
    ("kumaraswamy", "d.Kumaraswamy([2.0, 3.0, 0.5, 1.5], 2.0)", SHARES),
    ("mvn_diag", "d.MultivariateNormalDiag([1.0, -1.0], [1.0, 2.0])", PLANE),
    ("mvn_diag-batch", "d.MultivariateNormalDiag(loc=[[1.0, -1.0], [0.0, 0.0], [1.0, 1.0]], scale_diag=[1.0, 2.0])", PLANE),
    ("mvn_diag-loc", "d.MultivariateNormalDiag(loc=[1.0, -1.0])", PLANE),
    ("mvn_diag-scale", "d.MultivariateNormalDiag(scale_diag=[1.0, -2.0])", PLANE),
    ("mvn_diag-multiplier", "d.MultivariateNormalDiag(loc=[[1.0, -1.0]], scale_identity_multiplier=[1.5, 2.0, 0.5])", PLANE),
    ("mvn_diag-both", "d.MultivariateNormalDiag(scale_diag=[1.0, 2.0], scale_identity_multiplier=0.5)", PLANE),
    ("mvn_diag-softplus", "d.MultivariateNormalDiagWithSoftplusScale([1.0, -1.0], [0.0, 2.0])", PLANE),
    ("mvn_tril", "d.MultivariateNormalTriL([1.0, -1.0], %s)" % TRIL, PLANE),
    ("mvn_tril-batch", "d.MultivariateNormalTriL(scale_tril=[%s, [[2., 9.], [1., 1.]], [[1., 0.], [0., 1.]]])" % TRIL, PLANE),
    ("mvn_tril-loc", "d.MultivariateNormalTriL([1.0, -1.0])", PLANE),
    ("mvn_full", "d.MultivariateNormalFullCovariance([1.0, -1.0], [[2.0, 0.5], [0.5, 1.0]])", PLANE),
    ("mvn_low_rank", "d.MultivariateNormalDiagPlusLowRank([1.0, -1.0], [1.0, 2.0], scale_perturb_factor=[[1.0], [0.5]], scale_perturb_diag=[0.7])", PLANE),
    ("mvn_low_rank-ones", "d.MultivariateNormalDiagPlusLowRank([0.0, 1.0], scale_identity_multiplier=2.0, scale_perturb_factor=[[1.0], [0.5]])", PLANE),
    ("vector_laplace", "d.VectorLaplaceDiag([1.0, -1.0], [1.0, 2.0])", PLANE),
    ("vector_exponential", "d.VectorExponentialDiag([-1.0, -2.0], [1.0, 2.0])", PLANE),
    ("sinh_arcsinh", "d.SinhArcsinh(0.5, [[2.0], [1.0]], skewness=[0.3], tailweight=1.5)", NUMBERS),
    ("sinh_arcsinh-plain", "d.SinhArcsinh([0.5], 2.0)", NUMBERS),
    ("vector_sinh_arcsinh", "d.VectorSinhArcsinhDiag([1.0, -1.0], [1.0, 2.0], skewness=0.2, tailweight=[1.0, 0.8])", PLANE),
    ("vector_sinh_arcsinh-multiplier", "d.VectorSinhArcsinhDiag([1.0, -1.0], scale_identity_multiplier=2.0)", PLANE),
    ("independent", "d.Independent(d.Normal([[0.0, 1.0], [2.0, 3.0], [1.0, 1.0]], 2.0))", PLANE),
    ("independent-all", "d.Independent(d.Bernoulli(probs=[[0.2, 0.6], [0.5, 0.9], [0.3, 0.3]]), reinterpreted_batch_ndims=2)", [[0, 1], [1, 1], [0, 0]]),
    ("batch_reshape", "d.BatchReshape(d.Normal([0.0, 1.0, 2.0, 3.0], 2.0), [2, 2])", [[0.5, -1.0], [0.0, 2.0]]),
    ("batch_reshape-rest", "d.BatchReshape(d.MultivariateNormalDiag([[0., 1.], [2., 3.], [1., 1.]]), [3, -1])", [[[0.5, -1.0]], [[0.0, 2.0]], [[0.1, 0.2]]]),
    ("mixture", "d.Mixture(d.Categorical(probs=[0.3, 0.7]), [d.Normal(-1.0, 0.5), d.Normal(2.0, 1.0)])", NUMBERS),
    ("mixture-batch", "d.Mixture(d.Categorical(logits=[[0.3, 0.7], [1.0, -1.0], [0.0, 0.0]]), [d.Normal([0.0, 1.0, 2.0], 0.5), d.Normal(2.0, [1.0, 2.0, 3.0])])", [0.3, 1.0, 4.0]),
    ("mixture-vectors", "d.Mixture(d.Categorical(probs=[0.3, 0.7]), [d.MultivariateNormalDiag([1.0, -1.0]), d.MultivariateNormalTriL([0.0, 1.0], %s)], use_static_graph=True)" % TRIL, PLANE),
    ("mixture_same_family", "d.MixtureSameFamily(d.Categorical(probs=[0.3, 0.7]), d.Normal([-1.0, 1.0], [0.1, 0.5]))", NUMBERS),
    ("mixture_same_family-vectors", "d.MixtureSameFamily(d.Categorical(probs=[0.3, 0.7]), d.MultivariateNormalDiag([[-1.0, 1.0], [1.0, -1.0]], [1.0, 2.0]))", PLANE),
    ("mixture_same_family-batch", "d.MixtureSameFamily(d.Categorical(logits=[[0.3, 0.7], [1.0, -1.0]]), d.Poisson([[1.0, 2.0], [3.0, 9.0]]))", [1.0, 4.0]),
    ("quantized", "d.QuantizedDistribution(d.Normal(0.5, 2.0), low=-2.0, high=3.0)", [-3.0, -2.0, -1.0, 0.0, 1.0, 3.0]),
    ("quantized-unbounded", "d.QuantizedDistribution(d.Normal([0.5, 3.0], 2.0))", [[-3.0, 4.0], [0.0, 30.0]]),
    ("quantized-exponential", "d.QuantizedDistribution(d.Exponential(0.5), high=5.0)", [0.0, 1.0, 4.0, 5.0]),
    ("quantized-discretised", "d.QuantizedDistribution(d.TransformedDistribution(d.Logistic([1.0], [2.0]), b.AffineScalar(shift=-0.5)), low=0., high=255.)", [0.0, 1.0, 7.0, 255.0]),
    ("log_normal", "d.TransformedDistribution(d.Normal(0.5, 2.0), b.Exp())", POSITIVE),
    ("transformed-affine", "d.TransformedDistribution(d.Normal([0.0, 1.0], 1.0), b.AffineScalar(2.0, -3.0))", [[0.3, 1.0]]),
    ("transformed-event", "d.TransformedDistribution(d.Normal(0.0, 1.0), b.Affine(shift=[1.0, 2.0], scale_tril=%s), event_shape=[2])" % TRIL, PLANE),
    ("transformed-batch", "d.TransformedDistribution(d.Normal(0.0, 2.0), b.Exp(), batch_shape=[3, 1])", [[0.3, 1.0]]),
    ("transformed-both", "d.TransformedDistribution(d.Normal(0.0, 1.0), b.AffineScalar(1.0, 2.0), batch_shape=[2], event_shape=[3])", [[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]]),
    ("transformed-several", "d.TransformedDistribution(d.Normal(0.5, 1.0), b.AbsoluteValue())", POSITIVE),
    ("transformed-softmax", "d.TransformedDistribution(d.MultivariateNormalDiag([0.1, -0.3]), b.SoftmaxCentered())", [[0.2, 0.3, 0.5]]),
    ("transformed-softplus", "d.TransformedDistribution(d.MultivariateNormalDiag([0.1, -0.3]), b.Softplus())", [[0.2, 0.3], [2.0, 30.0]]),
    ("transformed-invert", "d.TransformedDistribution(d.Gamma([1.0, 2.0], 3.0), b.Invert(b.Exp()))", [-1.0, 0.3]),
    ("conditional", "d.ConditionalTransformedDistribution(d.Normal(0.5, 2.0), b.Exp())", POSITIVE),
    ("autoregressive", "d.Autoregressive(lambda x=np.zeros(2, np.float32): d.MultivariateNormalDiag(0.5 * tf.concat([tf.zeros_like(x[..., :1]), x[..., :-1]], -1), [1.0, 2.0]))", PLANE),
    ("autoregressive-start", "d.Autoregressive(lambda x: d.Independent(d.Bernoulli(logits=tf.concat([tf.zeros_like(x[..., :1]), x[..., :-1]], -1), dtype=tf.float32), 1), sample0=np.zeros(3, np.float32))", [[0.0, 1.0, 1.0]]),
    ("wishart", "d.WishartCholesky(3.5, %s)" % TRIL, [[[2.0, 0.5], [0.5, 1.0]]]),
    ("wishart-batch", "d.WishartFull([3.0, 5.0], [[2.0, 0.5], [0.5, 1.0]])", [[2.0, 0.5], [0.5, 1.0]]),
    ("wishart-factors", "d.WishartCholesky(5.0, %s, cholesky_input_output_matrices=True)" % TRIL, [[2.0, 0.0], [0.5, 1.0]]),
    ("poisson_lognormal", "d.PoissonLogNormalQuadratureCompound([0.0, -0.5], [1.0, 0.5])", [0.0, 3.0]),
    ("poisson_lognormal-hermite", "d.PoissonLogNormalQuadratureCompound(0.1, 0.9, 10, d.quadrature_scheme_lognormal_gauss_hermite)", [0.0, 3.0]),
    ("diffeomixture", "d.VectorDiffeomixture([[0.0], [1.0]], [1.0], d.Normal(0.0, 1.0), loc=[None, np.float32([2.0, 2.0])], scale=[op.LinearOperatorScaledIdentity(2, np.float32(1.1), is_positive_definite=True), op.LinearOperatorDiag(np.float32([2.5, 3.0]), is_positive_definite=True)])", PLANE[:2]),
    ("softplus-beta", "d.BetaWithSoftplusConcentration([0.5, 1.0, -1.0, 2.0], 0.3)", SHARES),
    ("softplus-exponential", "d.ExponentialWithSoftplusRate(0.5)", POSITIVE),
    ("softplus-gamma", "d.GammaWithSoftplusConcentrationRate(0.5, [[1.0], [-1.0]])", POSITIVE),
    ("softplus-laplace", "d.LaplaceWithSoftplusScale(0.5, -1.0)", NUMBERS),
    ("softplus-normal", "d.NormalWithSoftplusScale(0.5, -1.0)", NUMBERS),
    ("softplus-student", "d.StudentTWithAbsDfSoftplusScale(-3.7, 0.5, -1.0)", NUMBERS),
    ("posterior", "d.normal_conjugates_known_scale_posterior(d.Normal([0.5], 2.0), 1.5, tf.constant(7.0), 10)", NUMBERS),
    ("predictive", "d.normal_conjugates_known_scale_predictive(d.Normal([0.5], 2.0), 1.5, tf.constant(7.0), 10)", NUMBERS),
]  # fmt: skip

OF_VALUES = ("prob", "log_prob", "cdf", "log_cdf", "survival_function", "log_survival_function")
STATISTICS = ("entropy", "mean", "mode", "variance", "stddev", "covariance")
SHAPES = ("batch_shape_tensor", "event_shape_tensor", "is_scalar_batch", "is_scalar_event")
OTHERS = {
    "mixture": ["p.entropy_lower_bound()"],
    "wishart": ["p.mean_log_det()", "p.log_normalization()", "p.scale()", "p.dimension"],
    "wishart-factors": ["p.mean_log_det()", "p.log_normalization()", "p.scale()"],
    "diffeomixture": ["p.grid", "p.mixture_distribution.probs"],
    "poisson_lognormal": ["p.distribution.rate", "p.mixture_distribution.probs"],
    "mvn_low_rank": ["p.scale.to_dense()", "p.loc"],
    "exp_relaxed": ["p.event_size", "p.temperature", "p.probs"],
}

# (name, expression, x, event_ndims)
BIJECTORS = [
    ("absolute_value", "b.AbsoluteValue()", POSITIVE, (0, 1)),
    ("affine", "b.Affine(shift=[1.0, 2.0], scale_tril=%s)" % TRIL, PLANE, (1, 2)),
    ("affine-diag", "b.Affine(scale_diag=[1.0, -2.0], scale_identity_multiplier=0.5)", PLANE, (1,)),
    ("affine-multiplier", "b.Affine(shift=[1.0, 2.0], scale_identity_multiplier=3.0)", PLANE, (1, 2)),
    ("affine-shift", "b.Affine(shift=[1.0, 2.0])", PLANE, (1,)),
    ("affine-low_rank", "b.Affine(scale_diag=[1.0, 2.0], scale_perturb_factor=[[1.0], [2.0]], scale_perturb_diag=[0.3])", PLANE, (1,)),
    ("affine-low_rank-tril", "b.Affine(scale_tril=%s, scale_perturb_factor=[[1.0], [2.0]])" % TRIL, PLANE, (1,)),
    ("affine-low_rank-identity", "b.Affine(scale_identity_multiplier=2.0, scale_perturb_factor=[[1.0], [2.0]])", PLANE, (1,)),
    ("affine_linear_operator", "b.AffineLinearOperator([1.0, 2.0], op.LinearOperatorLowerTriangular(%s, is_non_singular=True))" % TRIL, PLANE, (1, 2)),
    ("affine_linear_operator-shift", "b.AffineLinearOperator([1.0, 2.0])", PLANE, (1,)),
    ("affine_scalar", "b.AffineScalar([1.0, 2.0], -3.0)", PLANE, (0, 1, 2)),
    ("affine_scalar-none", "b.AffineScalar()", PLANE, (0, 1)),
    ("batch_normalization", "b.BatchNormalization(training=False)", PLANE, (1,)),
    ("chain", "b.Chain([b.Exp(), b.AffineScalar(scale=2.0), b.Softsign()])", NUMBERS, (0, 1)),
    ("chain-vectors", "b.Chain([b.SoftmaxCentered(), b.Affine(scale_tril=%s), b.Sigmoid()])" % TRIL, PLANE, (1, 2)),
    ("chain-matrices", "b.Chain([b.CholeskyOuterProduct(), b.ScaleTriL()])", [[0.3, -1.0, 2.0]], (1, 2)),
    ("chain-none", "b.Chain([])", NUMBERS, (0, 1)),
    ("cholesky_outer_product", "b.CholeskyOuterProduct()", [[[1.0, 0.0], [0.5, 2.0]], [[3.0, 0.0], [-1.0, 0.5]]], (2, 3)),
    ("exp", "b.Exp()", NUMBERS, (0, 1)),
    ("fill_triangular", "b.FillTriangular()", [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], (1, 2)),
    ("fill_triangular-upper", "b.FillTriangular(upper=True)", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], (1,)),
    ("gumbel", "b.Gumbel(0.5, 2.0)", NUMBERS, (0, 1)),
    ("identity", "b.Identity()", PLANE, (0, 1)),
    ("inline", "b.Inline(forward_fn=tf.exp, inverse_fn=tf.log, inverse_log_det_jacobian_fn=lambda y: -tf.log(y), forward_min_event_ndims=0)", NUMBERS, (0, 1)),
    ("invert", "b.Invert(b.Exp())", POSITIVE, (0, 1)),
    ("invert-softmax", "b.Invert(b.SoftmaxCentered())", [[0.2, 0.3, 0.5]], (1, 2)),
    ("kumaraswamy", "b.Kumaraswamy(2.0, 0.7)", SHARES, (0, 1)),
    ("matrix_inverse_tril", "b.MatrixInverseTriL()", [[[1.0, 0.0], [0.5, 2.0]]], (2, 3)),
    ("ordered", "b.Ordered()", [[-1.0, 0.5, 2.0], [0.0, 0.1, 7.0]], (1, 2)),
    ("permute", "b.Permute([2, 0, 1])", [[-1.0, 0.5, 2.0], [0.0, 0.1, 7.0]], (1, 2)),
    ("power_transform", "b.PowerTransform(0.5)", POSITIVE, (0, 1)),
    ("power_transform-exp", "b.PowerTransform()", NUMBERS, (0,)),
    ("real_nvp", "b.RealNVP(1, lambda x, n: (2.0 * x, 0.3 * x))", PLANE, (1, 2)),
    ("real_nvp-shift", "b.RealNVP(1, lambda x, n: (2.0 * x, None), is_constant_jacobian=True)", PLANE, (1,)),
    ("masked_flow", "b.MaskedAutoregressiveFlow(lambda y: (tf.concat([tf.zeros_like(y[..., :1]), y[..., :-1]], -1), 0.1 * tf.concat([tf.zeros_like(y[..., :1]), y[..., :-1]], -1)))", PLANE, (1, 2)),
    ("masked_flow-unrolled", "b.MaskedAutoregressiveFlow(lambda y: (tf.concat([tf.zeros_like(y[..., :1]), y[..., :-1]], -1), None), unroll_loop=True)", PLANE, (1,)),
    ("masked_flow-template", "b.MaskedAutoregressiveFlow(b.masked_autoregressive_default_template([4, 6], kernel_initializer=tf.constant_initializer(0.3)))", PLANE, (1,)),
    ("masked_flow-shift", "b.MaskedAutoregressiveFlow(b.masked_autoregressive_default_template([4], shift_only=True, kernel_initializer=tf.constant_initializer(0.3)))", PLANE, (1,)),
    ("real_nvp-template", "b.RealNVP(1, b.real_nvp_default_template([3], kernel_initializer=tf.constant_initializer(0.3)))", PLANE, (1,)),
    ("reshape", "b.Reshape([2, 3], [6])", [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]], (1, 2)),
    ("reshape-rest", "b.Reshape([3, -1])", [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]], (1,)),
    ("scale_tril", "b.ScaleTriL()", [[1.0, -2.0, 3.0], [0.1, 5.0, 6.0]], (1, 2)),
    ("scale_tril-exp", "b.ScaleTriL(b.Exp(), diag_shift=None)", [1.0, -2.0, 0.3], (1,)),
    ("sigmoid", "b.Sigmoid()", NUMBERS, (0, 1)),
    ("sinh_arcsinh", "b.SinhArcsinh(0.3, 1.5)", NUMBERS, (0, 1)),
    ("softmax_centered", "b.SoftmaxCentered()", PLANE, (1, 2)),
    ("softplus", "b.Softplus()", NUMBERS, (0, 1)),
    ("softplus-soft", "b.Softplus(hinge_softness=2.5)", NUMBERS, (0, 1)),
    ("softsign", "b.Softsign()", NUMBERS, (0, 1)),
    ("square", "b.Square()", POSITIVE, (0, 1)),
    ("transform_diagonal", "b.TransformDiagonal(b.Exp())", [[[1.0, 3.0], [0.5, 2.0]]], (2, 3)),
]  # fmt: skip

FUNCTIONS = [
    "d.fill_triangular([1., 2., 3., 4., 5., 6.])", "d.fill_triangular([[1., 2., 3.], [4., 5., 6.]], upper=True)",
    "d.fill_triangular_inverse([[1., 0.], [2., 3.]])", "d.fill_triangular_inverse([[1., 5., 6.], [0., 3., 4.], [0., 0., 2.]], upper=True)",
    "d.fill_triangular(tf.placeholder_with_default(np.float32([1., 2., 3.]), [None]))",
    "d.matrix_diag_transform([[1., 2.], [3., 4.]], tf.nn.softplus)", "d.matrix_diag_transform([[1., 2.], [3., 4.]])",
    "d.reduce_weighted_logsumexp([[0., 1.], [2., 3.]])", "d.reduce_weighted_logsumexp([[0., 1.], [2., 3.]], w=[-1., 1.], axis=1, keep_dims=True)",
    "d.reduce_weighted_logsumexp([[0., 1.], [2., 3.]], w=[-1., .1], axis=0, return_sign=True)[1]", "d.reduce_weighted_logsumexp([1., 800.], w=[2., -1.])",
    "d.softplus_inverse([1e-8, .1, 1., 40., 1000.])",
    "d.tridiag(below=[1., 2.], diag=[3., 4., 5.], above=[6., 7.])", "d.tridiag(diag=[[3., 4., 5.], [1., 2., 3.]])", "d.tridiag(above=[1., 2.])",
    "d.percentile([1., 5., 3., 2., 9.], 30.)", "d.percentile([1., 5., 3., 2., 9.], 30., interpolation='lower')",
    "d.percentile([[1., 5., 3.], [2., 9., 7.]], 60., axis=[0], interpolation='higher')", "d.percentile([[1., 5., 3.], [2., 9., 7.]], 50., axis=1, keep_dims=True)",
    "d.percentile([1, 5, 3, 2], 100)", "d.percentile([1, 5, 3, 2], 0.)",
    "d.auto_correlation([1., 5., 3., 2., 9., 4.])", "d.auto_correlation([[1., 5., 3.], [2., 9., 4.]], axis=0, center=False, normalize=False)",
    "d.auto_correlation([1., 5., 3., 2., 9., 4.], max_lags=2)",
    "d.quadrature_scheme_lognormal_quantiles([0., 1.], 2., 4)[0]", "d.quadrature_scheme_lognormal_quantiles(0., 2., 4)[1]",
    "d.quadrature_scheme_lognormal_gauss_hermite(tf.constant([0., 1.]), tf.constant([2., 1.]), 3)[0]", "d.quadrature_scheme_lognormal_gauss_hermite(tf.constant(0.), tf.constant(2.), 3)[1]",
    "d.quadrature_scheme_softmaxnormal_quantiles([[0.], [1.]], [2.], 4)[0]", "d.quadrature_scheme_softmaxnormal_quantiles([0.], [2.], 4)[1]",
    "d.moving_mean_variance(tf.constant([1., 2.]), .9)[0]", "d.moving_mean_variance(tf.constant([1., 2.]), .9)[1]",
    "d.assign_log_moving_mean_exp(tf.get_variable('v', [2], initializer=tf.zeros_initializer()), [1., -2.], .7)",
    "d.assign_moving_mean_variance(tf.get_variable('m', [2], initializer=tf.ones_initializer()), tf.get_variable('v', [2], initializer=tf.ones_initializer()), [1., -2.], .7)[1]",
    "d.kl_divergence(d.MultivariateNormalDiag([1., 2.], [1., 3.]), d.MultivariateNormalTriL([0., 1.], [[1., 0.], [.5, 2.]]))",
    "d.kl_divergence(d.MultivariateNormalDiag([1., 2.], [1., 3.]), d.MultivariateNormalDiag([[0., 1.], [2., 2.]], [2., 2.]))",
    "d.MultivariateNormalDiag([1., 2.]).cross_entropy(d.MultivariateNormalDiag([0., 2.]))",
    "d.kl_divergence(d.OneHotCategorical(logits=[1., 2., .5]), d.OneHotCategorical(probs=[.2, .3, .5]))",
    "d.kl_divergence(d.Independent(d.Normal([1., 2.], 1.), 1), d.Independent(d.Normal([0., 2.], 3.), 1))",
    "d.kl_divergence(d.Poisson(1.), d.Poisson(2.))", "d.kl_divergence(d.Chi2(1.), d.Chi2(2.))",
    "d.kl_divergence(d.Laplace(0., 1.), d.Laplace(0., 2.))", "d.kl_divergence(d.Logistic(0., 1.), d.Logistic(0., 2.))", "d.kl_divergence(d.Geometric(.2), d.Geometric(.3))",
    "d.MultivariateNormalDiag([[0., 1.]], [1., 2.]).sample(seed=1).shape.as_list()", "d.MultivariateNormalTriL(scale_tril=[[1., 0.], [.5, 2.]]).sample([3, 4]).shape.as_list()",
    "d.Poisson(tf.placeholder_with_default(np.float32([1., 2.]), None)).batch_shape_tensor()",
    "d.MultivariateNormalDiag(tf.placeholder_with_default(np.float32([[1., 2.]]), None), np.float32([1., 2.])).event_shape_tensor()",
    "tf.gradients(d.MultivariateNormalDiag([1., 2.], [1., 3.]).log_prob([[.1, .2]]), [])",
]  # fmt: skip

FAULTS = [
    "d.Poisson()", "d.Poisson(1., 2.)", "d.Poisson(1)", "d.Poisson(-1., validate_args=True)", "d.Poisson(1., validate_args=True).log_prob(1.5)", "d.Poisson(1., validate_args=True).log_prob(-1.)",
    "d.Poisson(1.).entropy()", "d.Geometric()", "d.Geometric(probs=0., validate_args=True)", "d.Geometric(probs=.5, validate_args=True).log_prob(1.5)", "d.Geometric(probs=1.2, validate_args=True)",
    "d.Logistic(0., -1., validate_args=True)", "d.Logistic(0, 1)", "d.Logistic(0., 1.).quantile(.3)", "d.Cauchy(0., 1., allow_nan_stats=False).mean()", "d.Cauchy(0., 1., allow_nan_stats=False).variance()",
    "d.Cauchy(0., -1., validate_args=True)", "d.HalfNormal(-1., validate_args=True)", "d.InverseGamma(-1., 1., validate_args=True)", "d.InverseGamma(1., 1., allow_nan_stats=False).mean()",
    "d.InverseGamma(1., 1., allow_nan_stats=False).variance()", "d.InverseGamma(1., 1., validate_args=True).prob(-1.)", "d.Chi2(-1., validate_args=True)",
    "d.Binomial(2., probs=.3, validate_args=True).prob(3.)", "d.Binomial(2.5, probs=.3, validate_args=True)", "d.Binomial(2., probs=.3).sample()", "d.Binomial(2., probs=.3).entropy()",
    "d.NegativeBinomial(-2., probs=.3, validate_args=True)", "d.NegativeBinomial(2.)", "d.Deterministic(1., atol=-1., validate_args=True)", "d.VectorDeterministic(1.)", "d.Deterministic(1.).stddev()",
    "d.OneHotCategorical()", "d.OneHotCategorical(probs=[.3, .3], validate_args=True).mode()", "d.OneHotCategorical(probs=[.3, .7]).mean()", "d.OneHotCategorical([0., 1.], validate_args=True).prob([1, 1])",
    "d.RelaxedBernoulli(-1., .3, validate_args=True)", "d.RelaxedBernoulli(1.)", "d.RelaxedOneHotCategorical(1.)", "d.RelaxedBernoulli(1., .3).mean()", "d.RelaxedBernoulli(1., .3).mode()", "d.ExpRelaxedOneHotCategorical(-1., [0., 1.], validate_args=True).sample()",
    "d.Kumaraswamy(-1., 1., validate_args=True)", "d.Kumaraswamy(1., 1., allow_nan_stats=False).mode()", "d.MultivariateNormalDiag()", "d.MultivariateNormalDiag(scale_identity_multiplier=2.)", "d.MultivariateNormalDiag([1, 2])", "d.MultivariateNormalDiag([0., 0.], [1., 0.], validate_args=True)",
    "d.MultivariateNormalDiag([0., 0.], [1., 1., 1.])", "d.MultivariateNormalDiag(0., 1.)", "d.MultivariateNormalTriL()", "d.MultivariateNormalTriL(scale_tril=[[1., 0.], [1., 0.]], validate_args=True)", "d.MultivariateNormalTriL(scale_tril=[1., 2.])",
    "d.MultivariateNormalFullCovariance()", "d.MultivariateNormalFullCovariance(covariance_matrix=[[1., .5], [.2, 1.]], validate_args=True)", "d.MultivariateNormalFullCovariance(covariance_matrix=[[1., 5.], [5., 1.]])", "d.MultivariateNormalDiagPlusLowRank()",
    "d.MultivariateNormalDiag([0., 0.]).cdf([0., 0.])", "d.MultivariateNormalDiag([0., 0.]).quantile(.3)", "d.VectorLaplaceDiag()", "d.VectorExponentialDiag()", "d.VectorSinhArcsinhDiag()", "d.SinhArcsinh(0., 1.).mean()", "d.SinhArcsinh(0., 1., tailweight=-1., validate_args=True)",
    "d.Independent(d.Normal([0.], 1.), reinterpreted_batch_ndims=2)", "d.Independent(d.Normal([0.], 1.)).cdf(1.)", "d.BatchReshape(d.Normal([0., 1.], 1.), [3])", "d.BatchReshape(d.Normal([0., 1.], 1.), 2)",
    "d.Mixture(d.Normal(0., 1.), [d.Normal(0., 1.)])", "d.Mixture(d.Categorical([0., 1.]), [])", "d.Mixture(d.Categorical([0., 1.]), [d.Normal(0., 1.)])", "d.Mixture(d.Categorical([0., 1.]), [d.Normal(0., 1.), 3])", "d.Mixture(d.Categorical([0., 1.]), [d.Normal(0., 1.), d.Bernoulli(.3)])",
    "d.Mixture(d.Categorical([0., 1.]), [d.Normal(0., 1.), d.MultivariateNormalDiag([0., 1.])])", "d.Mixture(d.Categorical([0., 1.]), [d.Normal(0., 1.), d.Normal([0., 1.], 1.)])", "d.Mixture(d.Categorical([0., 1.]), [d.Normal(0., 1.)] * 2).entropy()", "d.Mixture(d.Categorical([0., 1.]), [d.Normal(0., 1.)] * 2).mode()",
    "d.MixtureSameFamily(d.Categorical([0., 1.]), d.Normal([0., 1., 2.], 1.))", "d.MixtureSameFamily(d.Normal(0., 1.), d.Normal([0., 1.], 1.))", "d.MixtureSameFamily(d.Categorical([0., 1.]), d.Normal([0., 1.], 1.)).entropy()",
    "d.QuantizedDistribution(d.Normal(0., 1.), low=2., high=1., validate_args=True)", "d.QuantizedDistribution(d.Normal(0., 1.), validate_args=True).prob(.5)", "d.QuantizedDistribution(d.Normal(0., 1.)).mean()", "d.QuantizedDistribution(d.Normal(0., 1.)).entropy()",
    "d.TransformedDistribution(d.Normal([0., 1.], 1.), b.Exp(), batch_shape=[2])", "d.TransformedDistribution(d.MultivariateNormalDiag([0., 1.]), b.Exp(), event_shape=[2])", "d.TransformedDistribution(d.Normal(0., 1.), b.Exp()).mean()", "d.TransformedDistribution(d.Normal(0., 1.), b.Exp()).entropy()",
    "d.TransformedDistribution(d.Normal(0., 1.), b.AbsoluteValue()).cdf(1.)", "d.TransformedDistribution(d.Normal(0., 1.), b.AbsoluteValue()).mean()", "d.Autoregressive(lambda x: d.Normal(x, 1.), sample0=0., num_steps=0)", "d.WishartFull(1., [[1., 0.], [0., 1.]])",
    "d.WishartCholesky(3., [[-1., 0.], [0., 1.]], validate_args=True)", "d.WishartCholesky(3., [[1., 0.], [0., 1.]], cholesky_input_output_matrices=True).stddev()", "d.kl_divergence(d.Normal(0., 1.), d.Logistic(0., 1.))",
    "b.Exp().forward_log_det_jacobian([1.], event_ndims=.5)", "b.Affine(scale_diag=[1.]).forward_log_det_jacobian([1.], event_ndims=0)", "b.AbsoluteValue().forward_log_det_jacobian([1.], event_ndims=0)",
    "b.Affine(scale_diag=[0.], validate_args=True).forward([1.])", "b.AffineScalar(scale=0., validate_args=True).forward(1.)", "b.AffineLinearOperator(scale=3.)", "b.Chain([b.AbsoluteValue()])", "b.Invert(b.AbsoluteValue())", "b.Exp(validate_args=True).inverse(-1.)", "b.PowerTransform(-1.)",
    "b.CholeskyOuterProduct(validate_args=True).forward([[1., 2.], [3., 4.]])", "b.Gumbel(0., -1., validate_args=True)", "b.Gumbel(validate_args=True).inverse(2.)", "b.Inline(forward_min_event_ndims=0).forward(1.)", "b.Kumaraswamy(-1., validate_args=True)",
    "b.MatrixInverseTriL(validate_args=True).forward([[1., 2.], [3., 4.]])", "b.Ordered(validate_args=True).forward([2., 1.])", "b.Permute([0, 0])", "b.Permute([0., 1.])", "b.RealNVP(0, None)", "b.RealNVP(2, lambda x, n: (x, x)).forward([1., 2.])", "b.Reshape([2, 3], [5])", "b.Reshape([2.5])", "b.Reshape([-1, -1])", "b.Reshape([-2])",
    "b.Reshape([2, 3], [6]).forward([1., 2.])", "b.SoftmaxCentered(validate_args=True).inverse([.2, .3])", "b.Softplus(hinge_softness=0., validate_args=True).forward(1.)", "b.Softsign(validate_args=True).inverse(2.)", "b.Square(validate_args=True).forward(-1.)", "b.SinhArcsinh(tailweight=-1., validate_args=True)",
    "b.FillTriangular().forward([1., 2.])", "b.BatchNormalization(batchnorm_layer=3)", "b.masked_dense(tf.placeholder(tf.float32, [2, None]), 3, 2)", "d.tridiag()", "d.fill_triangular([1., 2.])", "d.percentile([1., 2.], [1., 2.])", "d.percentile([1., 2.], 1., interpolation='linear')", "d.percentile([1., 2.], 101., validate_args=True)",
    "d.normal_conjugates_known_scale_posterior(d.Gamma(1., 1.), 1., tf.constant(1.), 1)", "d.moving_mean_variance(tf.constant(1), .9)",
]  # fmt: skip


def names(tf):
    """What expressions may name."""
    distributions = tf.contrib.distributions
    return {"tf": tf, "d": distributions, "b": distributions.bijectors, "op": tf.linalg, "np": np}


def plain(value):
    """A JSON form of an array."""
    value = np.asarray(value)
    return (
        np.where(np.isfinite(value), value, 0).tolist()
        if value.dtype.kind == "b"
        else value.astype(float).tolist()
    )


def described(tf, session, make):
    """What a call gives: values, dtype and static shape, or the class of its error."""
    try:
        tensor = make()
        if isinstance(tensor, (list, tuple)):
            if not tensor or not hasattr(tensor[0], "dtype"):
                return {"value": list(tensor)}
            tensor = tf.stack(list(tensor))
        session.run(tf.global_variables_initializer())
        value = session.run(tensor)
    except Exception as error:  # whatever the library raises is the answer
        return {"error": type(error).__name__}
    shape = None if tensor.shape.ndims is None else tensor.shape.as_list()
    return {"value": plain(value), "dtype": tensor.dtype.base_dtype.name, "shape": shape}


def answers(tf, name, expression, values):
    """What each method of a distribution answers."""
    found = {}
    with tf.Graph().as_default(), tf.Session() as session:
        p = eval(expression, names(tf))
        numbers = np.asarray(values)
        given = numbers.astype(np.float32 if numbers.dtype.kind == "f" else np.int32)
        for method in OF_VALUES:
            found[method] = described(tf, session, lambda: getattr(p, method)(given))
        for method in STATISTICS + SHAPES:
            found[method] = described(tf, session, lambda: getattr(p, method)())
        if p.event_shape.ndims == 0 and p.batch_shape.ndims == 0:
            found["quantile"] = described(tf, session, lambda: p.quantile(np.float32([0.05, 0.5, 0.9])))
        for text in OTHERS.get(name, ()):
            found[text] = described(tf, session, lambda: eval(text, {"p": p}))
        for sizes in ((), 3, [2, 3]):
            draw = lambda: tf.shape(p.sample(sizes, seed=1))  # noqa: E731
            found["sample " + str(sizes)] = described(tf, session, draw)
        found["static sample"] = described(tf, session, lambda: tf.zeros_like(p.sample([2], seed=1)))
        found["static"] = [
            str(p.batch_shape),
            str(p.event_shape),
            str(p.reparameterization_type).split(": ")[1],
        ]
        if p.dtype.is_floating:
            point = tf.constant(given)
            found["gradient"] = described(tf, session, lambda: tf.gradients(p.log_prob(point), point)[0])
    return found


def bijection(tf, expression, x, event_ndims):
    """What each method of a bijector answers."""
    found = {}
    with tf.Graph().as_default(), tf.Session() as session:
        f = eval(expression, names(tf))
        x = tf.constant(np.asarray(x, np.float32))
        found["forward"] = described(tf, session, lambda: f.forward(x))
        y = f.forward(x)
        y = tf.constant(np.asarray(found["forward"]["value"], np.float32))
        found["inverse"] = described(tf, session, lambda: f.inverse(y))
        for ndims in event_ndims:
            after = ndims - f.forward_min_event_ndims + f.inverse_min_event_ndims
            found["forward_log_det %d" % ndims] = described(
                tf, session, lambda: f.forward_log_det_jacobian(x, event_ndims=ndims)
            )
            found["inverse_log_det %d" % ndims] = described(
                tf, session, lambda: f.inverse_log_det_jacobian(y, event_ndims=after)
            )
        found["facts"] = [
            f.name,
            f.forward_min_event_ndims,
            f.inverse_min_event_ndims,
            bool(f.is_constant_jacobian),
        ]
        event = x.shape[x.shape.ndims - event_ndims[0] :]
        after = f.forward_event_shape(event)
        found["shapes"] = [str(after), str(f.inverse_event_shape(after))]
        found["shape tensors"] = described(
            tf, session, lambda: f.forward_event_shape_tensor(np.int32(event.as_list()))
        )
        found["variables"] = [[v.name, v.shape.as_list()] for v in tf.global_variables()]
    return found


def value_of(tf, expression):
    """What a function gives."""
    with tf.Graph().as_default(), tf.Session() as session:
        return described(tf, session, lambda: eval(expression, names(tf)))


def fault(tf, expression):
    """The class of the error of an expression, or of a step with its value."""
    with tf.Graph().as_default():
        try:
            result = eval(expression, names(tf))
            if isinstance(result, tf.distributions.Distribution):
                for method in ("mean", "log_prob", "sample"):
                    try:
                        arguments = (
                            [np.zeros(result.event_shape.as_list(), np.float32)]
                            if method == "log_prob"
                            else []
                        )
                        tensor = getattr(result, method)(*arguments)
                    except NotImplementedError:
                        continue
                    with tf.Session() as session:
                        session.run(tensor)
            elif hasattr(result, "forward"):
                result = result.forward(np.float32(0.5))
            if hasattr(result, "graph"):
                with tf.Session() as session:
                    session.run(result)
        except Exception as error:  # whatever the library raises is the answer
            return type(error).__name__
    return None
