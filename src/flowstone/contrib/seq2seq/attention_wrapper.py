"""A cell that reads a memory: its inputs are those of the step and what it attended to in the step before.

output, cell state = cell(cell_input_fn(inputs, attention), cell state)
alignments = mechanism(output)      context = sum of the memory's values by alignments
attention = attention layer([output, context]), or the context
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.contrib.framework.tensor_util import with_same_shape
from flowstone.contrib.seq2seq.attention_mechanism import (
    AttentionMechanism,
    BahdanauAttention,
    BahdanauMonotonicAttention,
    LuongAttention,
    LuongMonotonicAttention,
    _bahdanau_score,
    _BaseAttentionMechanism,
    _BaseMonotonicAttentionMechanism,
    _luong_score,
    _maybe_mask_score,
    _monotonic_probability_fn,
    _prepare_memory,
    _size_of,
    _zero_state_tensors,
)
from flowstone.contrib.seq2seq.attention_probabilities import hardmax, monotonic_attention, safe_cumprod
from flowstone.framework.tensors import nest
from flowstone.layers.cell_state import check_is_cell
from flowstone.layers.recurrent_cells import RNNCell

__all__ = [
    "AttentionMechanism",
    "AttentionWrapper",
    "AttentionWrapperState",
    "BahdanauAttention",
    "BahdanauMonotonicAttention",
    "LuongAttention",
    "LuongMonotonicAttention",
    "_BaseAttentionMechanism",
    "_BaseMonotonicAttentionMechanism",
    "_bahdanau_score",
    "_luong_score",
    "_maybe_mask_score",
    "_monotonic_probability_fn",
    "_prepare_memory",
    "_zero_state_tensors",
    "hardmax",
    "monotonic_attention",
    "safe_cumprod",
]


class AttentionWrapperState(
    namedtuple(
        "AttentionWrapperState",
        ("cell_state", "attention", "time", "alignments", "alignment_history", "attention_state"),
    )
):
    """The state of an `AttentionWrapper`.

    cell_state is the cell's, attention [batch, attention size], time a scalar int32, alignments [batch,
    entries] the last, alignment_history a TensorArray of all or (), attention_state the mechanism's; with
    several mechanisms the last three are tuples.
    """

    __slots__ = ()

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """A state with other parts, as given; tensors must have the shapes of those that they replace."""

        def with_shape(old: Any, new: Any) -> Any:
            is_checked = isinstance(old, tf.Tensor) and isinstance(new, tf.Tensor)
            return with_same_shape(old, new) if is_checked else new

        return nest.map_structure(with_shape, self, super()._replace(**kwargs))  # type: ignore[no-any-return]


def _compute_attention(
    attention_mechanism: Any, cell_output: Any, attention_state: Any, attention_layer: Any
) -> tuple[Any, Any, Any]:
    """Attention [batch, size], alignments [batch, entries], and the mechanism's next state."""
    alignments, next_state = attention_mechanism(cell_output, state=attention_state)
    context = tf.squeeze(tf.matmul(tf.expand_dims(alignments, 1), attention_mechanism.values), [1])
    if attention_layer is None:
        return context, alignments, next_state
    return attention_layer(tf.concat([cell_output, context], 1)), alignments, next_state


def _attention_layers(count: int, size: Any, layer: Any, dtype: Any) -> tuple[Any, ...] | None:
    """A layer for each mechanism, or None. ValueError for another number of them, or for both arguments."""
    if size is not None and layer is not None:
        raise ValueError("Only one of attention_layer_size and attention_layer should be set")
    if size is not None:
        sizes = tuple(size if isinstance(size, (list, tuple)) else (size,))
        if len(sizes) != count:
            raise ValueError(
                "If provided, attention_layer_size must contain exactly one integer per attention_mechanism, "
                f"saw: {len(sizes)} vs {count}"
            )
        return tuple(
            tf.layers.Dense(each, name="attention_layer", use_bias=False, dtype=_known(dtype))
            for each in sizes
        )
    if layer is None:
        return None
    layers = tuple(layer if isinstance(layer, (list, tuple)) else (layer,))
    if len(layers) != count:
        raise ValueError(
            "If provided, attention_layer must contain exactly one layer per attention_mechanism, "
            f"saw: {len(layers)} vs {count}"
        )
    return layers


def _known(dtype: Any) -> Any:
    return None if dtype is None else tf.as_dtype(dtype)


class AttentionWrapper(RNNCell):
    """A cell that attends to a memory.

    Args:
        cell: an RNNCell.
        attention_mechanism: an `AttentionMechanism`, or a list of them.
        attention_layer_size: the depth of the attention layer, one integer a mechanism; default: no such
            layer, so that the attention is the context.
        alignment_history: whether the state collects the alignments of all steps.
        cell_input_fn: function of inputs and attention that returns the cell's inputs; default: both side
            by side.
        output_attention: whether the output is the attention, not the cell's output.
        initial_cell_state: the cell's part of `zero_state`; its batch size must be that of the state.
        name: of the operations.
        attention_layer: layers in place of `attention_layer_size`.
        attention_fn: function of (mechanism, cell output, mechanism's state, attention layer) that returns
            (attention, alignments, next state).
        dtype: of the attention layer.

    TypeError for arguments of other classes, ValueError for layers that do not fit the mechanisms.
    """

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[..., Any] | None = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
        attention_layer: Any = None,
        attention_fn: Callable[..., Any] | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        check_is_cell("cell", cell)
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        mechanisms = tuple(attention_mechanism) if self._is_multi else (attention_mechanism,)
        for each in mechanisms:
            if not isinstance(each, AttentionMechanism):
                raise TypeError(
                    "attention_mechanism must contain only instances of AttentionMechanism, "
                    f"saw type: {type(each).__name__}"
                )
        if cell_input_fn is not None and not callable(cell_input_fn):
            raise TypeError(f"cell_input_fn must be callable, saw type: {type(cell_input_fn).__name__}")
        self._attention_layers = _attention_layers(
            len(mechanisms), attention_layer_size, attention_layer, dtype
        )
        self._attention_layer_size = _attention_size(mechanisms, self._attention_layers)
        self._cell, self._attention_mechanisms = cell, mechanisms
        self._cell_input_fn = cell_input_fn or (lambda inputs, attention: tf.concat([inputs, attention], -1))
        self._attention_fn = attention_fn or _compute_attention
        self._output_attention, self._alignment_history = output_attention, alignment_history
        with tf.name_scope(name, "AttentionWrapperInit"):
            self._initial_cell_state = initial_cell_state
            if initial_cell_state is not None:
                self._initial_cell_state = self._checked_initial_state(initial_cell_state)

    def _checked_initial_state(self, state: Any) -> Any:
        parts = nest.flatten(state)
        batch_size = _size_of(parts[-1], 0)
        message = (
            f"When constructing AttentionWrapper {self.name}: Non-matching batch sizes between the memory "
            "(encoder output) and initial_cell_state. Are you using the BeamSearchDecoder? You may need to"
            " tile "
            "your initial state via the tf.contrib.seq2seq.tile_batch function with argument"
            " multiple=beam_width."
        )
        with tf.control_dependencies(self._batch_size_checks(batch_size, message)):
            return nest.map_structure(lambda s: tf.identity(s, name="check_initial_cell_state"), state)

    def _batch_size_checks(self, batch_size: Any, message: str) -> list[Any]:
        return [
            tf.assert_equal(batch_size, each.batch_size, message=message)
            for each in self._attention_mechanisms
        ]

    def _item_or_tuple(self, items: Any) -> Any:
        """One item with one mechanism, else a tuple."""
        found = tuple(items)
        return found if self._is_multi else found[0]

    @property
    def output_size(self) -> Any:
        """The attention's depth, or the cell's output size."""
        return self._attention_layer_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        """Sizes of an `AttentionWrapperState`."""
        mechanisms = self._attention_mechanisms
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            time=tf.TensorShape([]),
            attention=self._attention_layer_size,
            alignments=self._item_or_tuple(each.alignments_size for each in mechanisms),
            attention_state=self._item_or_tuple(each.state_size for each in mechanisms),
            alignment_history=self._item_or_tuple(
                each.alignments_size if self._alignment_history else () for each in mechanisms
            ),
        )

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """The first state, in which `initial_cell_state` is the cell's if it was given.

        A batch size other than that of the memory is an InvalidArgumentError of the step.
        """
        with tf.name_scope(type(self).__name__ + "ZeroState", values=[batch_size]):
            cell_state = self._initial_cell_state
            if cell_state is None:
                cell_state = self._cell.zero_state(batch_size, dtype)
            message = (
                f"When calling zero_state of AttentionWrapper {self.name}: Non-matching batch sizes between"
                f" the "
                "memory (encoder output) and the requested batch size. Are you using the BeamSearchDecoder?"
                " If so, "
                "make sure your encoder output has been tiled to beam_width via"
                " tf.contrib.seq2seq.tile_batch, and "
                "the batch_size= argument passed to zero_state is batch_size * beam_width."
            )
            with tf.control_dependencies(self._batch_size_checks(batch_size, message)):
                cell_state = nest.map_structure(
                    lambda s: tf.identity(s, name="checked_cell_state"), cell_state
                )
            mechanisms = self._attention_mechanisms
            alignments = [each.initial_alignments(batch_size, dtype) for each in mechanisms]
            return AttentionWrapperState(
                cell_state=cell_state,
                time=tf.zeros([], dtype=tf.int32),
                attention=_zero_state_tensors(self._attention_layer_size, batch_size, dtype),
                alignments=self._item_or_tuple(alignments),
                attention_state=self._item_or_tuple(
                    each.initial_state(batch_size, dtype) for each in mechanisms
                ),
                alignment_history=self._item_or_tuple(
                    tf.TensorArray(dtype, size=0, dynamic_size=True, element_shape=alignment.shape)
                    if self._alignment_history
                    else ()
                    for alignment in alignments
                ),
            )

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The attention, or the cell's output, and the next `AttentionWrapperState`. TypeError for another
        state."""
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(
                f"Expected state to be instance of AttentionWrapperState. Received type {type(state)}"
                f" instead."
            )
        cell_output, cell_state = self._cell(self._cell_input_fn(inputs, state.attention), state.cell_state)
        message = (
            f"When applying AttentionWrapper {self.name}: Non-matching batch sizes between the memory"
            f" (encoder "
            "output) and the query (decoder output). Are you using the BeamSearchDecoder? You may need to"
            " tile your "
            "memory input via the tf.contrib.seq2seq.tile_batch function with argument multiple=beam_width."
        )
        with tf.control_dependencies(self._batch_size_checks(_size_of(cell_output, 0), message)):
            cell_output = tf.identity(cell_output, name="checked_cell_output")
        attention, rest = self._attend(cell_output, state)
        next_state = AttentionWrapperState(
            time=state.time + 1, cell_state=cell_state, attention=attention, **rest
        )
        return attention if self._output_attention else cell_output, next_state

    def _attend(self, cell_output: Any, state: AttentionWrapperState) -> tuple[Any, dict[str, Any]]:
        many = self._is_multi
        old_states = state.attention_state if many else [state.attention_state]
        histories = state.alignment_history if many else [state.alignment_history]
        attentions, alignments, states, new_histories = [], [], [], []
        for i, mechanism in enumerate(self._attention_mechanisms):
            layer = self._attention_layers[i] if self._attention_layers else None
            attention, alignment, new = self._attention_fn(mechanism, cell_output, old_states[i], layer)
            history = histories[i].write(state.time, alignment) if self._alignment_history else ()
            attentions.append(attention)
            alignments.append(alignment)
            states.append(new)
            new_histories.append(history)
        return tf.concat(attentions, 1), {
            "attention_state": self._item_or_tuple(states),
            "alignments": self._item_or_tuple(alignments),
            "alignment_history": self._item_or_tuple(new_histories),
        }


def _attention_size(mechanisms: tuple[Any, ...], layers: tuple[Any, ...] | None) -> Any:
    """The depth of the attentions of all mechanisms."""
    if layers is None:
        return sum(int(each.values.get_shape()[-1]) for each in mechanisms)
    total = 0
    for layer, mechanism in zip(layers, mechanisms):
        depth = int(mechanism.values.get_shape()[-1])
        shape = layer.compute_output_shape([None, (getattr(layer, "units", depth)) + depth])
        total += int(tf.TensorShape(shape)[-1])
    return total
