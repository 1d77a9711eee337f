"""LSTM cells and layers as single operations: LSTMBlockCell for a step, BlockLSTM for a sequence."""

from __future__ import annotations

import abc
from typing import Any

import flowstone as tf
from flowstone.layers.base import InputSpec, Layer
from flowstone.layers.lstm_cells import LSTMStateTuple
from flowstone.layers.recurrent_cells import LayerOfUnits, input_depth

__all__ = ["LSTMBlockCell", "LSTMBlockFusedCell", "LSTMBlockWrapper"]


class LSTMBlockCell(LayerOfUnits):
    """`LSTMCell` as one operation.

    Args:
        num_units: the size of c and h.
        forget_bias: added to the forget gate.
        cell_clip: clips c to within ± this; default: no clipping.
        use_peephole: whether gates also see c.
        dtype: of the variables; default: that of the first inputs.
        reuse: whether the variables must be there already.
        name: of the scope; default: "lstm_cell".

    Variables: kernel, bias, w_i_diag, w_f_diag and w_o_diag: those of `LSTMCell`.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: Any = None,
        reuse: Any = None,
        name: str = "lstm_cell",
    ) -> None:
        super().__init__(num_units, reuse, name, dtype)
        self._forget_bias, self._use_peephole = forget_bias, use_peephole
        self._cell_clip = -1 if cell_clip is None else cell_clip

    @property
    def state_size(self) -> Any:
        """LSTMStateTuple(num_units, num_units)."""
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> Any:
        """num_units."""
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Makes kernel, bias and peepholes."""
        units = self._num_units
        self._kernel = self.add_matrix("", input_depth(inputs_shape) + units, 4 * units)
        self._bias = self.add_bias("", 4 * units)
        if self._use_peephole:
            self._w_i_diag, self._w_f_diag, self._w_o_diag = (
                self.add_weight(f"w_{gate}_diag", [units]) for gate in "ifo"
            )
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output [batch, num_units] and the new state. ValueError for a state that is no pair."""
        if len(state) != 2:
            raise ValueError("Expecting state to be a tuple with length 2.")
        cs_prev, h_prev = state
        if self._use_peephole:
            peepholes = (self._w_i_diag, self._w_f_diag, self._w_o_diag)
        else:
            peepholes = (tf.zeros([self._num_units], inputs.dtype),) * 3
        wci, wcf, wco = peepholes
        found = tf.raw_ops.LSTMBlockCell(
            x=inputs,
            cs_prev=cs_prev,
            h_prev=h_prev,
            w=self._kernel,
            wci=wci,
            wcf=wcf,
            wco=wco,
            b=self._bias,
            forget_bias=self._forget_bias,
            cell_clip=self._cell_clip,
            use_peephole=self._use_peephole,
            name=self._name,
        )
        return found.h, LSTMStateTuple(found.cs, found.h)


class LSTMBlockWrapper(Layer):
    """The base of layers that compute whole sequences."""

    @property
    @abc.abstractmethod
    def num_units(self) -> int:
        """The size of c and h."""

    @abc.abstractmethod
    def _call_cell(
        self, inputs: Any, initial_cell_state: Any, initial_output: Any, dtype: Any, sequence_length: Any
    ) -> tuple[Any, Any]:
        """The states c and outputs of all steps, [time, batch, num_units] each."""

    def call(
        self, inputs: Any, initial_state: Any = None, dtype: Any = None, sequence_length: Any = None
    ) -> tuple[Any, Any]:
        """Runs the layer over [time, batch, depth].

        Args:
            inputs: [time, batch, depth], or a list of [batch, depth].
            initial_state: a pair (c, h); default: zeros of type `dtype`.
            dtype: of the first state; needed without `initial_state`.
            sequence_length: [batch] integers; after its end a sequence's outputs are zero.

        Returns outputs [time, batch, num_units], or a list for a list, and the last state. ValueError for
        other shapes, or without state and dtype.
        """
        is_list = isinstance(inputs, list)
        x = tf.stack(inputs) if is_list else inputs
        shape = x.get_shape().with_rank(3).as_list()
        batch = tf.shape(x)[1] if shape[1] is None else shape[1]
        time = tf.shape(x)[0] if shape[0] is None else shape[0]
        if initial_state is None:
            if dtype is None:
                raise ValueError("Either initial_state or dtype needs to be specified")
            zeros = tf.zeros(tf.stack([batch, self.num_units]), dtype=dtype)
            initial_state = (zeros, zeros)
        elif len(initial_state) != 2:
            raise ValueError("Expecting initial_state to be a tuple with length 2 or None")
        first_c, first_h = initial_state
        dtype = first_c.dtype if dtype is None else dtype
        if sequence_length is not None:
            sequence_length = tf.cast(sequence_length, tf.int64)
        states, outputs = self._call_cell(x, first_c, first_h, dtype, sequence_length)
        if sequence_length is None:
            last = LSTMStateTuple(states[-1], outputs[-1])
        else:
            mask = tf.transpose(tf.sequence_mask(sequence_length, time, outputs.dtype), [1, 0])
            outputs *= tf.tile(tf.expand_dims(mask, [-1]), [1, 1, self.num_units])
            places = tf.stack([sequence_length, tf.range(tf.cast(batch, tf.int64))], axis=1)
            last = LSTMStateTuple(_at_end(states, first_c, places), _at_end(outputs, first_h, places))
        return (tf.unstack(outputs) if is_list else outputs), last


def _at_end(values: Any, first: Any, places: Any) -> Any:
    """The values after each sequence's last step; those before the first for an empty one."""
    return tf.gather_nd(tf.concat([tf.expand_dims(first, [0]), values], 0), places)


class LSTMBlockFusedCell(LSTMBlockWrapper):
    """A whole LSTM layer as one operation; see `LSTMBlockWrapper` for calls.

    Args:
        num_units: the size of c and h.
        forget_bias: added to the forget gate.
        cell_clip: clips c to within ± this; default: no clipping.
        use_peephole: whether gates also see c.
        reuse: whether the variables must be there already.
        dtype: of the variables.
        name: of the scope; default: "lstm_fused_cell".

    Variables: kernel, bias, w_i_diag, w_f_diag and w_o_diag.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: Any = None,
        dtype: Any = None,
        name: str = "lstm_fused_cell",
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._num_units, self._forget_bias, self._use_peephole = num_units, forget_bias, use_peephole
        self._cell_clip = -1 if cell_clip is None else cell_clip
        self.input_spec = InputSpec(ndim=3)

    @property
    def num_units(self) -> int:
        """The size of c and h."""
        return self._num_units

    def build(self, input_shape: Any) -> None:
        """Makes kernel, bias and peepholes."""
        units = self._num_units
        rows = input_depth(input_shape) + units
        self._kernel = self.add_weight("kernel", [rows, 4 * units])
        self._bias = self.add_weight("bias", [4 * units], initializer=tf.constant_initializer(0.0))
        if self._use_peephole:
            self._w_i_diag, self._w_f_diag, self._w_o_diag = (
                self.add_weight(f"w_{gate}_diag", [units]) for gate in "ifo"
            )
        self.built = True

    def _call_cell(
        self,
        inputs: Any,
        initial_cell_state: Any = None,
        initial_output: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
    ) -> tuple[Any, Any]:
        shape = inputs.get_shape().as_list()
        time = tf.shape(inputs)[0] if shape[0] is None else shape[0]
        if self._use_peephole:
            wci, wco, wcf = self._w_i_diag, self._w_o_diag, self._w_f_diag
        else:
            wci = wcf = wco = tf.zeros([self._num_units], dtype=dtype)
        longest = tf.cast(time, tf.int64) if sequence_length is None else tf.reduce_max(sequence_length)
        found = tf.raw_ops.BlockLSTM(
            seq_len_max=longest,
            x=inputs,
            cs_prev=initial_cell_state,
            h_prev=initial_output,
            w=self._kernel,
            wci=wci,
            wcf=wcf,
            wco=wco,
            b=self._bias,
            forget_bias=self._forget_bias,
            cell_clip=self._cell_clip,
            use_peephole=self._use_peephole,
        )
        return found.cs, found.h
