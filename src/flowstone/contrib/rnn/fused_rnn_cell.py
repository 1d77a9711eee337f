"""Cells that take a whole sequence at once."""

from __future__ import annotations

import abc
from typing import Any

import flowstone as tf

__all__ = ["FusedRNNCell", "FusedRNNCellAdaptor", "TimeReversedFusedRNN"]


class FusedRNNCell(abc.ABC):
    """The base: called with a sequence, it returns the outputs and the last state."""

    @abc.abstractmethod
    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        """Outputs [time, batch, size] (a list for a list) and the last state.

        Args:
            inputs: [time, batch, depth], or a list of [batch, depth].
            initial_state: default: zeros of type `dtype`.
            sequence_length: [batch] integers.
            scope: of the variables.
        """


class FusedRNNCellAdaptor(FusedRNNCell):
    """An RNNCell as a `FusedRNNCell`, run by `tf.nn.static_rnn`, or `dynamic_rnn` if `use_dynamic_rnn`."""

    def __init__(self, cell: Any, use_dynamic_rnn: bool = False) -> None:
        self._cell, self._use_dynamic_rnn = cell, use_dynamic_rnn

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        """See `FusedRNNCell`."""
        is_list = isinstance(inputs, list)
        if self._use_dynamic_rnn:
            outputs, state = tf.nn.dynamic_rnn(
                self._cell,
                tf.stack(inputs) if is_list else inputs,
                sequence_length=sequence_length,
                initial_state=initial_state,
                dtype=dtype,
                time_major=True,
                scope=scope,
            )
            return (tf.unstack(outputs, num=len(inputs)) if is_list else outputs), state
        outputs, state = tf.nn.static_rnn(
            self._cell,
            inputs if is_list else tf.unstack(inputs),
            initial_state=initial_state,
            dtype=dtype,
            sequence_length=sequence_length,
            scope=scope,
        )
        return (outputs if is_list else tf.stack(outputs)), state


class TimeReversedFusedRNN(FusedRNNCell):
    """A `FusedRNNCell` that reads its inputs from their end; outputs are in the order of the inputs."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def _reverse(self, t: Any, lengths: Any) -> Any:
        if isinstance(t, list):
            return list(reversed(t))
        return tf.reverse(t, [0]) if lengths is None else tf.reverse_sequence(t, lengths, 0, 1)

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        """See `FusedRNNCell`."""
        outputs, state = self._cell(
            self._reverse(inputs, sequence_length),
            initial_state=initial_state,
            dtype=dtype,
            sequence_length=sequence_length,
            scope=scope,
        )
        return self._reverse(outputs, sequence_length), state
