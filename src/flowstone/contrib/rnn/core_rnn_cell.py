"""Cells around a cell that project or embed its inputs, or project its outputs, and the linear layer that
they use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.framework.tensors import nest
from flowstone.layers.cell_state import check_is_cell
from flowstone.layers.recurrent_cells import RNNCell

__all__ = ["EmbeddingWrapper", "InputProjectionWrapper", "OutputProjectionWrapper"]


class _Linear:
    """args · kernel + bias, with the variables ``kernel`` and ``bias`` of the current scope.

    Args:
        args: a matrix [batch, depth], or a list of them that are put side by side; depths must be known.
        output_size: the number of columns.
        build_bias: whether there is a bias.
        bias_initializer: default: zeros. kernel_initializer: default: that of the scope.

    ValueError for no args, or shapes that are not of matrices with a known depth.
    """

    def __init__(
        self,
        args: Any,
        output_size: int,
        build_bias: bool,
        bias_initializer: Any = None,
        kernel_initializer: Any = None,
    ) -> None:
        self._build_bias = build_bias
        if args is None or (nest.is_nested(args) and not args):
            raise ValueError("`args` must be specified")
        self._is_sequence = nest.is_nested(args)
        tensors = list(args) if self._is_sequence else [args]
        depth = 0
        for shape in (each.get_shape() for each in tensors):
            if shape.ndims != 2:
                raise ValueError(f"linear is expecting 2D arguments: {shape}")
            if shape[1].value is None:
                raise ValueError(
                    f"linear expects shape[1] to be provided for shape {shape}, but saw {shape[1]}"
                )
            depth += shape[1].value
        dtype = tensors[0].dtype
        scope = tf.get_variable_scope()
        with tf.variable_scope(scope) as outer:
            self._weights = tf.get_variable(
                "kernel", [depth, output_size], dtype=dtype, initializer=kernel_initializer
            )
            if build_bias:
                with tf.variable_scope(outer) as inner:
                    inner.set_partitioner(None)
                    initializer = bias_initializer or tf.constant_initializer(0.0, dtype=dtype)
                    self._biases = tf.get_variable(
                        "bias", [output_size], dtype=dtype, initializer=initializer
                    )

    def __call__(self, args: Any) -> Any:
        """The result [batch, output_size]."""
        tensors = list(args) if self._is_sequence else [args]
        if len(tensors) == 1:
            result = tf.matmul(tensors[0], self._weights)
        else:
            result = tf.matmul(tf.concat(tensors, tf.constant(1)), self._weights)
        return tf.nn.bias_add(result, self._biases) if self._build_bias else result


def _linear(
    args: Any, output_size: int, bias: bool, bias_initializer: Any = None, kernel_initializer: Any = None
) -> Any:
    """args · kernel + bias; see `_Linear`."""
    return _Linear(args, output_size, bias, bias_initializer, kernel_initializer)(args)


class _Projection(RNNCell):
    """A cell around another whose state is its own."""

    def __init__(self, cell: Any, reuse: Any) -> None:
        super().__init__(_reuse=reuse)
        check_is_cell("cell", cell)
        self._cell = cell
        self._linear: _Linear | None = None

    @property
    def state_size(self) -> Any:
        """The cell's."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """The cell's."""
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The cell's."""
        with tf.name_scope(type(self).__name__ + "ZeroState", values=[batch_size]):
            return self._cell.zero_state(batch_size, dtype)

    def _projected(self, x: Any, size: int, activation: Callable[[Any], Any] | None) -> Any:
        if self._linear is None:
            self._linear = _Linear(x, size, True)
        projected = self._linear(x)
        return activation(projected) if activation else projected


class EmbeddingWrapper(RNNCell):
    """A cell whose inputs are ids, [batch] integers, that it embeds.

    Args:
        cell: an RNNCell.
        embedding_classes: the number of ids. embedding_size: the depth of what the cell reads.
        initializer: of the embedding; default: that of the scope, or uniform between ± the square root of 3.
        reuse: whether the variables must be there already.

    Variables: ``embedding`` [embedding_classes, embedding_size]. ValueError for sizes that are not positive.
    """

    def __init__(
        self,
        cell: Any,
        embedding_classes: int,
        embedding_size: int,
        initializer: Any = None,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        check_is_cell("cell", cell)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError(
                "Both embedding_classes and embedding_size must be > 0: "
                f"{embedding_classes}, {embedding_size}."
            )
        self._cell, self._initializer = cell, initializer
        self._embedding_classes, self._embedding_size = embedding_classes, embedding_size

    @property
    def state_size(self) -> Any:
        """The cell's."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """The cell's."""
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The cell's."""
        with tf.name_scope(type(self).__name__ + "ZeroState", values=[batch_size]):
            return self._cell.zero_state(batch_size, dtype)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The cell's step on the embedded ids."""
        with tf.device("/cpu:0"):
            initializer = self._initializer or tf.get_variable_scope().initializer
            if initializer is None:
                # Of variance 1.
                initializer = tf.random_uniform_initializer(-(3.0**0.5), 3.0**0.5)
            first = state[0] if isinstance(state, tuple) else state
            while isinstance(first, tuple):
                first = first[0]
            embedding = tf.get_variable(
                "embedding",
                [self._embedding_classes, self._embedding_size],
                initializer=initializer,
                dtype=first.dtype,
            )
            embedded = tf.nn.embedding_lookup(embedding, tf.reshape(inputs, [-1]))
        found: tuple[Any, Any] = self._cell(embedded, state)
        return found


class InputProjectionWrapper(_Projection):
    """A cell whose inputs are projected first, by the variables ``kernel`` and ``bias``.

    Args:
        cell: an RNNCell.
        num_proj: the depth of what the cell reads.
        activation: of the projection; default: none.
        input_size: unused.
        reuse: whether the variables must be there already.
    """

    def __init__(
        self, cell: Any, num_proj: int, activation: Any = None, input_size: Any = None, reuse: Any = None
    ) -> None:
        super().__init__(cell, reuse)
        if input_size is not None:
            tf.logging.warn(f"{self}: The input_size parameter is deprecated.")
        self._num_proj, self._activation = num_proj, activation

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The cell's step on the projected inputs."""
        found: tuple[Any, Any] = self._cell(self._projected(inputs, self._num_proj, self._activation), state)
        return found


class OutputProjectionWrapper(_Projection):
    """A cell whose outputs are projected, by the variables ``kernel`` and ``bias``.

    Args:
        cell: an RNNCell.
        output_size: the depth of the outputs.
        activation: of the projection; default: none.
        reuse: whether the variables must be there already.

    ValueError for an output size below 1.
    """

    def __init__(self, cell: Any, output_size: int, activation: Any = None, reuse: Any = None) -> None:
        super().__init__(cell, reuse)
        if output_size < 1:
            raise ValueError(f"Parameter output_size must be > 0: {output_size}.")
        self._output_size, self._activation = output_size, activation

    @property
    def output_size(self) -> int:
        """The depth of the projection."""
        return self._output_size

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The cell's step, with its output projected."""
        output, state = self._cell(inputs, state)
        return self._projected(output, self._output_size, self._activation), state
