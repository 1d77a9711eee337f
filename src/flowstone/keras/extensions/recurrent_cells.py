"""Cells of recurrent layers: `AbstractRNNCell`, the peephole cell, states of stacked cells, and the initial
state of every cell.

Source of the peepholes: Gers and Schmidhuber (2000), "Recurrent nets that time and count".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import flowstone as tf
from flowstone.framework.tensors import nest
from flowstone.keras.published import own

__all__ = ["extend", "get_initial_state", "with_flat_states", "zeros_of_state"]


def zeros_of_state(sizes: Any, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
    """Zeros [batch, size] for each size of a state, in the structure of `sizes`.

    The batch and the type are those of `inputs`, if there are any. Raises ValueError where neither says them.
    """
    if inputs is not None:
        batch_size, dtype = tf.shape(inputs)[0], inputs.dtype
    if batch_size is None or dtype is None:
        raise ValueError(
            "batch_size and dtype cannot be None while constructing initial state: "
            f"batch_size={batch_size}, dtype={dtype}"
        )

    def zeros(size: Any) -> Any:
        return tf.zeros([batch_size, *tf.TensorShape(size).as_list()], dtype)

    if isinstance(sizes, (list, tuple)):
        return [zeros_of_state(size, None, batch_size, dtype) for size in sizes]
    return zeros(sizes)


def get_initial_state(self: Any, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
    """The state before the first step: zeros for each of `state_size`, of the batch and type of `inputs`."""
    return zeros_of_state(self.state_size, inputs, batch_size, dtype)


def _state_of_stack(self: Any, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
    """The state of each cell, in a tuple, in the order of `state_size` (Keras 2.2: the last cell first)."""
    cells = self.cells[::-1] if getattr(self, "reverse_state_order", True) else self.cells
    states = []
    for cell in cells:
        make = getattr(cell, "get_initial_state", None)
        made = make(inputs=inputs, batch_size=batch_size, dtype=dtype) if make is not None else None
        states.append(zeros_of_state(cell.state_size, inputs, batch_size, dtype) if made is None else made)
    return tuple(states)


_FLAT = "_has_flat_states"


@contextmanager
def _flat_states(layer: Any) -> Iterator[bool]:
    """A context in which stacked cells of a recurrent layer have a list of the states of all cells.

    The package's layers know such lists alone. It gives whether states have a structure outside of it.
    """
    cell = vars(layer).get("cell")
    if not isinstance(getattr(type(cell), "state_size", None), _StackedSizes) or getattr(cell, _FLAT):
        yield False
        return
    setattr(cell, _FLAT, True)
    try:
        yield True
    finally:
        setattr(cell, _FLAT, False)


def with_flat_states(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a recurrent layer, for which states of stacked cells are a list."""

    @functools.wraps(method)
    def called(self: Any, *arguments: Any, **keywords: Any) -> Any:
        with _flat_states(self):
            return method(self, *arguments, **keywords)

    return called


def _changed_layer_call(published: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(published)
    def __call__(
        self: Any, inputs: Any, initial_state: Any = None, constants: Any = None, **keywords: Any
    ) -> Any:
        """The outputs, and the states in the structure of the cell's `state_size`, as `initial_state` is."""
        with _flat_states(self) as have_structure:
            if have_structure:
                inputs = nest.flatten(inputs) if isinstance(inputs, (list, tuple)) else inputs
                initial_state = None if initial_state is None else nest.flatten(initial_state)
            outputs = published(self, inputs, initial_state=initial_state, constants=constants, **keywords)
        if not have_structure or not self.return_state:
            return outputs
        return [outputs[0], *nest.pack_sequence_as(self.cell.state_size, outputs[1:])]

    return __call__


class _StackedSizes(property):
    """The sizes of the states of stacked cells: in a tuple those of each, or all in one list."""


def _stacked_sizes(self: Any) -> tuple[Any, ...]:
    cells = self.cells[::-1] if self.reverse_state_order else self.cells
    sizes = tuple(cell.state_size for cell in cells)
    return tuple(nest.flatten(sizes)) if getattr(self, _FLAT) else sizes


def _changed_stack(published: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(published)
    def call(self: Any, inputs: Any, states: Any, constants: Any = None, **keywords: Any) -> Any:
        """The outputs and states of a step; the states in any structure, and in that of `state_size`."""
        outputs, after = published(self, inputs, nest.flatten(states), constants=constants, **keywords)
        return outputs, nest.pack_sequence_as(self.state_size, nest.flatten(after))

    return call


def _abstract_class(layer: Any) -> Any:
    class AbstractRNNCell(layer):  # type: ignore[misc]
        """The base of cells: a call takes inputs and states of one step, and returns outputs and states.

        A subclass has `call(inputs, states)`, and the properties `state_size` and `output_size`.
        """

        get_initial_state = get_initial_state

        def call(self, inputs: Any, states: Any) -> Any:
            """The outputs and the states of a step; for subclasses."""
            raise NotImplementedError("Abstract method")

        @property
        def state_size(self) -> Any:
            """The size of the state, or of each part of it."""
            raise NotImplementedError("Abstract method")

        @property
        def output_size(self) -> Any:
            """The size of the outputs."""
            raise NotImplementedError("Abstract method")

    return AbstractRNNCell


_PEEPHOLES = ("input_gate_peephole_weights", "forget_gate_peephole_weights", "output_gate_peephole_weights")


def _peephole_class(base: Any) -> Any:
    class PeepholeLSTMCell(base):  # type: ignore[misc]
        """A LSTM cell whose gates also see the cell's state, weighted by a vector each.

        See `tf.keras.layers.LSTMCell` for the arguments.
        """

        def build(self, input_shape: Any) -> None:
            """Makes the weights."""
            super().build(input_shape)
            for name in _PEEPHOLES:
                weight = self.add_weight(name, (self.units,), initializer=self.kernel_initializer)
                setattr(self, name, weight)

        def _seen(self, gate: int, sums: Any, c: Any) -> Any:
            """The sums of a gate with what it sees of the cell's state."""
            return sums + getattr(self, _PEEPHOLES[gate]) * c

    return PeepholeLSTMCell


def _initial_state_of_layer(self: Any, inputs: Any) -> Any:
    """The states before the first step, as the cell makes them; else zeros."""
    first = nest.flatten(inputs)[0]
    rows, dtype = tf.shape(first)[1 if self.time_major else 0], first.dtype.base_dtype
    make = getattr(self.cell, "get_initial_state", None)
    if make is None:
        return nest.flatten(zeros_of_state(self.cell.state_size, None, rows, dtype))
    return nest.flatten(make(inputs=None, batch_size=rows, dtype=dtype))


def _set_state_size(self: Any, sizes: Any) -> None:
    """Sets it: of a list, as the states of a call are."""
    vars(self)["state_size"] = [*sizes] if isinstance(sizes, tuple) else sizes


def extend(module: ModuleType) -> None:
    """Puts the classes into `keras.layers.recurrent`, and gives its cells their initial states."""
    names = vars(module)
    sizes = property(lambda cell: vars(cell)["state_size"], _set_state_size, doc="The sizes of the states.")
    names["LSTMCell"].state_size = sizes
    names["AbstractRNNCell"] = _abstract_class(own("engine.base_layer").Layer)
    names["PeepholeLSTMCell"] = _peephole_class(names["LSTMCell"])
    for name in ("AbstractRNNCell", "PeepholeLSTMCell"):
        names[name].__module__, names[name].__qualname__ = module.__name__, name
    for name in ("SimpleRNNCell", "GRUCell", "LSTMCell"):
        names[name].get_initial_state = get_initial_state
    stack = names["StackedRNNCells"]
    stack.get_initial_state, stack.state_size = _state_of_stack, _StackedSizes(_stacked_sizes)
    stack.call = _changed_stack(stack.call)
    setattr(stack, _FLAT, False)
    layer = names["RNN"]
    layer.get_initial_state = _initial_state_of_layer
    for name in ("get_initial_state", "build", "reset_states", "compute_output_shape", "compute_mask"):
        setattr(layer, name, with_flat_states(getattr(layer, name)))
    layer.states = property(with_flat_states(layer.states.fget), layer.states.fset)
    layer.__call__ = _changed_layer_call(layer.__call__)
