"""`rnn`: a step function repeated along the time axis of its inputs, as a loop of the graph or unrolled.

Where a mask is False, the step's states stay as they were, and its output is that of the step before (zeros
before the first, and everywhere with `zero_output_for_mask`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import flowstone as tf
from flowstone.framework.tensors import nest

__all__ = ["rnn"]

# step_function(inputs, states) -> outputs, new states
StepFunction = Callable[[Any, list[Any]], tuple[Any, Sequence[Any]]]


def rnn(
    step_function: StepFunction,
    inputs: Any,
    initial_states: Sequence[Any],
    go_backwards: bool = False,
    mask: Any = None,
    constants: Sequence[Any] | None = None,
    unroll: bool = False,
    input_length: int | None = None,
    time_major: bool = False,
    zero_output_for_mask: bool = False,
) -> tuple[Any, Any, list[Any]]:
    """Repeats `step_function(inputs, states + constants)`, which returns `(output, new_states)`, over time.

    Args:
        inputs: (samples, time, ...), or nested ones; (time, samples, ...) if `time_major`.
        initial_states: tensors of (samples, ...), as many as the step returns; output and states must have
            the same type at each step.
        go_backwards: from the last time to the first; the outputs are in the order of the steps.
        mask: (samples, time) or (samples, time, 1), bool.
        unroll: a copy of the step for each time, whose number must be static.
        input_length: the most steps there are, if fewer than the inputs have; outputs of others are zeros.

    Returns the last output (samples, ...), the outputs (samples, time, ...; or time first if `time_major`)
    and the list of the last states. Raises ValueError for an unrolled loop without a static number of steps,
    without states but with a mask, and for inputs without a time axis.
    """
    if not time_major:
        inputs = nest.map_structure(_swapped, inputs)
    items = [tf.convert_to_tensor(item) for item in nest.flatten(inputs)]
    steps = tf.shape(items[0])[0]
    states, more = list(initial_states), list(constants or [])
    flags = None if mask is None else _time_major_mask(mask, time_major)
    loop = _Loop(step_function, inputs, items, steps, states, more, flags, go_backwards, zero_output_for_mask)
    last, outputs, states = loop.unrolled() if unroll else loop.repeated(input_length)
    if not time_major:
        outputs = nest.map_structure(_swapped, outputs)
    return last, outputs, states


def _swapped(x: Any) -> Any:
    """The tensor with its first two axes exchanged."""
    x = tf.convert_to_tensor(x)
    rank = x.shape.ndims
    if rank is None or rank < 2:
        raise ValueError("The inputs of a recurrent layer must have an axis of samples and one of time.")
    return tf.transpose(x, [1, 0, *range(2, rank)])


def _time_major_mask(mask: Any, time_major: bool) -> Any:
    mask = tf.convert_to_tensor(mask)
    if mask.dtype != tf.bool:
        mask = tf.cast(mask, tf.bool)
    if mask.shape.ndims == 2:
        mask = tf.expand_dims(mask, -1)
    return mask if time_major else _swapped(mask)


def _spread(flags: Any, x: Any, kept: int = 1) -> Any:
    """`flags`, of (samples, 1), in the shape of `x`, (samples, ...); the first `kept` axes are common."""
    if x.shape.ndims == kept:
        return flags[..., 0]
    for _ in range(x.shape.ndims - flags.shape.ndims):
        flags = tf.expand_dims(flags, -1)
    repeats = [1] * kept + x.shape.as_list()[kept:]
    return tf.tile(flags, tf.concat([[1] * kept, tf.shape(x)[kept:]], 0) if None in repeats else repeats)


def _or_zeros(flags: Any, x: Any, kept: int = 1) -> Any:
    """`x` where `flags` are True, elsewhere zeros."""
    return tf.where(_spread(flags, x, kept), x, tf.zeros_like(x))


@dataclass
class _Loop:
    """A step and what it is repeated over; the inputs, whose number of times is `steps`, have time first."""

    step: StepFunction
    inputs: Any
    items: list[Any]
    steps: Any
    states: list[Any]
    constants: list[Any]
    mask: Any
    backwards: bool
    zeros: bool

    def unrolled(self) -> tuple[Any, Any, list[Any]]:
        """The last output, the outputs of all steps, stacked, and the last states."""
        steps = self.items[0].shape[0].value
        if steps is None:
            raise ValueError("Unrolling requires a fixed number of timesteps.")
        order = range(steps)[::-1] if self.backwards else range(steps)
        parts = [tf.unstack(item) for item in self.items]
        flags = None if self.mask is None else tf.unstack(self.mask)
        states, outputs = self.states, []
        before: Any = None
        for time in order:
            at_time = nest.pack_sequence_as(self.inputs, [part[time] for part in parts])
            output, new_states = self.step(at_time, states + self.constants)
            if flags is not None:
                values = nest.flatten(output)
                values, states = self._masked(flags[time], values, before, new_states, states)
                output, before = nest.pack_sequence_as(output, values), values
            else:
                states = list(new_states)
            outputs.append(output)
        stacked = [tf.stack(list(of_all)) for of_all in zip(*map(nest.flatten, outputs))]
        last, all_of_them = outputs[-1], nest.pack_sequence_as(outputs[0], stacked)
        if flags is not None and self.zeros:
            ordered = tf.reverse(self.mask, [0]) if self.backwards else self.mask
            last = nest.map_structure(lambda x: _or_zeros(flags[order[-1]], x), last)
            all_of_them = nest.map_structure(lambda x: _or_zeros(ordered, x, kept=2), all_of_them)
        return last, all_of_them, states

    def _masked(
        self, flags: Any, values: list[Any], before: Any, new_states: Sequence[Any], states: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """The outputs and the states where `flags` are True; elsewhere `before`, by default zeros, and the
        former states.
        """
        chosen = [_spread(flags, value) for value in values]
        others = [tf.zeros_like(value) for value in values] if before is None else before
        kept = [tf.where(flag, *pair) for flag, *pair in zip(chosen, values, others)]
        chosen = [_spread(flags, state) for state in new_states]
        return kept, [tf.where(flag, *pair) for flag, *pair in zip(chosen, new_states, states)]

    def repeated(self, longest: Any) -> tuple[Any, Any, list[Any]]:
        """The last output, those of all steps, `longest` at most, and the last states, by a loop."""
        arrays = self._arrays_of(self.items, "input_ta")
        first = nest.pack_sequence_as(self.inputs, [item[0] for item in self.items])
        # The step is built once outside the loop, to learn what it returns; nothing of it is computed.
        sample, _ = self.step(first, self.states + self.constants)
        form = [tf.convert_to_tensor(x) for x in nest.flatten(sample)]
        results = [
            tf.TensorArray(x.dtype, self.steps, tensor_array_name=f"output_ta_{i}")
            for i, x in enumerate(form)
        ]
        start = tf.constant(0, name="time")
        flags = [] if self.mask is None else self._arrays_of([self.mask], "mask_ta")
        zeros = [tf.zeros_like(x) for x in form] if flags else []
        states = [tf.convert_to_tensor(state) for state in self.states]

        def body(time: Any, results: Any, before: Any, states: Any) -> Any:
            at_time = nest.pack_sequence_as(self.inputs, [array.read(time) for array in arrays])
            chosen = [array.read(time) for array in flags]
            output, new_states = self.step(at_time, list(states) + self.constants)
            values = nest.flatten(output)
            for choice in chosen:
                otherwise = zeros if self.zeros else before
                values, new_states = self._masked(choice, values, otherwise, new_states, states)
                before = values
            for new, old in zip(new_states, states):
                if isinstance(new, tf.Tensor):
                    new.set_shape(old.shape)
            written = [result.write(time, value) for result, value in zip(results, values)]
            return time + 1, written, before, list(new_states)

        _, results, _, states = tf.while_loop(
            lambda time, *_: time < self.steps,
            body,
            (start, results, zeros, states),
            parallel_iterations=32,
            swap_memory=True,
            maximum_iterations=longest,
        )
        stacked = [self._stacked(result, x) for result, x in zip(results, form)]
        outputs = nest.pack_sequence_as(sample, stacked)
        return nest.map_structure(lambda output: output[-1], outputs), outputs, list(states)

    def _arrays_of(self, tensors: list[Any], name: str) -> list[Any]:
        """Arrays of the tensors' times, in the order of the steps."""
        arrays = [tf.TensorArray(x.dtype, self.steps, tensor_array_name=name) for x in tensors]
        ordered = [tf.reverse(x, [0]) if self.backwards else x for x in tensors]
        return [array.unstack(x) for array, x in zip(arrays, ordered)]

    def _stacked(self, array: Any, sample: Any) -> Any:
        stacked = array.stack()
        if sample.shape.ndims is not None:
            stacked.set_shape([self.items[0].shape[0], *sample.shape])
        return stacked
