"""Gradients: from outputs backwards to inputs, as an extension of the graph (white paper 4.1)."""

from flowstone.gradients.aggregation import AggregationMethod
from flowstone.gradients.custom_gradients import custom_gradient
from flowstone.gradients.gradient_computation import UnconnectedGradients, gradients
from flowstone.gradients.hessians import hessians
from flowstone.gradients.registration import NoGradient, NotDifferentiable, RegisterGradient

__all__ = [
    "AggregationMethod",
    "NoGradient",
    "NotDifferentiable",
    "RegisterGradient",
    "UnconnectedGradients",
    "custom_gradient",
    "gradients",
    "hessians",
]
