"""Mixtures of any distributions."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.distribution_util import gen_new_seed
from flowstone.distributions import Distribution

__all__ = ["Mixture"]


class Mixture(Distribution):
    """A distribution that draws from one of k components, which a categorical one chooses.

    Args:
        cat: a `Categorical` of k classes, whose batch is the components'.
        components: a list of k distributions of the same type, batch and event.
        validate_args: whether steps check shapes that are not known.
        allow_nan_stats: see `Distribution`.
        use_static_graph: whether samples are drawn of all components and then chosen; samples are drawn so
            in either case, because steps have static plans.
        name: the scope of its operations.

    TypeError for other things than distributions or unlike types, ValueError if the counts or shapes are
    known not to match.
    """

    def __init__(
        self,
        cat: Any,
        components: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        use_static_graph: bool = False,
        name: str = "Mixture",
    ) -> None:
        parameters = dict(locals())
        if not isinstance(cat, tf.distributions.Categorical):
            raise TypeError(f"cat must be a Categorical distribution, but saw: {cat}")
        components = list(components) if isinstance(components, (list, tuple)) else components
        if not components:
            raise ValueError("components must be a non-empty list or tuple")
        _check_components(cat, components)
        with tf.name_scope(name) as scope:
            size = cat.logits.shape[-1].value
            if size is None:
                raise ValueError("Could not infer number of classes from cat and unable to compare.")
            if size != len(components):
                raise ValueError(f"cat has {size} classes, but there are {len(components)} components.")
        self._cat, self._components, self._num_components = cat, components, size
        kinds = tf.distributions
        super().__init__(
            dtype=components[0].dtype,
            reparameterization_type=kinds.NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            name=scope,
        )

    @property
    def cat(self) -> Any:
        """The distribution that chooses a component."""
        return self._cat

    @property
    def components(self) -> Any:
        """The components."""
        return self._components

    @property
    def num_components(self) -> Any:
        """How many components there are."""
        return self._num_components

    def _batch_shape(self) -> Any:
        return self.cat.batch_shape.merge_with(self.components[0].batch_shape)

    def _batch_shape_tensor(self) -> Any:
        return self.cat.batch_shape_tensor()

    def _event_shape(self) -> Any:
        return self.components[0].event_shape

    def _event_shape_tensor(self) -> Any:
        return self.components[0].event_shape_tensor()

    def _log_probs(self) -> Any:
        """The logarithms of the components' shares, a list of tensors [*batch_shape]."""
        return tf.unstack(tf.nn.log_softmax(self.cat.logits), num=self.num_components, axis=-1)

    def _shares(self, value: Any) -> Any:
        """The components' shares [*batch_shape, 1, …], of the rank of a statistic."""
        probs = [tf.exp(each) for each in self._log_probs()]
        for _ in range((value.shape.ndims or 0) - (probs[0].shape.ndims or 0)):
            probs = [each[..., None] for each in probs]
        return probs

    def _mean(self) -> Any:
        means = [each.mean() for each in self.components]
        return tf.add_n([share * mean for share, mean in zip(self._shares(means[0]), means)])

    def _variance(self) -> Any:
        means = [each.mean() for each in self.components]
        variances = [each.variance() for each in self.components]
        shares = self._shares(means[0])
        second = tf.add_n([p * (v + tf.square(m)) for p, m, v in zip(shares, means, variances)])
        return second - tf.square(tf.add_n([p * m for p, m in zip(shares, means)]))

    def _log_prob(self, value: Any) -> Any:
        pairs = zip(self._log_probs(), self.components)
        return tf.reduce_logsumexp(tf.stack([share + each.log_prob(value) for share, each in pairs]), axis=0)

    def _log_cdf(self, value: Any) -> Any:
        pairs = zip(self._log_probs(), self.components)
        return tf.reduce_logsumexp(tf.stack([share + each.log_cdf(value) for share, each in pairs]), axis=0)

    def _prob(self, value: Any) -> Any:
        pairs = zip(self._log_probs(), self.components)
        return tf.add_n([tf.exp(share) * each.prob(value) for share, each in pairs])

    def _cdf(self, value: Any) -> Any:
        pairs = zip(self._log_probs(), self.components)
        return tf.add_n([tf.exp(share) * each.cdf(value) for share, each in pairs])

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        chosen = tf.one_hot(
            self.cat.sample(n, seed=seed), self.num_components, dtype=tf.bool, on_value=True, off_value=False
        )
        draws = None
        for index, component in enumerate(self.components):
            seed = gen_new_seed(seed, "mixture")
            own = component.sample(n, seed=seed)
            is_own = chosen[..., index]
            for _ in range(self.event_shape.ndims or 0):
                is_own = is_own[..., None]
            draws = own if draws is None else tf.where(tf.broadcast_to(is_own, tf.shape(own)), own, draws)
        return draws

    def entropy_lower_bound(self, name: str = "entropy_lower_bound") -> Any:
        """The mean of the components' entropies, which the mixture's is not below."""
        with self._scope(name):
            entropies = [each.entropy() for each in self.components]
            return tf.add_n([tf.exp(p) * each for p, each in zip(self._log_probs(), entropies)])


def _check_components(cat: Any, components: Any) -> None:
    first = components[0]
    if not all(isinstance(each, tf.distributions.Distribution) for each in components):
        raise TypeError(f"all entries in components must be Distribution instances but saw: {components}")
    if not all(each.dtype == first.dtype for each in components):
        raise TypeError("All components must have the same dtype.")
    if not all(first.event_shape.is_compatible_with(each.event_shape) for each in components):
        raise ValueError("components have unlike event shapes.")
    if any(each.event_shape.ndims is None for each in components):
        raise ValueError("Expected to know rank(event_shape) from all components.")
    if not all(cat.batch_shape.is_compatible_with(each.batch_shape) for each in components):
        raise ValueError("components have other batch shapes than cat.")
