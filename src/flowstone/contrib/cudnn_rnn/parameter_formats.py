"""The parameters of a model of cuDNN's as one vector, and as those of the cells that compute the same.

The vector holds the weights of all layers, then all biases. A layer's direction has the matrices
[units, inputs] of each gate for the inputs, then those for the state; the biases likewise. The cells have
one kernel [inputs + units, …] for all gates, and one bias, the sum of both.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = [
    "CudnnParamsFormatConverter",
    "CudnnParamsFormatConverterGRU",
    "CudnnParamsFormatConverterLSTM",
    "CudnnParamsFormatConverterRelu",
    "CudnnParamsFormatConverterTanh",
]


class CudnnParamsFormatConverter:
    """The base: converts between both forms.

    Args:
        num_layers, num_units, input_size: of the model.
        num_proj: None: a projection is not supported.
        input_mode: "linear_input": the first layer has weights for its inputs.
        direction: "unidirectional" or "bidirectional".

    ValueError for other modes and directions.
    """

    _gates = 1

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_size: int,
        num_proj: int | None = None,
        input_mode: str = "linear_input",
        direction: str = "unidirectional",
    ) -> None:
        if num_proj:
            raise ValueError("num_proj is not supported: project the outputs with tf.layers.Dense")
        if input_mode != "linear_input":
            raise ValueError(f"input_mode must be 'linear_input', got {input_mode!r}")
        if direction not in ("unidirectional", "bidirectional"):
            raise ValueError(f"direction must be 'unidirectional' or 'bidirectional', got {direction!r}")
        self._num_layers, self._num_units, self._input_size = num_layers, num_units, input_size
        self._num_dirs = 2 if direction == "bidirectional" else 1

    def input_sizes(self) -> list[int]:
        """What each layer's direction reads, in order."""
        above = self._num_units * self._num_dirs
        return [
            self._input_size if layer == 0 else above
            for layer in range(self._num_layers)
            for _ in range(self._num_dirs)
        ]

    def weight_shapes(self) -> list[tuple[int, int]]:
        """The shapes of the vector's matrices."""
        shapes: list[tuple[int, int]] = []
        for size in self.input_sizes():
            shapes += [(self._num_units, size)] * self._gates + [(self._num_units,) * 2] * self._gates
        return shapes

    def bias_shapes(self) -> list[list[int]]:
        """The shapes of the vector's biases."""
        return [[self._num_units] for _ in self.weight_shapes()]

    def params_size(self) -> int:
        """The vector's length."""
        return sum(rows * columns + rows for rows, columns in self.weight_shapes())

    def split(self, opaque_param: Any) -> list[Any]:
        """The vector's matrices, then its biases."""
        shapes = [*self.weight_shapes(), *self.bias_shapes()]
        counts = [shape[0] * (shape[1] if len(shape) == 2 else 1) for shape in shapes]
        return [tf.reshape(part, shape) for part, shape in zip(tf.split(opaque_param, counts), shapes)]

    def opaque_to_tf_canonical(self, opaque_param: Any) -> tuple[list[Any], list[Any]]:
        """The weights and biases of all cells, of the vector."""
        parts = self.split(opaque_param)
        half, per = len(parts) // 2, 2 * self._gates
        weights, biases = [], []
        for i in range(0, half, per):
            of_cell = self._cell_parameters(parts[i : i + per], parts[half + i : half + i + per])
            weights += of_cell[0]
            biases += of_cell[1]
        return weights, biases

    def tf_canonical_to_opaque(self, tf_canonicals: Any, weights_proj: Any = None) -> Any:
        """The vector, of the weights and biases of all cells in one list."""
        if weights_proj is not None:
            raise ValueError("weights_proj is not supported: project the outputs with tf.layers.Dense")
        half, cells = len(tf_canonicals) // 2, len(self.input_sizes())
        per = half // cells
        weights, biases = [], []
        for i, size in enumerate(self.input_sizes()):
            place = slice(i * per, (i + 1) * per)
            of_cell = self._vector_parts(tf_canonicals[:half][place], tf_canonicals[half:][place], size)
            weights += of_cell[0]
            biases += of_cell[1]
        return tf.concat([tf.reshape(part, [-1]) for part in weights + biases], 0)

    def _cell_parameters(self, weights: list[Any], biases: list[Any]) -> tuple[list[Any], list[Any]]:
        """A cell's parameters, of a layer's direction."""
        return [self._kernel(weights)], [self._bias(biases)]

    def _vector_parts(self, weights: list[Any], biases: list[Any], size: int) -> tuple[list[Any], list[Any]]:
        """The inverse of `_cell_parameters`."""
        return self._matrices(weights[0], size), self._vectors(biases[0])

    def _order(self) -> list[int]:
        """Which of the vector's gates is at each place of the cell's kernel."""
        return list(range(self._gates))

    def _kernel(self, weights: list[Any]) -> Any:
        gates = len(weights) // 2
        columns = [tf.concat([weights[i], weights[gates + i]], 1) for i in self._order()]
        return tf.transpose(tf.concat(columns, 0))

    def _bias(self, biases: list[Any]) -> Any:
        gates = len(biases) // 2
        return tf.concat([biases[i] + biases[gates + i] for i in self._order()], 0)

    def _matrices(self, kernel: Any, size: int) -> list[Any]:
        parts = _reordered(tf.split(tf.transpose(kernel), len(self._order()), 0), self._order())
        halves = [tf.split(part, [size, self._num_units], 1) for part in parts]
        return [half[0] for half in halves] + [half[1] for half in halves]

    def _vectors(self, bias: Any) -> list[Any]:
        parts = _reordered(tf.split(bias, len(self._order()), 0), self._order())
        return parts + [tf.zeros_like(part) for part in parts]


def _reordered(parts: list[Any], order: list[int]) -> list[Any]:
    """The inverse of taking the parts in this order."""
    found = list(parts)
    for place, gate in enumerate(order):
        found[gate] = parts[place]
    return found


class CudnnParamsFormatConverterRelu(CudnnParamsFormatConverter):
    """Of `CudnnRNNRelu`, to and from `BasicRNNCell`."""


class CudnnParamsFormatConverterTanh(CudnnParamsFormatConverter):
    """Of `CudnnRNNTanh`, to and from `BasicRNNCell`."""


class CudnnParamsFormatConverterLSTM(CudnnParamsFormatConverter):
    """Of `CudnnLSTM`, to and from `CudnnCompatibleLSTMCell`: gates i, f, j, o there are i, j, f, o here."""

    _gates = 4

    def _order(self) -> list[int]:
        return [0, 2, 1, 3]


class CudnnParamsFormatConverterGRU(CudnnParamsFormatConverter):
    """Of `CudnnGRU`, to and from `CudnnCompatibleGRUCell`, whose candidate has a kernel and a bias for each
    part."""

    _gates = 3

    def _order(self) -> list[int]:
        return [0, 1]

    def _cell_parameters(self, weights: list[Any], biases: list[Any]) -> tuple[list[Any], list[Any]]:
        gates = self._kernel([*weights[:2], *weights[3:5]]), self._bias([*biases[:2], *biases[3:5]])
        return (
            [gates[0], tf.transpose(weights[2]), tf.transpose(weights[5])],
            [gates[1], biases[2], biases[5]],
        )

    def _vector_parts(self, weights: list[Any], biases: list[Any], size: int) -> tuple[list[Any], list[Any]]:
        matrices, vectors = self._matrices(weights[0], size), self._vectors(biases[0])
        of_inputs, of_state = (tf.transpose(each) for each in weights[1:])
        return (
            [*matrices[:2], of_inputs, *matrices[2:], of_state],
            [*vectors[:2], biases[1], *vectors[2:], biases[2]],
        )
