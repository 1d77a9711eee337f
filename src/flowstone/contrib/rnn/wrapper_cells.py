"""Cells around a cell: with attention to its last outputs, with a highway, and as one compiled step."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.rnn.core_rnn_cell import _Linear
from flowstone.framework.tensors import nest
from flowstone.layers.cell_state import check_is_cell
from flowstone.layers.recurrent_cells import RNNCell

__all__ = ["AttentionCellWrapper", "CompiledWrapper", "HighwayWrapper"]


class AttentionCellWrapper(RNNCell):
    """A cell that attends to its last outputs (Cheng et al. 2016, https://arxiv.org/abs/1601.06733).

    Args:
        cell: an RNNCell.
        attn_length: how many outputs it attends to.
        attn_size: the size of the outputs; default: the cell's output size. attn_vec_size: of the attention's
            features; default: attn_size.
        input_size: of what the cell reads; default: that of the inputs.
        state_is_tuple: whether the state is (cell's state, attention, outputs), else one tensor.
        reuse: whether the variables must be there already.

    ValueError for a length that is not positive, or a cell with a tuple as its state if `state_is_tuple` is
    False.
    """

    def __init__(
        self,
        cell: Any,
        attn_length: int,
        attn_size: int | None = None,
        attn_vec_size: int | None = None,
        input_size: int | None = None,
        state_is_tuple: bool = True,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        check_is_cell("cell", cell)
        if nest.is_nested(cell.state_size) and not state_is_tuple:
            raise ValueError(
                "Cell returns tuple of states, but the flag state_is_tuple is not set. "
                f"State size is: {cell.state_size}"
            )
        if attn_length <= 0:
            raise ValueError(f"attn_length should be greater than zero, got {attn_length}")
        self._attn_size = cell.output_size if attn_size is None else attn_size
        self._attn_vec_size = self._attn_size if attn_vec_size is None else attn_vec_size
        self._cell, self._attn_length, self._input_size = cell, attn_length, input_size
        self._state_is_tuple = state_is_tuple
        self._linears: dict[str, _Linear] = {}

    @property
    def state_size(self) -> Any:
        """(the cell's, attn_size, attn_size · attn_length), or their sum."""
        sizes = (self._cell.state_size, self._attn_size, self._attn_size * self._attn_length)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        """attn_size."""
        return self._attn_size

    def _linear(self, name: str, args: Any, size: int) -> Any:
        if name not in self._linears:
            self._linears[name] = _Linear(args, size, True)
        return self._linears[name](args)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The output [batch, attn_size] and the new state."""
        size, length = self._attn_size, self._attn_length
        if self._state_is_tuple:
            state, attended, outputs = state
        else:
            whole, own = state, self._cell.state_size
            state = tf.slice(whole, [0, 0], [-1, own])
            attended = tf.slice(whole, [0, own], [-1, size])
            outputs = tf.slice(whole, [0, own + size], [-1, size * length])
        outputs = tf.reshape(outputs, [-1, length, size])
        depth = inputs.get_shape().as_list()[1] if self._input_size is None else self._input_size
        cell_output, new_state = self._cell(self._linear("inputs", [inputs, attended], depth), state)
        query = tf.concat(nest.flatten(new_state), 1) if self._state_is_tuple else new_state
        attended, kept = self._attention(query, outputs)
        with tf.variable_scope("attn_output_projection"):
            output = self._linear("output", [cell_output, attended], size)
        outputs = tf.reshape(tf.concat([kept, tf.expand_dims(output, 1)], 1), [-1, length * size])
        parts = (new_state, attended, outputs)
        return output, parts if self._state_is_tuple else tf.concat(list(parts), 1)

    def _attention(self, query: Any, outputs: Any) -> tuple[Any, Any]:
        # What the query finds in the outputs, and all of these but the oldest.
        with tf.variable_scope("attention"):
            kernel = tf.get_variable("attn_w", [1, 1, self._attn_size, self._attn_vec_size])
            vector = tf.get_variable("attn_v", [self._attn_vec_size])
            hidden = tf.reshape(outputs, [-1, self._attn_length, 1, self._attn_size])
            features = tf.nn.conv2d(hidden, kernel, [1, 1, 1, 1], "SAME")
            y = tf.reshape(self._linear("query", query, self._attn_vec_size), [-1, 1, 1, self._attn_vec_size])
            weights = tf.nn.softmax(tf.reduce_sum(vector * tf.tanh(features + y), [2, 3]))
            total = tf.reduce_sum(tf.reshape(weights, [-1, self._attn_length, 1, 1]) * hidden, [1, 2])
            return tf.reshape(total, [-1, self._attn_size]), tf.slice(outputs, [0, 1, 0], [-1, -1, -1])


class _Around(RNNCell):
    """A cell around another: sizes and zero state are the other's."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self._cell = cell

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


class HighwayWrapper(_Around):
    """A cell with a highway around it (Srivastava et al. 2015, http://arxiv.org/abs/1505.00387):
    carry · inputs + transform · outputs.

    Args:
        cell: an RNNCell; its outputs must have the shapes of its inputs.
        couple_carry_transform_gates: whether transform is 1 - carry.
        carry_bias_init: the first bias of the carry gate; the negative that of the transform gate.

    Variables, in the scope around: carry_w, carry_b, transform_w, transform_b.
    """

    def __init__(
        self, cell: Any, couple_carry_transform_gates: bool = True, carry_bias_init: float = 1.0
    ) -> None:
        super().__init__(cell)
        self._couples, self._carry_bias_init = couple_carry_transform_gates, carry_bias_init

    def _gate(self, name: str, x: Any, bias: float) -> Any:
        size, dtype = x.get_shape().with_rank(2)[1].value, x.dtype
        weights = tf.get_variable(name + "_w", [size, size], dtype=dtype)
        biases = tf.get_variable(name + "_b", [size], dtype=dtype, initializer=tf.constant_initializer(bias))
        return tf.sigmoid(tf.nn.xw_plus_b(x, weights, biases))

    def _joined(self, x: Any, out: Any) -> Any:
        x.get_shape().assert_is_compatible_with(out.get_shape())
        carry = self._gate("carry", x, self._carry_bias_init)
        transform = 1 - carry if self._couples else self._gate("transform", x, -self._carry_bias_init)
        return x * carry + out * transform

    def __call__(self, inputs: Any, state: Any, scope: Any = None, *_: Any, **__: Any) -> tuple[Any, Any]:
        """The joined outputs, and the cell's new state. ValueError for outputs of other shapes."""
        outputs, new_state = self._cell(inputs, state, scope=scope)
        nest.assert_same_structure(inputs, outputs)
        return nest.map_structure(self._joined, inputs, outputs), new_state


class CompiledWrapper(_Around):
    """The cell itself: a session compiles every step that it runs.

    `compile_stateful` is accepted for programs that say it.
    """

    def __init__(self, cell: Any, compile_stateful: bool = False) -> None:
        super().__init__(cell)
        self._compile_stateful = compile_stateful

    def __call__(self, inputs: Any, state: Any, scope: Any = None, *_: Any, **__: Any) -> tuple[Any, Any]:
        """The cell's step."""
        found: tuple[Any, Any] = self._cell(inputs, state, scope=scope)
        return found
