"""`tf.contrib.distributions`: more distributions than `tf.distributions` has, with bijectors between them."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

_HERE = "flowstone.contrib.distributions"

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.distributions": "FULLY_REPARAMETERIZED NOT_REPARAMETERIZED Bernoulli Beta Categorical"
        " Dirichlet DirichletMultinomial Distribution Exponential Gamma Laplace Multinomial Normal RegisterKL"
        " ReparameterizationType StudentT Uniform kl_divergence",
        f"{_HERE}.autoregressive": "Autoregressive",
        f"{_HERE}.batch_reshape": "BatchReshape",
        f"{_HERE}.binomial": "Binomial",
        f"{_HERE}.cauchy": "Cauchy",
        f"{_HERE}.chi2": "Chi2 Chi2WithAbsDf",
        f"{_HERE}.conditional_distribution": "ConditionalDistribution",
        f"{_HERE}.conditional_transformed_distribution": "ConditionalTransformedDistribution",
        f"{_HERE}.deterministic": "Deterministic VectorDeterministic",
        f"{_HERE}.distribution_util": "fill_triangular fill_triangular_inverse matrix_diag_transform"
        " reduce_weighted_logsumexp softplus_inverse tridiag",
        f"{_HERE}.geometric": "Geometric",
        f"{_HERE}.half_normal": "HalfNormal",
        f"{_HERE}.independent": "Independent",
        f"{_HERE}.inverse_gamma": "InverseGamma InverseGammaWithSoftplusConcentrationRate",
        f"{_HERE}.kumaraswamy": "Kumaraswamy",
        f"{_HERE}.logistic": "Logistic",
        f"{_HERE}.mixture": "Mixture",
        f"{_HERE}.mixture_same_family": "MixtureSameFamily",
        f"{_HERE}.moving_stats": "assign_log_moving_mean_exp assign_moving_mean_variance"
        " moving_mean_variance",
        f"{_HERE}.mvn_diag": "MultivariateNormalDiag MultivariateNormalDiagWithSoftplusScale",
        f"{_HERE}.mvn_diag_plus_low_rank": "MultivariateNormalDiagPlusLowRank",
        f"{_HERE}.mvn_full_covariance": "MultivariateNormalFullCovariance",
        f"{_HERE}.mvn_linear_operator": "MultivariateNormalLinearOperator",
        f"{_HERE}.mvn_tril": "MultivariateNormalTriL",
        f"{_HERE}.negative_binomial": "NegativeBinomial",
        f"{_HERE}.normal_conjugate_posteriors": "normal_conjugates_known_scale_posterior"
        " normal_conjugates_known_scale_predictive",
        f"{_HERE}.onehot_categorical": "OneHotCategorical",
        f"{_HERE}.poisson": "Poisson",
        f"{_HERE}.poisson_lognormal": "PoissonLogNormalQuadratureCompound"
        " quadrature_scheme_lognormal_gauss_hermite quadrature_scheme_lognormal_quantiles",
        f"{_HERE}.quantized_distribution": "QuantizedDistribution",
        f"{_HERE}.relaxed_bernoulli": "RelaxedBernoulli",
        f"{_HERE}.relaxed_onehot_categorical": "ExpRelaxedOneHotCategorical RelaxedOneHotCategorical",
        f"{_HERE}.sample_stats": "auto_correlation percentile",
        f"{_HERE}.seed_stream": "SeedStream",
        f"{_HERE}.sinh_arcsinh": "SinhArcsinh",
        f"{_HERE}.softplus_parameters": "BernoulliWithSigmoidProbs BetaWithSoftplusConcentration"
        " ExponentialWithSoftplusRate GammaWithSoftplusConcentrationRate LaplaceWithSoftplusScale"
        " NormalWithSoftplusScale StudentTWithAbsDfSoftplusScale",
        f"{_HERE}.transformed_distribution": "TransformedDistribution",
        f"{_HERE}.vector_exponential_diag": "VectorExponentialDiag",
        f"{_HERE}.vector_laplace_diag": "VectorLaplaceDiag",
        f"{_HERE}.vector_sinh_arcsinh_diag": "VectorSinhArcsinhDiag",
        f"{_HERE}.vector_diffeomixture": "VectorDiffeomixture"
        " quadrature_scheme_softmaxnormal_gauss_hermite quadrature_scheme_softmaxnormal_quantiles",
        f"{_HERE}.wishart": "WishartCholesky WishartFull",
    },
    "bijectors",
)
