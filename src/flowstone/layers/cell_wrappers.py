"""Cells made of other cells: a stack of them, or one with dropout, a residual connection or a device.

A `MultiRNNCell` is a layer with a variable scope of its own (``multi_rnn_cell/cell_0/…``). The wrappers have
none: the wrapped cell's variables have the same names as without the wrapper.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.shape import as_shape
from flowstone.layers import lstm_cells, recurrent_cells
from flowstone.layers.cell_state import check_is_cell
from flowstone.layers.lstm_cells import LSTMStateTuple
from flowstone.layers.recurrent_cells import RNNCell
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.slicing import slice as slice_of
from flowstone.ops.networks.neural_net import dropout
from flowstone.ops.numbers.functions import floor
from flowstone.ops.randomness.random import random_uniform
from flowstone.ops.variables.scope_defaults import VariableScope
from flowstone.ops.variables.variable_scope import variable_scope

__all__ = ["DeviceWrapper", "DropoutWrapper", "MultiRNNCell", "ResidualWrapper"]


class MultiRNNCell(RNNCell):
    """A stack of cells: each takes the output of the one before as its inputs.

    Args:
        cells: the list of cells, from the inputs to the output.
        state_is_tuple: whether the state is a tuple of the cells' states; else, deprecated, it is one tensor,
            their concatenation.

    ValueError for an empty list, or for cells with tuple states if `state_is_tuple` is False; TypeError if
    `cells` is no list.
    """

    def __init__(self, cells: Any, state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not isinstance(cells, (list, tuple)):
            raise TypeError(f"cells must be a list or tuple, but received: {cells}.")
        sizes = [] if state_is_tuple else [cell.state_size for cell in cells]
        if any(nest.is_nested(size) for size in sizes):
            raise ValueError(
                "Some cells return tuples of states, but the flag state_is_tuple is not set. "
                f"State sizes are: {sizes}"
            )
        self._cells, self._state_is_tuple = list(cells), state_is_tuple

    def get_config(self) -> dict[str, Any]:
        """What it is made of beside the cells, which its configuration does not have."""
        return {"name": self.name, "trainable": self.trainable, "dtype": self._dtype}

    @property
    def state_size(self) -> Any:
        """The cells' state sizes, a tuple; or their sum."""
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        """The last cell's output size."""
        return self._cells[-1].output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The tuple of the cells' zero states, or one tensor of zeros."""
        with get_default_graph().name_scope(f"{type(self).__name__}ZeroState"):
            if self._state_is_tuple:
                return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)
            return super().zero_state(batch_size, dtype)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The last cell's output, and the cells' new states."""
        states = self._states(state)
        new_states = []
        for i, cell in enumerate(self._cells):
            with variable_scope(f"cell_{i}"):
                inputs, new_state = cell(inputs, next(states))
                new_states.append(new_state)
        return inputs, tuple(new_states) if self._state_is_tuple else concat(new_states, 1)

    def _states(self, state: Any) -> Any:
        if not self._state_is_tuple:
            return self._slices(state)
        if not nest.is_nested(state):
            raise ValueError(
                f"Expected state to be a tuple of length {len(self._cells)}, but received: {state}"
            )
        if len(state) < len(self._cells):
            raise IndexError("tuple index out of range")
        return iter(state)

    def _slices(self, state: Tensor) -> Any:
        # One by one, so that each slice is named in the scope of its cell.
        begin = 0
        for cell in self._cells:
            yield slice_of(state, [0, begin], [-1, cell.state_size])
            begin += cell.state_size


def _cell_of(config: dict[str, Any]) -> Any:
    """The cell of a class here that a configuration names; ValueError for another class."""
    name = config["class_name"]
    found = (vars(module).get(name) for module in (recurrent_cells, lstm_cells))
    made: Any = next((each for each in found if each is not None), globals().get(name))
    if made is None:
        raise ValueError(f"Unknown layer: {name}")
    return made.from_config(config["config"])


class CellWrapper(RNNCell):
    """The base of cells around one cell: sizes, zero state and variables are that cell's."""

    _CONFIGURED: tuple[str, ...] = ()

    def __init__(self, cell: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_is_cell("cell", cell)
        self._cell = cell

    def get_config(self) -> dict[str, Any]:
        """What it is made of: the cell, and what the wrapper keeps of its arguments."""
        cell = {"class_name": type(self._cell).__name__, "config": self._cell.get_config()}
        config = {"name": self.name, "trainable": self.trainable, "dtype": self._dtype, "cell": cell}
        return {
            **config,
            **{name: getattr(self, f"_{name}") for name in self._CONFIGURED},
            **self._FURTHER_CONFIG,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A wrapper of this configuration."""
        kept = {name: value for name, value in config.items() if name not in cls._FURTHER_CONFIG}
        cell = kept.pop("cell")
        return cls(_cell_of(cell), **kept)

    @property
    def wrapped_cell(self) -> Any:
        """The cell inside."""
        return self._cell

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
        with get_default_graph().name_scope(f"{type(self).__name__}ZeroState"):
            return self._cell.zero_state(batch_size, dtype)

    def __call__(
        self, inputs: Any, state: Any, scope: str | VariableScope | None = None, *args: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        """One step; see `RNNCell`."""
        # Cells that users define may take no scope.
        given = {} if scope is None else {"scope": scope}
        return self.call(inputs, state, *args, **given, **kwargs)

    def call(self, inputs: Any, state: Any, **kwargs: Any) -> tuple[Any, Any]:
        """The cell's step."""
        return self._cell(inputs, state, **kwargs)  # type: ignore[no-any-return]


def _drops(keep_prob: Any) -> bool:
    return not isinstance(keep_prob, float) or keep_prob < 1


def _all_but_memory(state: Any) -> Any:
    """Which parts of a state may be dropped: all except the memory c of an LSTM and TensorArrays."""
    if isinstance(state, LSTMStateTuple):
        return LSTMStateTuple(c=False, h=True)
    return not hasattr(state, "flow")  # no TensorArray


class DropoutWrapper(CellWrapper):
    """A cell with dropout of its inputs, outputs and state.

    Args:
        cell: the cell.
        input_keep_prob, output_keep_prob, state_keep_prob: between 0 and 1, numbers or scalar tensors: the
            probability of keeping an element of the inputs, of the output, and of the state for the next
            step.
        variational_recurrent: the same elements are dropped at every step (Gal and Ghahramani 2015,
            http://arxiv.org/abs/1512.05287).
        input_size: the size of the inputs, or a nested structure; needed to drop inputs variationally.
        dtype: of inputs, state and output; needed if `variational_recurrent`.
        seed: of all random choices.
        dropout_state_filter_visitor: function of a part of the state that says whether it may be dropped: a
            bool, or for a structure a structure of bools. Default: all but the memory `c` of LSTMs.

    ValueError for probabilities that are not between 0 and 1 or missing sizes and types, TypeError for a
    filter that is no function.
    """

    _CONFIGURED = (
        "input_keep_prob",
        "output_keep_prob",
        "state_keep_prob",
        "variational_recurrent",
        "seed",
    )
    _FURTHER_CONFIG = {"input_size": None}

    def __init__(
        self,
        cell: Any,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: Any = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(cell, dtype=dtype, **kwargs)
        visitor = dropout_state_filter_visitor
        if visitor is not None and not callable(visitor):
            raise TypeError(f"dropout_state_filter_visitor must be callable. Received: {visitor}")
        self._may_drop, self._seed = visitor or _all_but_memory, seed
        with get_default_graph().name_scope("DropoutWrapperInit"):
            self._input_keep_prob = _probability("input_keep_prob", input_keep_prob)
            self._state_keep_prob = _probability("state_keep_prob", state_keep_prob)
            self._output_keep_prob = _probability("output_keep_prob", output_keep_prob)
        self._variational_recurrent = variational_recurrent
        self._noise: dict[str, list[Tensor]] = {}
        if variational_recurrent:
            self._make_noise(input_size, dtype)

    def _make_noise(self, input_size: Any, dtype: Any) -> None:
        if dtype is None:
            raise ValueError("When variational_recurrent=True, dtype must be provided")
        sizes = {"state": self._cell.state_size, "output": self._cell.output_size}
        if _drops(self._input_keep_prob):
            if input_size is None:
                raise ValueError(
                    "When variational_recurrent=True and input_keep_prob < 1.0 or is unknown, input_size "
                    "must be provided"
                )
            sizes = {"input": input_size, **sizes}
        for part, size in sizes.items():
            self._noise[part] = [
                random_uniform(
                    concat([[1], as_shape([s] if isinstance(s, int) else s).as_list()], 0),
                    seed=self._seed_for(part, i),
                    dtype=dtype,
                )
                for i, s in enumerate(nest.flatten(size))
            ]

    def _seed_for(self, part: str, index: int) -> int | None:
        """A different seed for each place, derived from the wrapper's."""
        if self._seed is None:
            return None
        digest = hashlib.md5(f"{self._seed}{part}_{index}".encode()).hexdigest()
        return int(digest[:8], 16) & 0x7FFFFFFF

    def call(self, inputs: Any, state: Any, **kwargs: Any) -> tuple[Any, Any]:
        """The cell's step, with dropout before and after."""
        if _drops(self._input_keep_prob):
            inputs = self._dropped("input", inputs, self._input_keep_prob)
        output, new_state = self._cell(inputs, state, **kwargs)
        if _drops(self._state_keep_prob):
            new_state = self._dropped("state", new_state, self._state_keep_prob, self._may_drop)
        if _drops(self._output_keep_prob):
            output = self._dropped("output", output, self._output_keep_prob)
        return output, new_state

    def _dropped(
        self, part: str, values: Any, keep_prob: Any, may_drop: Callable[[Any], Any] = lambda _: True
    ) -> Any:
        allowed = _leaves_allowed(values, may_drop)
        dropped = [
            self._dropped_leaf(part, i, value, keep_prob) if is_allowed else value
            for i, (value, is_allowed) in enumerate(zip(nest.flatten(values), allowed))
        ]
        return nest.pack_sequence_as(values, dropped)

    def _dropped_leaf(self, part: str, index: int, value: Tensor, keep_prob: Any) -> Tensor:
        if not self._variational_recurrent:
            return dropout(value, rate=1.0 - keep_prob, seed=self._seed_for(part, index))
        is_kept = floor(keep_prob + self._noise[part][index])
        result: Tensor = F.RealDiv(value, keep_prob, name="div") * is_kept
        result.set_shape(value.get_shape())
        return result


def _probability(name: str, value: Any) -> Any:
    """The value as a float if it is known, else as the tensor. ValueError if it is not between 0 and 1."""
    if isinstance(value, Tensor):
        known = static_value(value)
        if known is None:
            return value
    else:
        # A constant that nothing takes, as in TensorFlow: float32 for a float.
        known = static_value(convert_to_tensor(value))
    if not 0 <= float(known) <= 1:
        raise ValueError(f"Parameter {name} must be between 0 and 1. Received {float(known)}")
    return float(known)


def _leaves_allowed(structure: Any, may_drop: Callable[[Any], Any]) -> list[bool]:
    """For each leaf, whether `may_drop` allows dropping it."""
    return _ruled(structure, may_drop(structure), may_drop)


def _ruled(structure: Any, answer: Any, may_drop: Callable[[Any], Any]) -> list[bool]:
    """The leaves' answers, from that of `may_drop` for the whole: a bool, or a structure of bools for its
    parts."""
    if not nest.is_nested(structure):
        return [bool(answer)]
    children = _children(structure)
    answers = _children(answer) if nest.is_nested(answer) else [answer] * len(children)
    allowed: list[bool] = []
    for child, of_child in zip(children, answers):
        if nest.is_nested(of_child):
            allowed += _ruled(child, of_child, may_drop)
        elif of_child:
            allowed += _leaves_allowed(child, may_drop)
        else:
            allowed += [False] * len(nest.flatten(child))
    return allowed


def _children(structure: Any) -> list[Any]:
    return [structure[key] for key in sorted(structure)] if isinstance(structure, dict) else list(structure)


class ResidualWrapper(CellWrapper):
    """A cell whose inputs are added to its outputs.

    Args:
        cell: the cell; its outputs must have the shapes of its inputs.
        residual_fn: function of inputs and outputs that combines them in another way.

    A step raises ValueError for outputs of another structure or shape than the inputs.
    """

    def __init__(
        self, cell: Any, residual_fn: Callable[[Any, Any], Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(cell, **kwargs)
        self._residual_fn = residual_fn

    def call(self, inputs: Any, state: Any, **kwargs: Any) -> tuple[Any, Any]:
        """The cell's outputs combined with the inputs, and the cell's new state."""
        outputs, new_state = self._cell(inputs, state, **kwargs)
        return (self._residual_fn or _sum_of)(inputs, outputs), new_state


def _sum_of(inputs: Any, outputs: Any) -> Any:
    nest.assert_same_structure(inputs, outputs)
    for x, y in zip(nest.flatten(inputs), nest.flatten(outputs)):
        x.get_shape().assert_is_compatible_with(y.get_shape())
    return nest.map_structure(lambda x, y: x + y, inputs, outputs)


class DeviceWrapper(CellWrapper):
    """A cell that runs on a device, given by name or as a function of the operation."""

    def __init__(self, cell: Any, device: Any, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._device = device

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The cell's, on the device."""
        with (
            get_default_graph().name_scope(f"{type(self).__name__}ZeroState"),
            get_default_graph().device(self._device),
        ):
            return self._cell.zero_state(batch_size, dtype)

    def call(self, inputs: Any, state: Any, **kwargs: Any) -> tuple[Any, Any]:
        """The cell's step, on the device."""
        with get_default_graph().device(self._device):
            return self._cell(inputs, state, **kwargs)  # type: ignore[no-any-return]
