"""Lower bounds of evidence by stochastic tensors."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.bayesflow.stochastic_graph import sources
from flowstone.contrib.bayesflow.stochastic_tensor import STOCHASTIC_TENSOR_COLLECTION, StochasticTensor

__all__ = ["ELBOForms", "elbo", "elbo_with_log_joint", "register_prior"]


VI_PRIORS = "__vi_priors__"


class _ELBOForm:
    """A way to compute a bound."""


class ELBOForms:
    """The ways to compute a lower bound of evidence.

    ``sample`` takes every term of the draws, ``analytic_kl`` and ``analytic_entropy`` take the divergence or
    the entropy by formula; ``default`` takes the formula that there is.
    """

    default, sample, analytic_kl, analytic_entropy = (_ELBOForm() for _ in range(4))

    @staticmethod
    def check_form(form: Any) -> None:
        """TypeError unless `form` is one of these."""
        known = (ELBOForms.default, ELBOForms.sample, ELBOForms.analytic_kl, ELBOForms.analytic_entropy)
        if form not in known:
            raise TypeError("form must be an ELBOForms constant")


def _is_stochastic(value: Any) -> bool:
    return isinstance(value, StochasticTensor)


def register_prior(variational: Any, prior: Any) -> None:
    """Notes the prior distribution of a stochastic tensor, for `elbo`. TypeError for other things."""
    if not _is_stochastic(variational):
        raise TypeError("variational must be a StochasticTensor")
    if not isinstance(prior, tf.distributions.Distribution):
        raise TypeError("prior must be a Distribution")
    tf.add_to_collection(VI_PRIORS, (variational, prior))


def elbo(
    log_likelihood: Any,
    variational_with_prior: Any = None,
    keep_batch_dim: bool = True,
    form: Any = None,
    name: str = "ELBO",
) -> Any:
    """log p(x | z) less the divergence of the distributions of z from their priors.

    Args:
        log_likelihood: log p(x | z) at the draws z.
        variational_with_prior: a dict from stochastic tensors to their priors; by default those of
            `register_prior` on which the likelihood depends.
        keep_batch_dim: whether the first dimension of the divergences is one of the likelihood's; else they
            are summed.
        form: of `ELBOForms`; ``default`` by default.
        name: the scope of its operations.

    TypeError for things that are no stochastic tensors and distributions, ValueError if there are none.
    """
    form = form or ELBOForms.default
    with tf.name_scope(name):
        if variational_with_prior is None:
            above = sources(tf.convert_to_tensor(log_likelihood))
            pairs = tf.get_collection(VI_PRIORS)
            variational_with_prior = {q: p for q, p in pairs if q.value().op.name in above}
        return _elbo(form, log_likelihood, None, variational_with_prior, keep_batch_dim)


def elbo_with_log_joint(
    log_joint: Any, variational: Any = None, keep_batch_dim: bool = True, form: Any = None, name: str = "ELBO"
) -> Any:
    """log p(x, z) and the entropies of the distributions of z.

    Args:
        log_joint: log p(x, z) at the draws z.
        variational: the stochastic tensors; by default those of the graph on which it depends.
        keep_batch_dim, name: as of `elbo`.
        form: of `ELBOForms`; ``analytic_kl`` has no meaning here.

    TypeError for ``analytic_kl``.
    """
    form = form or ELBOForms.default
    if form is ELBOForms.analytic_kl:
        raise TypeError("ELBOForms.analytic_kl is not available for elbo_with_log_joint")
    with tf.name_scope(name):
        if variational is None:
            above = sources(tf.convert_to_tensor(log_joint))
            known = tf.get_collection(STOCHASTIC_TENSOR_COLLECTION)
            variational = [each for each in known if each.value().op.name in above]
        return _elbo(form, None, log_joint, dict.fromkeys(variational), keep_batch_dim)


def _elbo(form: Any, log_likelihood: Any, log_joint: Any, priors: Any, keep_batch_dim: bool) -> Any:
    ELBOForms.check_form(form)
    if not priors:
        raise ValueError("No stochastic tensors with priors were found for the bound.")
    for q, p in priors.items():
        if not _is_stochastic(q):
            raise TypeError(f"variational must be StochasticTensors, not {q}")
        if log_joint is None and not isinstance(p, tf.distributions.Distribution):
            raise TypeError(f"priors must be Distributions, not {p}")
    total = log_likelihood if log_joint is None else log_joint
    for q, p in priors.items():
        total = total + _summed(_term(form, q, p), keep_batch_dim)
    return total


def _term(form: Any, q: Any, p: Any) -> Any:
    """-KL(q || p), by formula or of the draw; the entropy of q if there is no p."""
    z, distribution = q.value(), q.distribution
    if p is not None and form in (ELBOForms.default, ELBOForms.analytic_kl):
        try:
            return -tf.distributions.kl_divergence(distribution, p)
        except NotImplementedError:
            if form is ELBOForms.analytic_kl:
                raise
    prior = 0.0 if p is None else p.log_prob(z)
    if form in (ELBOForms.default, ELBOForms.analytic_entropy):
        try:
            return prior + distribution.entropy()
        except NotImplementedError:
            if form is ELBOForms.analytic_entropy:
                raise
    return prior - distribution.log_prob(z)


def _summed(value: Any, keep_batch_dim: bool) -> Any:
    if keep_batch_dim:
        return tf.reduce_sum(value, axis=list(range(1, value.shape.ndims)))
    return tf.reduce_sum(value)
