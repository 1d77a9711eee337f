"""Cells with long short-term memory (Hochreiter and Schmidhuber 1997).

The state is a pair `LSTMStateTuple(c, h)`: the memory, and the last output. Gates i (input), f (forget) and
o (output) and the new content j are one product [inputs, h] · kernel + bias, split in the order i, j, f, o:

    c' = c · sigmoid(f + forget_bias) + sigmoid(i) · activation(j)
    h' = activation(c') · sigmoid(o)

`BasicLSTMCell` is this; `LSTMCell` adds peepholes, clipping and a projection of the output.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.layers.activations import activation_named
from flowstone.layers.recurrent_cells import LayerOfUnits, input_depth
from flowstone.ops.algebra.matrices import matmul
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.joining import concat, split
from flowstone.ops.arrays.slicing import slice as slice_of
from flowstone.ops.networks.neural_net import bias_add
from flowstone.ops.numbers.arithmetic import add, multiply
from flowstone.ops.numbers.clipping import clip_by_value
from flowstone.ops.numbers.functions import sigmoid, tanh
from flowstone.ops.variables.partitioned_variables import fixed_size_partitioner

__all__ = ["BasicLSTMCell", "LSTMCell", "LSTMStateTuple"]


class LSTMStateTuple(namedtuple("LSTMStateTuple", ("c", "h"))):
    """The state of an LSTM cell, memory `c` and output `h`; also the structure of its sizes."""

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        """The type of both. TypeError if they differ."""
        c, h = self
        if c.dtype != h.dtype:
            raise TypeError(f"Inconsistent dtypes for internal state: {c.dtype} vs {h.dtype}")
        return c.dtype  # type: ignore[no-any-return]


class BasicLSTMCell(LayerOfUnits):
    """The LSTM without peepholes (Zaremba et al. 2014, http://arxiv.org/abs/1409.2329); see the module.

    Args:
        num_units: the size of c and h, and of the output.
        forget_bias: added to the forget gate.
        state_is_tuple: False for states that are one tensor [batch, 2 num_units], c before h.
        activation: a function or a name; default: tanh.
        reuse: whether the variables must be there already (True), or may be (AUTO_REUSE).
        name: of the variable scope; default: "basic_lstm_cell".
        dtype: of the variables; default: that of the first inputs.

    Variables: kernel [depth + num_units, 4 num_units], bias [4 num_units].
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, reuse, name, dtype, **kwargs)
        self._forget_bias, self._state_is_tuple = forget_bias, state_is_tuple
        self._activation = activation_named(activation, tanh)

    @property
    def state_size(self) -> Any:
        """LSTMStateTuple(num_units, num_units), or 2 num_units."""
        units = self._num_units
        return LSTMStateTuple(units, units) if self._state_is_tuple else 2 * units

    @property
    def output_size(self) -> int:
        """num_units."""
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Makes kernel and bias."""
        rows = input_depth(inputs_shape) + self._num_units
        self._kernel = self.add_matrix("", rows, 4 * self._num_units)
        self._bias = self.add_bias("", 4 * self._num_units)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, Any]:
        """The output [batch, num_units] and the new state."""
        axis = constant(1, dtypes.int32)
        c, h = state if self._state_is_tuple else split(state, 2, axis)
        gates = bias_add(matmul(concat([inputs, h], 1), self._kernel), self._bias)
        i, j, f, o = split(gates, 4, axis)
        forget = sigmoid(add(f, constant(self._forget_bias, dtype=f.dtype)))
        new_c = add(multiply(c, forget), multiply(sigmoid(i), self._activation(j)))
        new_h = multiply(self._activation(new_c), sigmoid(o))
        return new_h, LSTMStateTuple(new_c, new_h) if self._state_is_tuple else concat([new_c, new_h], 1)


class LSTMCell(LayerOfUnits):
    """The LSTM with optional peepholes, clipping and projection (Sak et al. 2014,
    https://research.google.com/pubs/archive/43905.pdf); see the module.

    Args:
        num_units: the size of c.
        use_peepholes: adds w_f_diag · c and w_i_diag · c to the gates f and i, w_o_diag · c' to o.
        cell_clip: clips c' to within ± this.
        initializer: of the kernels and peepholes; default: the scope's.
        num_proj: the size of h and the output, projected by a matrix; default: no projection.
        proj_clip: clips the projection to within ± this.
        num_unit_shards, num_proj_shards: parts of the kernels; deprecated, use a partitioner of the scope.
        forget_bias: added to the forget gate.
        state_is_tuple: False for states that are one tensor, c before h.
        activation: a function or a name; default: tanh.
        reuse: whether the variables must be there already (True), or may be (AUTO_REUSE).
        name: of the variable scope; default: "lstm_cell".
        dtype: of the variables; default: that of the first inputs.

    Variables: kernel [depth + size of h, 4 num_units], bias, w_f_diag, w_i_diag and w_o_diag [num_units],
    projection/kernel [num_units, num_proj].
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, reuse, name, dtype, **kwargs)
        self._use_peepholes, self._cell_clip, self._initializer = use_peepholes, cell_clip, initializer
        self._num_proj, self._proj_clip = num_proj, proj_clip
        self._num_unit_shards, self._num_proj_shards = num_unit_shards, num_proj_shards
        self._forget_bias, self._state_is_tuple = forget_bias, state_is_tuple
        self._activation = activation_named(activation, tanh)

    @property
    def state_size(self) -> Any:
        """LSTMStateTuple(num_units, size of h), or their sum."""
        c, h = self._num_units, self.output_size
        return LSTMStateTuple(c, h) if self._state_is_tuple else c + h

    @property
    def output_size(self) -> int:
        """The size of h: num_proj, or num_units without a projection."""
        return self._num_proj or self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Makes kernel and bias, the peepholes and the projection."""
        units, initializer = self._num_units, self._initializer
        rows = input_depth(inputs_shape) + self.output_size
        self._kernel = self.add_matrix("", rows, 4 * units, initializer, _in_parts(self._num_unit_shards))
        self._bias = self.add_bias("", 4 * units)
        if self._use_peepholes:
            self._w_f_diag, self._w_i_diag, self._w_o_diag = (
                self.add_weight(f"w_{gate}_diag", [units], initializer=initializer) for gate in "fio"
            )
        if self._num_proj is not None:
            parts = _in_parts(self._num_proj_shards)
            self._projection = self.add_matrix("projection/", units, self._num_proj, initializer, parts)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Tensor, Any]:
        """The output [batch, size of h] and the new state."""
        c, h = state if self._state_is_tuple else self._parts(state)
        gates = bias_add(matmul(concat([inputs, h], 1), self._kernel), self._bias)
        i, j, f, o = split(gates, 4, 1)
        new_c = self._clipped(self._memory(c, i, j, f), self._cell_clip)
        if self._use_peepholes:
            o = o + self._w_o_diag * new_c
        new_h = sigmoid(o) * self._activation(new_c)
        if self._num_proj is not None:
            new_h = self._clipped(matmul(new_h, self._projection), self._proj_clip)
        return new_h, LSTMStateTuple(new_c, new_h) if self._state_is_tuple else concat([new_c, new_h], 1)

    def _memory(self, c: Tensor, i: Tensor, j: Tensor, f: Tensor) -> Tensor:
        f = f + self._forget_bias
        if self._use_peepholes:
            kept: Tensor = sigmoid(f + self._w_f_diag * c) * c
            new: Tensor = sigmoid(i + self._w_i_diag * c) * self._activation(j)
        else:
            kept = sigmoid(f) * c
            new = sigmoid(i) * self._activation(j)
        return kept + new

    def _parts(self, state: Tensor) -> tuple[Tensor, Tensor]:
        units = self._num_units
        return slice_of(state, [0, 0], [-1, units]), slice_of(state, [0, units], [-1, self.output_size])

    @staticmethod
    def _clipped(x: Tensor, limit: float | None) -> Tensor:
        return x if limit is None else clip_by_value(x, -limit, limit)


def _in_parts(count: int | None) -> Any:
    return None if count is None else fixed_size_partitioner(count)
