"""`tf.contrib.bayesflow`: expectations by samples, Markov chains, and stochastic tensors."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {},
    "csiszar_divergence custom_grad entropy hmc metropolis_hastings monte_carlo"
    " stochastic_gradient_estimators stochastic_graph stochastic_tensor stochastic_variables"
    " variational_inference",
)
