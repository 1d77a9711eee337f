"""`flowstone.distributions.bijectors`: invertible functions with the logarithms of their Jacobians."""

from flowstone.distributions.bijectors.bijector import Bijector
from flowstone.distributions.bijectors.identity import Identity

__all__ = ["Bijector", "Identity"]
