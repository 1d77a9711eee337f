"""`flowstone.distributions`: probability distributions, their divergences, and bijectors."""

from flowstone.distributions import bijectors
from flowstone.distributions.bernoulli import Bernoulli
from flowstone.distributions.beta import Beta
from flowstone.distributions.categorical import Categorical
from flowstone.distributions.dirichlet import Dirichlet
from flowstone.distributions.dirichlet_multinomial import DirichletMultinomial
from flowstone.distributions.distribution import Distribution
from flowstone.distributions.exponential import Exponential
from flowstone.distributions.gamma import Gamma
from flowstone.distributions.kullback_leibler import RegisterKL, kl_divergence
from flowstone.distributions.laplace import Laplace
from flowstone.distributions.multinomial import Multinomial
from flowstone.distributions.normal import Normal
from flowstone.distributions.reparameterization import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    ReparameterizationType,
)
from flowstone.distributions.student_t import StudentT
from flowstone.distributions.uniform import Uniform

__all__ = [
    "FULLY_REPARAMETERIZED",
    "NOT_REPARAMETERIZED",
    "Bernoulli",
    "Beta",
    "Categorical",
    "Dirichlet",
    "DirichletMultinomial",
    "Distribution",
    "Exponential",
    "Gamma",
    "Laplace",
    "Multinomial",
    "Normal",
    "RegisterKL",
    "ReparameterizationType",
    "StudentT",
    "Uniform",
    "bijectors",
    "kl_divergence",
]
