"""Steps of the cells of `SimpleRNN`, `GRU`, `LSTM` and `ConvLSTM2D` as TensorFlow 1.15's nodes.

The package cuts kernels into gates once, when a cell is built; TensorFlow's cells do so in each step, where
they also read the variables. A plan does it once again. With a seed of the graph alone, what a random
operation draws depends on the number of nodes before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import flowstone as tf
from flowstone.keras.published import own

__all__ = ["extend"]


def _weight(cell: Any, name: str, shape: Any, initializer: Any, kind: str | None = None) -> Any:
    kind = kind or name
    regularizer, constraint = getattr(cell, f"{kind}_regularizer"), getattr(cell, f"{kind}_constraint")
    return cell.add_weight(
        name=name, shape=shape, initializer=initializer, regularizer=regularizer, constraint=constraint
    )


def _build_kernels(cell: Any, input_shape: Any, gates: int) -> None:
    units = cell.units
    cell.kernel = _weight(cell, "kernel", (input_shape[-1], units * gates), cell.kernel_initializer)
    shape = units, units * gates
    cell.recurrent_kernel = _weight(cell, "recurrent_kernel", shape, cell.recurrent_initializer, "recurrent")


def _build_gru(self: Any, input_shape: Any) -> None:
    """Makes `kernel` [inputs, 3 units], `recurrent_kernel` [units, 3 units] and `bias` [3 units], or
    [2, 3 units] with `reset_after`; the gates in the order update, reset, candidate.
    """
    _build_kernels(self, input_shape, 3)
    shape = (2, 3 * self.units) if self.reset_after else (3 * self.units,)
    self.bias = _weight(self, "bias", shape, self.bias_initializer) if self.use_bias else None
    self.built = True


def _build_lstm(self: Any, input_shape: Any) -> None:
    """Makes `kernel` [inputs, 4 units], `recurrent_kernel` [units, 4 units] and `bias` [4 units]; the gates
    in the order input, forget, candidate, output.
    """
    _build_kernels(self, input_shape, 4)
    _build_lstm_bias(self, self.units)
    self.built = True


def _build_lstm_bias(self: Any, units: int) -> None:
    published, ones = self.bias_initializer, own("initializers").Ones()

    def with_ones(_: Any, *arguments: Any, **keywords: Any) -> Any:
        parts = (published, units), (ones, units), (published, 2 * units)
        return tf.concat([make((size,), *arguments, **keywords) for make, size in parts], -1)

    initializer = with_ones if self.unit_forget_bias else published
    self.bias = _weight(self, "bias", (4 * units,), initializer) if self.use_bias else None


def _build_convolved_lstm(self: Any, input_shape: Any) -> None:
    """Makes `kernel` [height, width, channels, 4 filters], `recurrent_kernel` [height, width, filters,
    4 filters] and `bias` [4 filters]; ValueError for inputs of an unknown number of channels.
    """
    channels = input_shape[1 if self.data_format == "channels_first" else -1]
    if channels is None:
        raise ValueError("The channel dimension of the inputs should be defined. Found `None`.")
    self.kernel_shape = (*self.kernel_size, channels, self.filters * 4)
    self.kernel = _weight(self, "kernel", self.kernel_shape, self.kernel_initializer)
    shape = (*self.kernel_size, self.filters, self.filters * 4)
    self.recurrent_kernel = _weight(self, "recurrent_kernel", shape, self.recurrent_initializer, "recurrent")
    _build_lstm_bias(self, self.filters)
    self.built = True


class _Masks:
    """The dropout of a step: `inputs(x, gate)` and `states(h, gate)` give them as a gate gets them.

    The cell keeps the masks for all steps of a sequence.
    """

    def __init__(self, cell: Any, x: Any, h: Any, training: Any, gates: int) -> None:
        kinds = ("_dropout_mask", cell.dropout, x), ("_recurrent_dropout_mask", cell.recurrent_dropout, h)
        for attribute, rate, like in kinds:
            if 0 < rate < 1 and getattr(cell, attribute) is None:
                make = own("layers.recurrent")._generate_dropout_mask
                masks = make(tf.ones_like(like), rate, training=training, count=gates)
                setattr(cell, attribute, masks if gates > 1 else [masks])
        self._of_inputs = cell._dropout_mask if 0 < cell.dropout < 1 else None
        self._of_states = cell._recurrent_dropout_mask if 0 < cell.recurrent_dropout < 1 else None

    def inputs(self, x: Any, gate: int = 0) -> Any:
        return x if self._of_inputs is None else x * self._of_inputs[gate]

    def states(self, h: Any, gate: int = 0) -> Any:
        return h if self._of_states is None else h * self._of_states[gate]


def _noted(cell: Any, training: Any, h: Any) -> Any:
    """The output; what Keras asks of it says whether the learning phase matters."""
    if cell.dropout + cell.recurrent_dropout > 0 and training is None:
        h._uses_learning_phase = True
    return h


def _call_simple(self: Any, inputs: Any, states: Any, training: Any = None) -> Any:
    """The outputs [batch, units] of a step, and the list of the state, which is the same."""
    backend = own("backend")
    masks = _Masks(self, inputs, states[0], training, 1)
    sums = backend.dot(masks.inputs(inputs), self.kernel)
    if self.bias is not None:
        sums = backend.bias_add(sums, self.bias)
    h = sums + backend.dot(masks.states(states[0]), self.recurrent_kernel)
    h = _noted(self, training, h if self.activation is None else self.activation(h))
    return h, [h]


def _call_gru(self: Any, inputs: Any, states: Any, training: Any = None) -> Any:
    """The outputs [batch, units] of a step, and the list of the state, which is the same."""
    before = states[0]
    masks = _Masks(self, inputs, before, training, 3)
    biases: tuple[Any, ...] = (None, None)
    if self.use_bias:
        biases = tuple(tf.unstack(self.bias)) if self.reset_after else (self.bias, None)
    make = _gates_apart if self.implementation == 1 else _gates_together
    before, z, candidate = make(self, inputs, before, masks, biases)
    h = _noted(self, training, z * before + (1 - z) * candidate)
    return h, [h]


def _gates_apart(cell: Any, x: Any, before: Any, masks: _Masks, biases: Any) -> tuple[Any, Any, Any]:
    """The state before, the update gate and the candidate state, by a product for each."""
    backend, units = own("backend"), cell.units
    of_inputs, of_states = biases
    parts = [slice(None, units), slice(units, units * 2), slice(units * 2, None)]

    def biased(sums: Any, bias: Any, part: slice) -> Any:
        return sums if bias is None else backend.bias_add(sums, bias[part])

    xs = [masks.inputs(x, gate) for gate in range(3)]
    sums = [backend.dot(each, cell.kernel[:, part]) for each, part in zip(xs, parts)]
    sums = [biased(each, of_inputs, part) for each, part in zip(sums, parts)]
    hs = [masks.states(before, gate) for gate in range(3)]
    inner = [backend.dot(each, cell.recurrent_kernel[:, part]) for each, part in zip(hs[:2], parts)]
    inner = [biased(each, of_states, part) for each, part in zip(inner, parts)]
    z, r = (cell.recurrent_activation(ours + others) for ours, others in zip(sums, inner))
    if cell.reset_after:
        last = r * biased(backend.dot(hs[2], cell.recurrent_kernel[:, parts[2]]), of_states, parts[2])
    else:
        last = backend.dot(r * hs[2], cell.recurrent_kernel[:, parts[2]])
    return before, z, cell.activation(sums[2] + last)


def _gates_together(cell: Any, x: Any, before: Any, masks: _Masks, biases: Any) -> tuple[Any, Any, Any]:
    """The state before, with dropout, the update gate and the candidate state, by joint products."""
    backend, units = own("backend"), cell.units
    of_inputs, of_states = biases
    parts = [slice(None, units), slice(units, units * 2), slice(units * 2, None)]
    sums = backend.dot(masks.inputs(x), cell.kernel)
    if of_inputs is not None:
        sums = backend.bias_add(sums, of_inputs)
    sums = [sums[:, part] for part in parts]
    before = masks.states(before)
    if cell.reset_after:
        inner = backend.dot(before, cell.recurrent_kernel)
        if of_states is not None:
            inner = backend.bias_add(inner, of_states)
    else:
        inner = backend.dot(before, cell.recurrent_kernel[:, : 2 * units])
    others = inner[:, parts[0]], inner[:, parts[1]]
    z, r = (cell.recurrent_activation(ours + theirs) for ours, theirs in zip(sums, others))
    if cell.reset_after:
        last = r * inner[:, parts[2]]
    else:
        last = backend.dot(r * before, cell.recurrent_kernel[:, parts[2]])
    return before, z, cell.activation(sums[2] + last)


def _call_lstm(self: Any, inputs: Any, states: Any, training: Any = None) -> Any:
    """The outputs [batch, units] of a step, and the list of its states, the output and the cell's state."""
    before, c = states
    masks = _Masks(self, inputs, before, training, 4)
    make = _sums_apart if self.implementation == 1 else _sums_together
    sums = make(self, inputs, before, masks)
    i = self.recurrent_activation(self._seen(0, next(sums), c))
    f = self.recurrent_activation(self._seen(1, next(sums), c))
    c = f * c + i * self.activation(next(sums))
    o = self.recurrent_activation(self._seen(2, next(sums), c))
    h = _noted(self, training, o * self.activation(c))
    return h, [h, c]


def _sums_apart(cell: Any, x: Any, before: Any, masks: _Masks) -> Iterator[Any]:
    """The sums of the four gates, by two products for each."""
    backend, units = own("backend"), cell.units
    xs = [masks.inputs(x, gate) for gate in range(4)]
    sums = [backend.dot(*pair) for pair in zip(xs, tf.split(cell.kernel, 4, axis=1))]
    if cell.use_bias:
        sums = [backend.bias_add(*pair) for pair in zip(sums, tf.split(cell.bias, 4, axis=0))]
    hs = [masks.states(before, gate) for gate in range(4)]
    ends = None, units, units * 2, units * 3, None
    for gate in range(4):
        part = slice(ends[gate], ends[gate + 1])
        yield sums[gate] + backend.dot(hs[gate], cell.recurrent_kernel[:, part])


def _sums_together(cell: Any, x: Any, before: Any, masks: _Masks) -> Iterator[Any]:
    """The sums of the four gates, by two products."""
    backend = own("backend")
    sums = backend.dot(masks.inputs(x), cell.kernel)
    sums += backend.dot(masks.states(before), cell.recurrent_kernel)
    if cell.use_bias:
        sums = backend.bias_add(sums, cell.bias)
    yield from tf.split(sums, 4, axis=1)


def _call_convolved_lstm(self: Any, inputs: Any, states: Any, training: Any = None) -> Any:
    """The outputs [batch, height, width, filters] of a step, and the list of its states."""
    before, c = states
    masks = _Masks(self, inputs, before, training, 4)
    xs = [masks.inputs(inputs, gate) for gate in range(4)]
    hs = [masks.states(before, gate) for gate in range(4)]
    kernels, inner = (tf.split(each, 4, axis=3) for each in (self.kernel, self.recurrent_kernel))
    biases = tf.split(self.bias, 4) if self.use_bias else [None] * 4
    ours = [self.input_conv(*each, padding=self.padding) for each in zip(xs, kernels, biases)]
    theirs = [self.recurrent_conv(*each) for each in zip(hs, inner)]
    i = self.recurrent_activation(ours[0] + theirs[0])
    f = self.recurrent_activation(ours[1] + theirs[1])
    c = f * c + i * self.activation(ours[2] + theirs[2])
    o = self.recurrent_activation(ours[3] + theirs[3])
    h = _noted(self, training, o * self.activation(c))
    return h, [h, c]


def _seen(self: Any, gate: int, sums: Any, c: Any) -> Any:
    """The sums of an input (0), forget (1) or output (2) gate, which sees nothing of the cell's state `c`."""
    return sums


def extend(module: ModuleType) -> None:
    """Gives the cells of `keras.layers.recurrent`, or of `convolutional_recurrent`, these members."""
    names = vars(module)
    if convolved := names.get("ConvLSTM2DCell"):
        convolved.build, convolved.call = _build_convolved_lstm, _call_convolved_lstm
        return
    names["SimpleRNNCell"].call = _call_simple
    names["GRUCell"].build, names["GRUCell"].call = _build_gru, _call_gru
    lstm = names["LSTMCell"]
    lstm.build, lstm.call, lstm._seen = _build_lstm, _call_lstm, _seen
