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
        input_length: the number of steps; by default the inputs' size along time.

    Returns the last output (samples, ...), the outputs (samples, time, ...; or time first if `time_major`)
    and the list of the last states. Raises ValueError for an unrolled loop without a static number of steps,
    without states but with a mask, and for inputs without a time axis.
    """
    if not time_major:
        inputs = nest.map_structure(_swapped, inputs)
    items = [tf.convert_to_tensor(item) for item in nest.flatten(inputs)]
    inputs = nest.pack_sequence_as(inputs, items)
    states, more = list(initial_states), list(constants or [])
    flags = None if mask is None else _time_major_mask(mask, time_major)
    choices = (flags, go_backwards, zero_output_for_mask, input_length)
    loop = _Loop(step_function, inputs, items, states, more, *choices)
    outputs, states = loop.unrolled() if unroll else loop.repeated()
    last = nest.map_structure(lambda output: output[-1], outputs)
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
    mask = tf.cast(mask, tf.bool)
    if mask.shape.ndims == 2:
        mask = tf.expand_dims(mask, -1)
    return mask if time_major else _swapped(mask)


def _choose(condition: Any, x: Any, y: Any) -> Any:
    """`x` for the samples where `condition`, of (samples, 1), is True, else `y`."""
    y = tf.convert_to_tensor(y)
    rank = x.shape.ndims
    flags = condition
    for _ in range(flags.shape.ndims, rank):
        flags = tf.expand_dims(flags, -1)
    sizes = tf.shape(x)
    repeats = tf.concat([tf.ones([flags.shape.ndims - (rank - 1)], tf.int32), sizes[1:]], 0)
    if rank == 1:
        return tf.where(flags[:, 0], x, y)
    return tf.where(tf.tile(flags[..., :1] if rank == flags.shape.ndims else flags, repeats), x, y)


@dataclass
class _Loop:
    """A step and what it is repeated over; the inputs have time first."""

    step: StepFunction
    inputs: Any
    items: list[Any]
    states: list[Any]
    constants: list[Any]
    mask: Any
    backwards: bool
    zeros: bool
    length: int | None

    def unrolled(self) -> tuple[Any, list[Any]]:
        """The outputs of all steps, stacked, and the last states."""
        steps = self.items[0].shape[0].value
        if steps is None:
            raise ValueError("Unrolling requires a fixed number of timesteps.")
        order = range(steps)[::-1] if self.backwards else range(steps)
        parts = [tf.unstack(item) for item in self.items]
        flags = None if self.mask is None else tf.unstack(self.mask)
        states, outputs = self.states, []
        previous = None
        for time in order:
            at_time = nest.pack_sequence_as(self.inputs, [part[time] for part in parts])
            output, new_states = self.step(at_time, states + self.constants)
            if flags is not None:
                before = nest.map_structure(tf.zeros_like, output) if previous is None else previous
                output, kept, states = self._masked(flags[time], output, before, new_states, states)
                previous = kept
            else:
                states = list(new_states)
            outputs.append(output)
        stacked = [tf.stack(list(of_all)) for of_all in zip(*map(nest.flatten, outputs))]
        return nest.pack_sequence_as(outputs[0], stacked), states

    def _masked(
        self, flags: Any, output: Any, before: Any, new_states: Sequence[Any], states: Sequence[Any]
    ) -> tuple[Any, Any, list[Any]]:
        """The output, what the next step takes for a masked one, and the states, all under the mask."""
        otherwise = nest.map_structure(tf.zeros_like, output) if self.zeros else before
        chosen = nest.map_structure(lambda x, y: _choose(flags, x, y), output, otherwise)
        after = [_choose(flags, new, old) for new, old in zip(new_states, states)]
        return chosen, chosen, after

    def repeated(self) -> tuple[Any, list[Any]]:
        """The outputs of all steps and the last states, computed by a loop of the graph."""
        static_steps = self.items[0].shape[0].value
        rows = static_steps if static_steps is not None else tf.shape(self.items[0])[0]
        steps = rows if self.length is None else self.length
        arrays = [_array_of(item, rows, "input_ta") for item in self.items]
        flags = None if self.mask is None else _array_of(self.mask, rows, "mask_ta")
        first = nest.pack_sequence_as(self.inputs, [item[0] for item in self.items])
        # The step is built once outside the loop, to learn what it returns; nothing of it is computed.
        sample, _ = self.step(first, self.states + self.constants)
        form = [tf.convert_to_tensor(x) for x in nest.flatten(sample)]
        results = [
            tf.TensorArray(x.dtype, rows, tensor_array_name=f"output_ta_{i}") for i, x in enumerate(form)
        ]
        before = [tf.zeros_like(x) for x in form] if flags is not None else []
        states = [tf.convert_to_tensor(state) for state in self.states]

        def body(time: Any, results: Any, before: Any, states: Any) -> Any:
            at = rows - 1 - time if self.backwards else time
            at_time = nest.pack_sequence_as(self.inputs, [array.read(at) for array in arrays])
            output, new_states = self.step(at_time, list(states) + self.constants)
            values = nest.flatten(output)
            if flags is not None:
                values, before, new_states = self._masked(flags.read(at), values, before, new_states, states)
            for new, old in zip(new_states, states):
                if isinstance(new, tf.Tensor):
                    new.set_shape(old.shape)
            written = [result.write(time, value) for result, value in zip(results, values)]
            return time + 1, written, before, list(new_states)

        _, results, _, states = tf.while_loop(
            lambda time, *_: time < steps,
            body,
            (tf.constant(0, name="time"), results, before, states),
            parallel_iterations=32,
            swap_memory=True,
        )
        stacked = [_stacked(result, x, static_steps) for result, x in zip(results, form)]
        return nest.pack_sequence_as(sample, stacked), list(states)


def _array_of(tensor: Any, size: Any, name: str) -> Any:
    return tf.TensorArray(tensor.dtype, size, tensor_array_name=name).unstack(tensor)


def _stacked(array: Any, sample: Any, steps: int | None) -> Any:
    stacked = array.stack()
    if sample.shape.ndims is not None:
        stacked.set_shape([steps, *sample.shape])
    return stacked
