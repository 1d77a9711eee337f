"""A decoder whose cell's outputs go to a `Helper`, which samples from them and makes the next inputs."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import flowstone as tf
from flowstone.contrib.seq2seq.decoder import Decoder
from flowstone.contrib.seq2seq.helper import Helper
from flowstone.framework.tensors import nest
from flowstone.layers.cell_state import check_is_cell

__all__ = ["BasicDecoder", "BasicDecoderOutput"]


class BasicDecoderOutput(namedtuple("BasicDecoderOutput", ("rnn_output", "sample_id"))):
    """What a step emits: the cell's output, through the output layer, and the samples."""

    __slots__ = ()


class BasicDecoder(Decoder):
    """A decoder that samples.

    Args:
        cell: an RNNCell.
        helper: a `Helper`.
        initial_state: the cell's first state.
        output_layer: a layer, such as `tf.layers.Dense`, for the cell's outputs before sampling.

    TypeError for arguments of other classes.
    """

    def __init__(self, cell: Any, helper: Helper, initial_state: Any, output_layer: Any = None) -> None:
        check_is_cell("cell", cell)
        if not isinstance(helper, Helper):
            raise TypeError(f"helper must be a Helper, received: {type(helper)}")
        if (
            output_layer is not None
            and not isinstance(output_layer, tf.layers.Layer)
            and not hasattr(output_layer, "compute_output_shape")
        ):
            raise TypeError(f"output_layer must be a Layer, received: {type(output_layer)}")
        self._cell, self._helper, self._initial_state = cell, helper, initial_state
        self._output_layer = output_layer

    @property
    def batch_size(self) -> Any:
        """The helper's."""
        return self._helper.batch_size

    def _rnn_output_size(self) -> Any:
        size = self._cell.output_size
        if self._output_layer is None:
            return size
        # The layer is asked for the shape that it gives to a batch of unknown size.
        shapes = nest.map_structure(lambda s: tf.TensorShape([None]).concatenate(tf.TensorShape([s])), size)
        return nest.map_structure(lambda s: s[1:], self._output_layer.compute_output_shape(shapes))

    @property
    def output_size(self) -> BasicDecoderOutput:
        """Sizes without the batch."""
        return BasicDecoderOutput(self._rnn_output_size(), self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> BasicDecoderOutput:
        """The type of the first state for the cell's outputs, the helper's for samples."""
        dtype = nest.flatten(self._initial_state)[0].dtype
        return BasicDecoderOutput(
            nest.map_structure(lambda _: dtype, self._rnn_output_size()), self._helper.sample_ids_dtype
        )

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """What the helper begins with, and the first state."""
        return (*self._helper.initialize(), self._initial_state)

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        """A step of the cell; outputs are a `BasicDecoderOutput`."""
        with tf.name_scope(name, "BasicDecoderStep", (time, inputs, state)):
            outputs, cell_state = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            sample_ids = self._helper.sample(time=time, outputs=outputs, state=cell_state)
            finished, next_inputs, next_state = self._helper.next_inputs(
                time=time, outputs=outputs, state=cell_state, sample_ids=sample_ids
            )
        return BasicDecoderOutput(outputs, sample_ids), next_state, next_inputs, finished
