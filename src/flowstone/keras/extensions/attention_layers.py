"""`tf.keras.layers.Attention` and `AdditiveAttention`, which the package does not have.

Sources: Luong et al. (2015), arXiv 1508.04025; Bahdanau et al. (2014), arXiv 1409.0473.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import flowstone as tf

__all__ = ["attention_classes"]


def _base_class(layer: Any) -> Any:
    """What both classes derive from."""

    class BaseDenseAttention(layer):  # type: ignore[misc]
        """Attention of queries [batch, Tq, dim] to values [batch, Tv, dim], by their scores with the keys.

        A call takes the list [query, value] or [query, value, key]; without a key, the value is the key.
        `mask`: [mask of the queries, mask of the values], each [batch, T] or None. With `causal`, a position
        attends to none after it.
        """

        def __init__(self, causal: bool = False, **keywords: Any) -> None:
            super().__init__(**keywords)
            self.causal = causal
            self.supports_masking = True

        def _calculate_scores(self, query: Any, key: Any) -> Any:
            """The scores [batch, Tq, Tv] of queries with keys; for subclasses."""
            raise NotImplementedError

        def call(self, inputs: Any, mask: Any = None) -> Any:
            """The sums of values, weighted by attention: [batch, Tq, dim]."""
            self._check(inputs, mask)
            query, value, key = (*inputs, inputs[1])[:3]
            scores = self._calculate_scores(query=query, key=key)
            of_values = mask[1] if mask else None
            allowed = None if of_values is None else tf.expand_dims(of_values, -2)
            if self.causal:
                sizes = tf.shape(scores)
                before = tf.cumsum(tf.ones(sizes[-2:], tf.int32), -2) >= tf.cumsum(
                    tf.ones(sizes[-2:], tf.int32), -1
                )
                before = tf.expand_dims(before, 0)
                allowed = before if allowed is None else tf.logical_and(allowed, before)
            if allowed is not None:
                scores -= 1.0e9 * tf.cast(tf.logical_not(allowed), scores.dtype)
            found = tf.matmul(tf.nn.softmax(scores), value)
            of_queries = mask[0] if mask else None
            if of_queries is not None:
                found *= tf.cast(tf.expand_dims(of_queries, -1), found.dtype)
            return found

        def _check(self, inputs: Any, mask: Any) -> None:
            name = type(self).__name__
            if not isinstance(inputs, list):
                raise ValueError(
                    f"{name} layer must be called on a list of inputs, namely [query, value] or "
                    "[query, value, key]."
                )
            if not 2 <= len(inputs) <= 3:
                raise ValueError(
                    f"{name} layer accepts inputs list of length 2 or 3, namely [query, value] or "
                    f"[query, value, key]. Given length: {len(inputs)}"
                )
            if mask is not None and not isinstance(mask, list):
                raise ValueError(f"{name} layer mask must be a list, namely [query_mask, value_mask].")

        def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
            """That of the queries."""
            if mask is None or mask[0] is None:
                return None
            return tf.convert_to_tensor(mask[0])

        def compute_output_shape(self, input_shape: Any) -> Any:
            """[batch, Tq, dim]."""
            return (*input_shape[0][:-1], input_shape[1][-1])

        def get_config(self) -> dict[str, Any]:
            """What it is made of."""
            return {**super().get_config(), "causal": self.causal}

    return BaseDenseAttention


def attention_classes(layers: ModuleType) -> dict[str, Any]:
    """The classes by their names; `layers`: the package's module, whose `Layer` they derive from."""
    base: Any = _base_class(vars(layers)["Layer"])

    class Attention(base):  # type: ignore[misc]
        """Attention by scalar products; `use_scale`: times a weight."""

        def __init__(self, use_scale: bool = False, **keywords: Any) -> None:
            super().__init__(**keywords)
            self.use_scale = use_scale

        def build(self, input_shape: Any) -> None:
            """Makes the weight."""
            self.scale = self.add_weight("scale", (), None, "ones") if self.use_scale else None
            self.built = True

        def _calculate_scores(self, query: Any, key: Any) -> Any:
            scores = tf.matmul(query, key, transpose_b=True)
            return scores if self.scale is None else scores * self.scale

        def get_config(self) -> dict[str, Any]:
            """What it is made of."""
            return {**super().get_config(), "use_scale": self.use_scale}

    class AdditiveAttention(base):  # type: ignore[misc]
        """Attention by sums of tanh(query + key); `use_scale`: weighted sums."""

        def __init__(self, use_scale: bool = True, **keywords: Any) -> None:
            super().__init__(**keywords)
            self.use_scale = use_scale

        def build(self, input_shape: Any) -> None:
            """Makes the weights, one a dimension."""
            size = [tf.TensorShape(input_shape[1])[-1].value]
            self.scale = self.add_weight("scale", size, None, "glorot_uniform") if self.use_scale else None
            self.built = True

        def _calculate_scores(self, query: Any, key: Any) -> Any:
            terms = tf.tanh(tf.expand_dims(query, -2) + tf.expand_dims(key, -3))
            return tf.reduce_sum(terms if self.scale is None else self.scale * terms, -1)

        def get_config(self) -> dict[str, Any]:
            """What it is made of."""
            return {**super().get_config(), "use_scale": self.use_scale}

    found = {"Attention": Attention, "AdditiveAttention": AdditiveAttention}
    for made in found.values():
        made.__module__ = layers.__name__
    return found
