"""Decoding as a loop: a `Decoder` says what one step does, `dynamic_decode` repeats it until all have
finished.

    finished, inputs, state = decoder.initialize()
    outputs, state, inputs, finished = decoder.step(time, inputs, state)

Outputs are collected in TensorArrays. The loop counts how many steps each sequence of the batch took.
"""

from __future__ import annotations

import abc
import contextlib
from typing import Any, NamedTuple

import flowstone as tf
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.node import static_value
from flowstone.layers.cell_state import zero_state
from flowstone.layers.recurrent_step import cache_variables

__all__ = ["Decoder", "dynamic_decode"]


class Decoder(abc.ABC):
    """The base of decoders: what is decoded, a step at a time."""

    @property
    def batch_size(self) -> Any:
        """The number of sequences, a scalar int32 tensor."""
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        """The shapes of a step's outputs without the batch, in their structure."""
        raise NotImplementedError

    @property
    def output_dtype(self) -> Any:
        """The types of a step's outputs, in their structure."""
        raise NotImplementedError

    @abc.abstractmethod
    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """Which sequences [batch] have finished before the first step, its inputs, and the first state."""
        raise NotImplementedError

    @abc.abstractmethod
    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        """Outputs, next state, next inputs, and which sequences have finished, after the step `time`."""
        raise NotImplementedError

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """What is done with all outputs [time, batch, …] and the last state; the base has nothing to do."""
        raise NotImplementedError

    @property
    def tracks_own_finished(self) -> bool:
        """Whether a sequence that has finished may go on, because the decoder changes their order."""
        return False


class _Loop(NamedTuple):
    """The variables of the loop."""

    time: Any
    arrays: Any
    state: Any
    inputs: Any
    finished: Any
    lengths: Any


def dynamic_decode(
    decoder: Decoder,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
    **kwargs: Any,
) -> tuple[Any, Any, Any]:
    """Runs `decoder` until all sequences have finished.

    Args:
        decoder: a `Decoder`.
        output_time_major: whether outputs are [time, batch, …]; default: [batch, time, …].
        impute_finished: whether finished sequences keep their state and emit zeros.
        maximum_iterations: the greatest number of steps, a scalar int32; default: none.
        parallel_iterations, swap_memory: of `tf.while_loop`.
        scope: of the variables; default: "decoder".
        kwargs: what TensorFlow 1.15 hands to decoders of another kind; not used.

    Returns the outputs, the last state and the sequences' lengths, [batch] int32. Raises TypeError if
    `decoder` is no `Decoder`, ValueError if `maximum_iterations` is no scalar.
    """
    if not isinstance(decoder, Decoder):
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder)}")
    with tf.variable_scope(scope, "decoder") as entered:
        cache_variables(entered)
        if maximum_iterations is not None:
            maximum_iterations = _as_limit(maximum_iterations)
        begun = decoder.initialize()
        zeros = nest.map_structure(
            lambda size, dtype: zero_state(size, decoder.batch_size, dtype),
            decoder.output_size,
            decoder.output_dtype,
        )
        first = _first(decoder, begun, maximum_iterations)
        step = _Step(decoder, zeros, impute_finished)
        last = step.repeat(first, maximum_iterations, parallel_iterations, swap_memory)
        return _finished(decoder, last, output_time_major)


def _as_limit(maximum_iterations: Any) -> Any:
    limit = tf.convert_to_tensor(maximum_iterations, dtype=tf.int32, name="maximum_iterations")
    if limit.get_shape().ndims != 0:
        raise ValueError("maximum_iterations must be a scalar")
    return limit


def _first(decoder: Decoder, begun: tuple[Any, Any, Any], maximum_iterations: Any) -> _Loop:
    finished, inputs, state = begun
    if maximum_iterations is not None:
        finished = tf.logical_or(finished, maximum_iterations <= 0)
    lengths = tf.zeros_like(finished, dtype=tf.int32)
    time = tf.constant(0, dtype=tf.int32)
    batch = _known(decoder.batch_size)

    def array(size: Any, dtype: Any) -> Any:
        return tf.TensorArray(
            dtype=dtype,
            size=0,
            dynamic_size=True,
            element_shape=tf.TensorShape([batch]).concatenate(_shape(size)),
        )

    arrays = nest.map_structure(array, decoder.output_size, decoder.output_dtype)
    return _Loop(time, arrays, state, inputs, finished, lengths)


def _known(batch_size: Any) -> int | None:
    found = static_value(batch_size) if isinstance(batch_size, tf.Tensor) else batch_size
    return None if found is None else int(found)


def _shape(size: Any) -> Any:
    if isinstance(size, tf.TensorShape):
        return size
    return tf.TensorShape(size if isinstance(size, (list, tuple)) else [size])


class _Step:
    """The body of the loop."""

    def __init__(self, decoder: Decoder, zero_outputs: Any, impute_finished: bool) -> None:
        self._decoder, self._zeros, self._imputes = decoder, zero_outputs, impute_finished

    def repeat(self, first: _Loop, limit: Any, parallel_iterations: int, swap_memory: bool) -> _Loop:
        """The variables after the last step."""
        last = tf.while_loop(
            lambda *loop: tf.logical_not(tf.reduce_all(_Loop(*loop).finished)),
            lambda *loop: tuple(self.run(_Loop(*loop))),
            loop_vars=tuple(first),
            parallel_iterations=parallel_iterations,
            maximum_iterations=limit,
            swap_memory=swap_memory,
        )
        return _Loop(*last)

    def run(self, loop: _Loop) -> _Loop:
        """The variables after a step."""
        outputs, state, inputs, finished = self._decoder.step(loop.time, loop.inputs, loop.state)
        if not self._decoder.tracks_own_finished:
            finished = tf.logical_or(finished, loop.finished)
        lengths = tf.where(
            tf.logical_not(loop.finished), tf.fill(tf.shape(loop.lengths), loop.time + 1), loop.lengths
        )
        nest.assert_same_structure(loop.state, state)
        nest.assert_same_structure(loop.arrays, outputs)
        nest.assert_same_structure(loop.inputs, inputs)
        if self._imputes:
            outputs = nest.map_structure(
                lambda out, zero: tf.where(loop.finished, zero, out), outputs, self._zeros
            )
            state = nest.map_structure(lambda new, old: _kept(loop.finished, old, new), state, loop.state)
        arrays = nest.map_structure(lambda array, out: array.write(loop.time, out), loop.arrays, outputs)
        return _Loop(loop.time + 1, arrays, state, inputs, finished, lengths)


def _kept(finished: Any, old: Any, new: Any) -> Any:
    """`old` for the finished sequences; TensorArrays and scalars have no sequences."""
    if isinstance(old, tf.TensorArray):
        return new
    new.set_shape(old.get_shape())
    return new if new.get_shape().ndims in (0, None) else tf.where(finished, old, new)


def _finished(decoder: Decoder, last: _Loop, time_major: bool) -> tuple[Any, Any, Any]:
    outputs, state = nest.map_structure(lambda array: array.stack(), last.arrays), last.state
    with contextlib.suppress(NotImplementedError):
        outputs, state = decoder.finalize(outputs, state, last.lengths)
    return outputs if time_major else nest.map_structure(_transpose_batch_time, outputs), state, last.lengths


def _transpose_batch_time(x: Any) -> Any:
    """x with its first two dimensions exchanged; a vector or scalar as it is."""
    sizes = x.get_shape()
    if sizes.ndims is not None and sizes.ndims < 2:
        return x
    result = tf.transpose(x, tf.concat(([1, 0], tf.range(2, tf.rank(x))), axis=0))
    if sizes.ndims is not None:
        known = sizes.as_list()
        result.set_shape([known[1], known[0], *known[2:]])
    return result
