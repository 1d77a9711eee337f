"""Grid cells: in a step every dimension runs a cell of its own on the outputs of all dimensions
(Kalchbrenner et al. 2015, https://arxiv.org/abs/1507.01526).

A step of `GridRNNCell`: inputs are split among the input dimensions and projected to their outputs m (and
memories c). Then dimensions without priority run, each on the m of all dimensions; then, on what those gave,
the dimensions with priority. The new m of the output dimensions are the cell's output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowstone as tf
from flowstone.contrib import layers, rnn
from flowstone.layers.recurrent_cells import RNNCell

__all__ = [
    "Grid1BasicLSTMCell",
    "Grid1BasicRNNCell",
    "Grid1LSTMCell",
    "Grid2BasicLSTMCell",
    "Grid2BasicRNNCell",
    "Grid2GRUCell",
    "Grid2LSTMCell",
    "Grid3LSTMCell",
    "GridRNNCell",
]

_Dims = int | Sequence[int] | None


class GridRNNCell(RNNCell):
    """The cell of a grid of `num_dims` dimensions.

    Args:
        num_units: the size of each dimension's output. num_dims: how many dimensions, one at least.
        input_dims, output_dims: the dimensions that get inputs, and whose outputs are the cell's.
        priority_dims: the dimensions that run last, on the others' new outputs.
        non_recurrent_dims: dimensions without a state: fully connected layers.
        tied: whether all dimensions have the same variables.
        cell_fn: makes the cell of a dimension from num_units; default: `LSTMCell`.
        non_recurrent_fn: the activation of dimensions without a state.
        state_is_tuple, output_is_tuple: whether states and outputs are tuples, or one tensor of all.

    Inputs [batch, depth], or None; depth is divisible by the number of input dimensions. Variables, within
    the class's name: project_m_<dim> and project_c_<dim>, recurrent/cell_<dim>/… (recurrent/… if tied) and
    non_recurrent/…. ValueError for dimensions that are not there.
    """

    def __init__(
        self,
        num_units: int,
        num_dims: int = 1,
        input_dims: _Dims = None,
        output_dims: _Dims = None,
        priority_dims: _Dims = None,
        non_recurrent_dims: _Dims = None,
        tied: bool = False,
        cell_fn: Callable[[int], Any] | None = None,
        non_recurrent_fn: Callable[[Any], Any] | None = None,
        state_is_tuple: bool = True,
        output_is_tuple: bool = True,
    ) -> None:
        super().__init__()
        if num_dims < 1:
            raise ValueError(f"dims must be >= 1: {num_dims}")
        self._num_units, self._num_dims, self._tied = num_units, num_dims, tied
        self._inputs, self._outputs = self._checked(input_dims), self._checked(output_dims)
        self._priority, without = self._checked(priority_dims), self._checked(non_recurrent_dims)
        self._recurrents = [dim for dim in range(num_dims) if dim not in without]
        self._non_recurrent_fn = non_recurrent_fn
        self._state_is_tuple, self._output_is_tuple = state_is_tuple, output_is_tuple
        make = cell_fn or (lambda units: rnn.LSTMCell(num_units=units, state_is_tuple=True))
        self._cells = [make(num_units)] * num_dims if tied else [make(num_units) for _ in range(num_dims)]

    def _checked(self, dims: _Dims) -> list[int]:
        found = [] if dims is None else [dims] if isinstance(dims, int) else list(dims)
        if any(not 0 <= dim < self._num_dims for dim in found):
            raise ValueError(f"Invalid dims: {found}. Must be in [0, {self._num_dims})")
        return found

    def _sizes(self) -> list[Any]:
        return [self._cells[dim].state_size for dim in self._recurrents]

    @property
    def output_size(self) -> Any:
        """num_units of each output dimension, or their sum."""
        sizes = (self._num_units,) * len(self._outputs)
        return sizes if self._output_is_tuple else sum(sizes)

    @property
    def state_size(self) -> Any:
        """The sizes of the states of the dimensions that have one, or their sum."""
        sizes = tuple(self._sizes())
        return sizes if self._state_is_tuple else sum(tf.contrib.framework.nest.flatten(sizes))

    def __call__(
        self, inputs: Any, state: Any, scope: Any = None, *args: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        """The outputs and the new state."""
        with tf.variable_scope(scope or type(self).__name__):
            cs, ms = self._previous(state)
            dtype = (ms[self._recurrents[0]] if self._recurrents else inputs).dtype
            self._project(inputs, cs, ms, dtype)
            new_ms, new_states = list(ms), [None] * self._num_dims
            for dims in (self._without_priority(), self._priority):
                found = {dim: self._step(dim, cs[dim], list(new_ms), dtype) for dim in dims}
                for dim, (output, new_state) in found.items():
                    new_ms[dim], new_states[dim] = output, new_state
            return self._joined(new_ms, new_states)

    def _without_priority(self) -> list[int]:
        return [dim for dim in range(self._num_dims) if dim not in self._priority]

    def _previous(self, state: Any) -> tuple[list[Any], list[Any]]:
        """c, None where there is none, and m of each dimension before the step."""
        if not self._state_is_tuple:
            sizes = tf.contrib.framework.nest.flatten(self._sizes())
            parts = tf.split(state, sizes, 1) if len(sizes) > 1 else [state]
            state = tf.contrib.framework.nest.pack_sequence_as(self._sizes(), parts)
        if len(state) != len(self._recurrents):
            raise ValueError(f"Expected state as a tuple of {len(self._recurrents)} element")
        cs: list[Any] = [None] * self._num_dims
        ms: list[Any] = [None] * self._num_dims
        for dim, own in zip(self._recurrents, state, strict=True):
            if isinstance(own, (tuple, list)):
                cs[dim], ms[dim] = own
            else:
                ms[dim] = own
        return cs, ms

    def _project(self, inputs: Any, cs: list[Any], ms: list[Any], dtype: Any) -> None:
        """Puts projections of the inputs in the place of the input dimensions' outputs and memories."""
        if inputs is None or inputs.get_shape().with_rank(2)[1].value == 0 or not self._inputs:
            return
        if inputs.get_shape()[1].value is None:
            raise ValueError("Could not infer input size from inputs.get_shape()[-1]")
        parts = tf.split(axis=1, num_or_size_splits=len(self._inputs), value=inputs)
        shape = [parts[0].get_shape()[1].value, self._num_units]
        for dim, part in zip(self._inputs, parts, strict=True):
            has_c = cs[dim] is not None
            ms[dim] = tf.matmul(part, tf.get_variable(f"project_m_{dim}", shape, dtype))
            if has_c:
                cs[dim] = tf.matmul(part, tf.get_variable(f"project_c_{dim}", shape, dtype))

    def _step(self, dim: int, c: Any, ms: list[Any], dtype: Any) -> tuple[Any, Any]:
        """A dimension's new output and state."""
        *others, last = [m for m in ms if m is not None]
        if others:
            x = tf.concat(others, 1)
        else:
            x = tf.zeros([last.get_shape()[0].value or tf.shape(last)[0], 0], dtype)
        if dim not in self._recurrents:
            x = tf.concat([x, last], 1) if others else last
            with tf.variable_scope("non_recurrent"):
                return layers.fully_connected(x, self._num_units, activation_fn=self._non_recurrent_fn), None
        state = last if c is None else rnn.LSTMStateTuple(c, last)
        with tf.variable_scope("recurrent"):
            if self._tied:
                return self._cells[dim](x, state)  # type: ignore[no-any-return]
            with tf.variable_scope(f"cell_{dim}"):
                return self._cells[dim](x, state)  # type: ignore[no-any-return]

    def _joined(self, ms: list[Any], states: list[Any]) -> tuple[Any, Any]:
        """The cell's output and new state of those of the dimensions."""
        output: Any = tuple(ms[dim] for dim in self._outputs)
        state: Any = tuple(states[dim] for dim in self._recurrents)
        if not self._output_is_tuple:
            output = tf.concat(output, 1)
        if not self._state_is_tuple:
            state = tf.concat(tf.contrib.framework.nest.flatten(state), 1)
        return output, state


def _lstm(use_peepholes: bool, forget_bias: float) -> Callable[[int], Any]:
    return lambda units: rnn.LSTMCell(
        num_units=units, forget_bias=forget_bias, use_peepholes=use_peepholes, state_is_tuple=True
    )


def _basic_lstm(forget_bias: float) -> Callable[[int], Any]:
    return lambda units: rnn.BasicLSTMCell(units, forget_bias=forget_bias)


class _FirstDimCell(GridRNNCell):
    """A grid whose first dimension has the inputs, the output and the priority."""

    def __init__(
        self,
        num_units: int,
        num_dims: int,
        tied: bool,
        cell_fn: Callable[[int], Any],
        non_recurrent_fn: Callable[[Any], Any] | None,
        state_is_tuple: bool,
        output_is_tuple: bool,
    ) -> None:
        super().__init__(
            num_units=num_units,
            num_dims=num_dims,
            input_dims=0,
            output_dims=0,
            priority_dims=0,
            tied=tied,
            non_recurrent_dims=None if non_recurrent_fn is None else 0,
            cell_fn=cell_fn,
            non_recurrent_fn=non_recurrent_fn,
            state_is_tuple=state_is_tuple,
            output_is_tuple=output_is_tuple,
        )


class Grid1BasicRNNCell(_FirstDimCell):
    """One dimension of a `BasicRNNCell`. The arguments are `GridRNNCell`'s and the cell's."""

    def __init__(
        self,
        num_units: int,
        state_is_tuple: bool = True,
        output_is_tuple: bool = True,
    ) -> None:
        cell_fn = rnn.BasicRNNCell
        super().__init__(num_units, 1, False, cell_fn, None, state_is_tuple, output_is_tuple)


class Grid1BasicLSTMCell(_FirstDimCell):
    """One dimension of a `BasicLSTMCell`. The arguments are `GridRNNCell`'s and the cell's."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1,
        state_is_tuple: bool = True,
        output_is_tuple: bool = True,
    ) -> None:
        cell_fn = _basic_lstm(forget_bias)
        super().__init__(num_units, 1, False, cell_fn, None, state_is_tuple, output_is_tuple)


class Grid1LSTMCell(_FirstDimCell):
    """One dimension of an `LSTMCell`. The arguments are `GridRNNCell`'s and the cell's."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        output_is_tuple: bool = True,
    ) -> None:
        cell_fn = _lstm(use_peepholes, forget_bias)
        super().__init__(num_units, 1, False, cell_fn, None, state_is_tuple, output_is_tuple)


class Grid2BasicRNNCell(_FirstDimCell):
    """Two dimensions of `BasicRNNCell`s. The arguments are `GridRNNCell`'s and the cell's."""

    def __init__(
        self,
        num_units: int,
        tied: bool = False,
        non_recurrent_fn: Callable[[Any], Any] | None = None,
        state_is_tuple: bool = True,
        output_is_tuple: bool = True,
    ) -> None:
        cell_fn = rnn.BasicRNNCell
        super().__init__(num_units, 2, tied, cell_fn, non_recurrent_fn, state_is_tuple, output_is_tuple)


class Grid2BasicLSTMCell(_FirstDimCell):
    """Two dimensions of `BasicLSTMCell`s. The arguments are `GridRNNCell`'s and the cell's."""

    def __init__(
        self,
        num_units: int,
        tied: bool = False,
        non_recurrent_fn: Callable[[Any], Any] | None = None,
        forget_bias: float = 1,
        state_is_tuple: bool = True,
        output_is_tuple: bool = True,
    ) -> None:
        cell_fn = _basic_lstm(forget_bias)
        super().__init__(num_units, 2, tied, cell_fn, non_recurrent_fn, state_is_tuple, output_is_tuple)


class Grid2LSTMCell(_FirstDimCell):
    """Two dimensions of `LSTMCell`s. The arguments are `GridRNNCell`'s and the cell's."""

    def __init__(
        self,
        num_units: int,
        tied: bool = False,
        non_recurrent_fn: Callable[[Any], Any] | None = None,
        use_peepholes: bool = False,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        output_is_tuple: bool = True,
    ) -> None:
        cell_fn = _lstm(use_peepholes, forget_bias)
        super().__init__(num_units, 2, tied, cell_fn, non_recurrent_fn, state_is_tuple, output_is_tuple)


class Grid2GRUCell(_FirstDimCell):
    """Two dimensions of `GRUCell`s. The arguments are `GridRNNCell`'s and the cell's."""

    def __init__(
        self,
        num_units: int,
        tied: bool = False,
        non_recurrent_fn: Callable[[Any], Any] | None = None,
        state_is_tuple: bool = True,
        output_is_tuple: bool = True,
    ) -> None:
        cell_fn = rnn.GRUCell
        super().__init__(num_units, 2, tied, cell_fn, non_recurrent_fn, state_is_tuple, output_is_tuple)


class Grid3LSTMCell(_FirstDimCell):
    """Three dimensions of `LSTMCell`s. The arguments are `GridRNNCell`'s and the cell's."""

    def __init__(
        self,
        num_units: int,
        tied: bool = False,
        non_recurrent_fn: Callable[[Any], Any] | None = None,
        use_peepholes: bool = False,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        output_is_tuple: bool = True,
    ) -> None:
        cell_fn = _lstm(use_peepholes, forget_bias)
        super().__init__(num_units, 3, tied, cell_fn, non_recurrent_fn, state_is_tuple, output_is_tuple)
