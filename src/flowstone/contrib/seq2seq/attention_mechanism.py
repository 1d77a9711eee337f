"""Mechanisms of attention: how well each entry of a memory fits a query.

A mechanism is called with a query [batch, depth] and its state, which is the alignments of the step before,
and returns the alignments [batch, entries] and the next state. `keys` are the memory through the memory
layer, `values` the memory itself with zeros after each sequence's end.

Variables: memory_layer/kernel in the scope where the mechanism is made; in that of the call
``luong_attention/attention_g``, or ``bahdanau_attention/query_layer/kernel``, ``attention_v``,
``attention_g`` and ``attention_b``; monotonic ones also ``attention_score_bias``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.seq2seq.attention_probabilities import monotonic_attention
from flowstone.framework.tensors import nest
from flowstone.layers.cell_state import zero_state

__all__ = [
    "AttentionMechanism",
    "BahdanauAttention",
    "BahdanauMonotonicAttention",
    "LuongAttention",
    "LuongMonotonicAttention",
]


class AttentionMechanism:
    """The base of mechanisms."""

    @property
    def alignments_size(self) -> Any:
        """The number of entries."""
        raise NotImplementedError

    @property
    def state_size(self) -> Any:
        """The size of the state."""
        raise NotImplementedError


def _size_of(tensor: Any, axis: int) -> Any:
    known = tensor.get_shape().as_list()[axis] if tensor.get_shape().ndims is not None else None
    return tf.shape(tensor)[axis] if known is None else known


def _prepare_memory(
    memory: Any,
    memory_sequence_length: Any = None,
    memory_mask: Any = None,
    check_inner_dims_defined: bool = True,
) -> Any:
    """The memory, a tensor or a structure of them, with zeros after each sequence's end.

    ValueError for sizes that are not known, or lengths and a mask at once.
    """
    memory = nest.map_structure(lambda m: tf.convert_to_tensor(m, name="memory"), memory)
    if memory_sequence_length is not None and memory_mask is not None:
        raise ValueError("memory_sequence_length and memory_mask can't be provided at same time.")
    if check_inner_dims_defined:
        for each in nest.flatten(memory):
            if not each.get_shape()[2:].is_fully_defined():
                raise ValueError(
                    f"Expected memory {each.name} to have fully defined inner dims, but saw shape:"
                    f" {each.get_shape()}"
                )
    if memory_sequence_length is None and memory_mask is None:
        return memory
    if memory_sequence_length is not None:
        memory_sequence_length = tf.convert_to_tensor(memory_sequence_length, name="memory_sequence_length")
    if memory_mask is None:
        longest = tf.shape(nest.flatten(memory)[0])[1]
        mask = tf.sequence_mask(memory_sequence_length, longest, dtype=nest.flatten(memory)[0].dtype)
    else:
        mask = tf.cast(memory_mask, nest.flatten(memory)[0].dtype)

    def masked(each: Any) -> Any:
        if each.shape.ndims is None:
            ones = tf.ones([tf.rank(each) - 2], tf.int32)
        else:
            ones = tf.ones(each.shape.ndims - 2, tf.int32)
        shape = tf.concat((tf.shape(mask), ones), 0)
        widened = tf.reshape(mask, shape)
        result = each * widened
        result.set_shape(each.get_shape())
        return result

    return nest.map_structure(masked, memory)


def _maybe_mask_score(score: Any, memory_sequence_length: Any, score_mask_value: Any) -> Any:
    """The score, with `score_mask_value` after each sequence's end."""
    if memory_sequence_length is None:
        return score
    message = "All values in memory_sequence_length must be greater than zero."
    with tf.control_dependencies([tf.assert_positive(memory_sequence_length, message=message)]):
        mask = tf.sequence_mask(memory_sequence_length, maxlen=tf.shape(score)[1])
    return tf.where(mask, score, score_mask_value * tf.ones_like(score))


class _BaseAttentionMechanism(AttentionMechanism):
    """The memory, its keys and values, and the function that makes alignments of scores."""

    def __init__(
        self,
        query_layer: Any,
        memory: Any,
        probability_fn: Callable[..., Any],
        memory_sequence_length: Any = None,
        memory_layer: Any = None,
        check_inner_dims_defined: bool = True,
        score_mask_value: Any = None,
        custom_key_value_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        for argument, layer in (("query_layer", query_layer), ("memory_layer", memory_layer)):
            if layer is not None and not isinstance(layer, tf.layers.Layer):
                raise TypeError(f"{argument} is not a Layer: {type(layer).__name__}")
        self._query_layer, self._memory_layer = query_layer, memory_layer
        self.dtype = memory_layer.dtype if memory_layer is not None else nest.flatten(memory)[0].dtype
        if not callable(probability_fn):
            raise TypeError(f"probability_fn must be callable, saw type: {type(probability_fn).__name__}")
        if score_mask_value is None:
            score_mask_value = tf.as_dtype(self.dtype).as_numpy_dtype(-np.inf)
        self._memory_sequence_length, self._score_mask_value = memory_sequence_length, score_mask_value
        self._given_probability_fn = probability_fn
        with tf.name_scope(name, "BaseAttentionMechanismInit", nest.flatten(memory)):
            self._values = _prepare_memory(
                memory, memory_sequence_length, check_inner_dims_defined=check_inner_dims_defined
            )
            self._keys = self._values if memory_layer is None else memory_layer(self._values)
            if custom_key_value_fn is not None:
                self._keys, self._values = custom_key_value_fn(self._keys, self._values)
            self._batch_size, self._alignments_size = _size_of(self._keys, 0), _size_of(self._keys, 1)

    def _probability_fn(self, score: Any, previous: Any) -> Any:
        masked = _maybe_mask_score(score, self._memory_sequence_length, self._score_mask_value)
        return self._given_probability_fn(masked, previous)

    memory_layer = property(lambda self: self._memory_layer, doc="The layer that makes the keys, or None.")
    query_layer = property(lambda self: self._query_layer, doc="The layer that queries go through, or None.")
    values = property(lambda self: self._values, doc="The memory, zero after each sequence's end.")
    keys = property(lambda self: self._keys, doc="The memory through the memory layer.")
    batch_size = property(lambda self: self._batch_size, doc="The number of sequences.")

    @property
    def alignments_size(self) -> Any:
        """The number of the memory's entries."""
        return self._alignments_size

    @property
    def state_size(self) -> Any:
        """The number of the memory's entries: the state is the alignments."""
        return self._alignments_size

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros [batch, entries]."""
        return _zero_state_tensors(self._alignments_size, batch_size, dtype)

    def initial_state(self, batch_size: Any, dtype: Any) -> Any:
        """The first state, which is the first alignments."""
        return self.initial_alignments(batch_size, dtype)


def _zero_state_tensors(state_size: Any, batch_size: Any, dtype: Any) -> Any:
    """Zeros [batch, *size] for every size in the structure."""
    return zero_state(state_size, batch_size, dtype)


def _softmax_of(probability_fn: Callable[..., Any] | None) -> Callable[..., Any]:
    chosen = probability_fn or tf.nn.softmax
    return lambda score, _: chosen(score)


def _dense(units: Any, name: str, dtype: Any) -> Any:
    return tf.layers.Dense(units, name=name, use_bias=False, dtype=dtype)


def _luong_score(query: Any, keys: Any, scale: Any) -> Any:
    """query · keys [batch, entries], times `scale` unless it is None. ValueError if their depths differ."""
    depth, key_units = query.get_shape()[-1], keys.get_shape()[-1]
    if depth != key_units:
        raise ValueError(
            "Incompatible or unknown inner dimensions between query and keys. "
            f"Query ({query}) has units: {depth}. Keys ({keys}) have units: {key_units}. "
            "Perhaps you need to set num_units to the keys' dimension."
        )
    score = tf.squeeze(tf.matmul(tf.expand_dims(query, 1), keys, transpose_b=True), [1])
    return score if scale is None else scale * score


class LuongAttention(_BaseAttentionMechanism):
    """Attention by the product of query and keys (Luong et al. 2015, https://arxiv.org/abs/1508.04025).

    Args:
        num_units: the depth of queries and keys.
        memory: [batch, entries, …].
        memory_sequence_length: [batch] integers; entries after it have no weight.
        scale: whether to multiply the score by a variable.
        probability_fn: function of scores; default: softmax.
        score_mask_value: the score of masked entries; default: -infinity.
        dtype: of the memory layer; default: float32.
        custom_key_value_fn: function of keys and values that returns others.
        name: of the operations.
    """

    def __init__(
        self,
        num_units: Any,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Callable[..., Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable[..., Any] | None = None,
        name: str = "LuongAttention",
    ) -> None:
        super().__init__(
            query_layer=None,
            memory_layer=_dense(num_units, "memory_layer", dtype or tf.float32),
            memory=memory,
            probability_fn=_softmax_of(probability_fn),
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units, self._scale, self._name = num_units, scale, name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """The alignments [batch, entries] for `query` [batch, num_units], and the next state."""
        with tf.variable_scope(None, "luong_attention", [query]):
            factor = None
            if self._scale:
                factor = tf.get_variable(
                    "attention_g", dtype=query.dtype, initializer=tf.ones_initializer, shape=()
                )
            score = _luong_score(query, self._keys, factor)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


def _bahdanau_score(
    processed_query: Any, keys: Any, attention_v: Any, attention_g: Any = None, attention_b: Any = None
) -> Any:
    """sum(v · tanh(keys + query)) [batch, entries]; normalised with g and b: g v / |v|, tanh(keys + query +
    b)."""
    query = tf.expand_dims(processed_query, 1)
    if attention_g is None or attention_b is None:
        return tf.reduce_sum(attention_v * tf.tanh(keys + query), [2])
    normed_v = attention_g * attention_v * tf.rsqrt(tf.reduce_sum(tf.square(attention_v)))
    return tf.reduce_sum(normed_v * tf.tanh(keys + query + attention_b), [2])


def _bahdanau_variables(num_units: Any, dtype: Any, normalize: bool) -> list[Any]:
    """attention_v, and if `normalize` attention_g and attention_b."""
    found = [tf.get_variable("attention_v", [num_units], dtype=dtype)]
    if normalize:
        gain = tf.constant_initializer(math.sqrt(1.0 / num_units))
        found.append(tf.get_variable("attention_g", dtype=dtype, initializer=gain, shape=()))
        found.append(
            tf.get_variable("attention_b", [num_units], dtype=dtype, initializer=tf.zeros_initializer())
        )
    return found


class BahdanauAttention(_BaseAttentionMechanism):
    """Attention by a layer of tanh over query and keys (Bahdanau et al. 2015,
    https://arxiv.org/abs/1409.0473).

    Args:
        num_units: the depth of the query and memory layers.
        memory, memory_sequence_length, probability_fn, score_mask_value, dtype, custom_key_value_fn, name:
            see `LuongAttention`.
        normalize: whether v is normalised (Salimans and Kingma 2016, https://arxiv.org/abs/1602.07868).
    """

    def __init__(
        self,
        num_units: Any,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Callable[..., Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable[..., Any] | None = None,
        name: str = "BahdanauAttention",
    ) -> None:
        super().__init__(
            query_layer=_dense(num_units, "query_layer", dtype or tf.float32),
            memory_layer=_dense(num_units, "memory_layer", dtype or tf.float32),
            memory=memory,
            probability_fn=_softmax_of(probability_fn),
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units, self._normalize, self._name = num_units, normalize, name

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """The alignments [batch, entries] for `query` [batch, depth], and the next state."""
        with tf.variable_scope(None, "bahdanau_attention", [query]):
            processed = query if self.query_layer is None else self.query_layer(query)
            weights = _bahdanau_variables(self._num_units, query.dtype, self._normalize)
            score = _bahdanau_score(processed, self._keys, *weights)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


def _monotonic_probability_fn(
    score: Any, previous_alignments: Any, sigmoid_noise: Any, mode: str, seed: int | None = None
) -> Any:
    """Monotonic attention, whose choices have the probability sigmoid(score), in training with noise."""
    if sigmoid_noise > 0:
        score += sigmoid_noise * tf.random_normal(tf.shape(score), dtype=score.dtype, seed=seed)
    p_choose_i = tf.cast(score > 0, score.dtype) if mode == "hard" else tf.sigmoid(score)
    return monotonic_attention(p_choose_i, previous_alignments, mode)


class _BaseMonotonicAttentionMechanism(_BaseAttentionMechanism):
    """A mechanism whose attention only moves forwards, from the first entry."""

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """1 for the first entry, 0 for the others, [batch, entries]."""
        return tf.one_hot(tf.zeros((batch_size,), dtype=tf.int32), self._alignments_size, dtype=dtype)


def _score_bias(dtype: Any, value: Any) -> Any:
    return tf.get_variable("attention_score_bias", dtype=dtype, initializer=value)


class BahdanauMonotonicAttention(_BaseMonotonicAttentionMechanism):
    """Monotonic attention (Raffel et al. 2017, https://arxiv.org/abs/1704.00784) with the score of Bahdanau.

    Args:
        num_units, memory, memory_sequence_length, normalize, score_mask_value, dtype, name: see
            `BahdanauAttention`.
        sigmoid_noise: the standard deviation of noise added to scores. sigmoid_noise_seed: its seed.
        score_bias_init: the first value of the variable added to scores.
        mode: of `monotonic_attention`.
    """

    def __init__(
        self,
        num_units: Any,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: Any = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: Any = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "BahdanauMonotonicAttention",
    ) -> None:
        super().__init__(
            query_layer=_dense(num_units, "query_layer", dtype or tf.float32),
            memory_layer=_dense(num_units, "memory_layer", dtype or tf.float32),
            memory=memory,
            probability_fn=functools.partial(
                _monotonic_probability_fn, sigmoid_noise=sigmoid_noise, mode=mode, seed=sigmoid_noise_seed
            ),
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units, self._normalize, self._name = num_units, normalize, name
        self._score_bias_init = score_bias_init

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """The alignments [batch, entries] for `query` [batch, depth], and the next state."""
        with tf.variable_scope(None, "bahdanau_monotonic_attention", [query]):
            processed = query if self.query_layer is None else self.query_layer(query)
            weights = _bahdanau_variables(self._num_units, query.dtype, self._normalize)
            score = _bahdanau_score(processed, self._keys, *weights)
            score += _score_bias(query.dtype, self._score_bias_init)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class LuongMonotonicAttention(_BaseMonotonicAttentionMechanism):
    """Monotonic attention (Raffel et al. 2017, https://arxiv.org/abs/1704.00784) with the score of Luong.

    Args:
        num_units, memory, memory_sequence_length, scale, score_mask_value, dtype, name: see `LuongAttention`.
        sigmoid_noise, sigmoid_noise_seed, score_bias_init, mode: see `BahdanauMonotonicAttention`.
    """

    def __init__(
        self,
        num_units: Any,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: Any = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: Any = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "LuongMonotonicAttention",
    ) -> None:
        super().__init__(
            query_layer=None,
            memory_layer=_dense(num_units, "memory_layer", dtype or tf.float32),
            memory=memory,
            probability_fn=functools.partial(
                _monotonic_probability_fn, sigmoid_noise=sigmoid_noise, mode=mode, seed=sigmoid_noise_seed
            ),
            memory_sequence_length=memory_sequence_length,
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units, self._scale, self._name = num_units, scale, name
        self._score_bias_init = score_bias_init

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """The alignments [batch, entries] for `query` [batch, num_units], and the next state."""
        with tf.variable_scope(None, "luong_monotonic_attention", [query]):
            factor = None
            if self._scale:
                factor = tf.get_variable(
                    "attention_g", dtype=query.dtype, initializer=tf.ones_initializer, shape=()
                )
            score = _luong_score(query, self._keys, factor)
            score += _score_bias(query.dtype, self._score_bias_init)
        alignments = self._probability_fn(score, state)
        return alignments, alignments
