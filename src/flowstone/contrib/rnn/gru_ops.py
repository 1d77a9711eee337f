"""The GRU cell as a single operation, GRUBlockCell."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.layers.recurrent_cells import LayerOfUnits, input_depth

__all__ = ["GRUBlockCell", "GRUBlockCellV2"]


class GRUBlockCell(LayerOfUnits):
    """`GRUCell` as one operation.

    Args:
        num_units: the size of state and output. cell_size: the same, by its old name.
        reuse: whether the variables must be there already.
        name: of the scope; default: "gru_cell".

    Variables: w_ru, b_ru, w_c and b_c. ValueError unless one of num_units and cell_size is given.
    """

    _names = ("w_ru", "b_ru", "w_c", "b_c")

    def __init__(
        self,
        num_units: int | None = None,
        cell_size: int | None = None,
        reuse: Any = None,
        name: str = "gru_cell",
    ) -> None:
        if (num_units is None) == (cell_size is None):
            raise ValueError("Exactly one of num_units or cell_size must be provided.")
        if cell_size is not None:
            tf.logging.warn("cell_size is deprecated; use num_units")
        super().__init__(cell_size or num_units or 0, reuse, name)

    @property
    def state_size(self) -> int:
        """num_units."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """num_units."""
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Makes the weights and biases of gates and candidate."""
        units, rows = self._num_units, input_depth(inputs_shape) + self._num_units
        w_ru, b_ru, w_c, b_c = self._names
        self._gate_kernel = self.add_weight(w_ru, [rows, 2 * units])
        self._gate_bias = self.add_weight(b_ru, [2 * units], initializer=tf.constant_initializer(1.0))
        self._candidate_kernel = self.add_weight(w_c, [rows, units])
        self._candidate_bias = self.add_weight(b_c, [units], initializer=tf.constant_initializer(0.0))
        self.built = True

    def call(self, inputs: Any, h_prev: Any) -> tuple[Any, Any]:
        """Output and new state, both [batch, num_units]."""
        found = tf.raw_ops.GRUBlockCell(
            x=inputs,
            h_prev=h_prev,
            w_ru=self._gate_kernel,
            w_c=self._candidate_kernel,
            b_ru=self._gate_bias,
            b_c=self._candidate_bias,
        )
        return found.h, found.h


class GRUBlockCellV2(GRUBlockCell):
    """`GRUBlockCell` with the names of `GRUCell`: gates/kernel, gates/bias, candidate/kernel,
    candidate/bias."""

    _names = ("gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias")
