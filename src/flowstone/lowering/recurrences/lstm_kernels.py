"""Layers of LSTM cells as one kernel and one for all their gradients: oneDNN's, or by products.

Plans only: `lstm_layers.py` makes `_LSTMLayer` of cells that are unrolled over time, and
`lstm_loops.py` `_LSTMSequence` of those in a loop, with the steps' values stacked: x [T, B, D],
outputs [T, B, H], first output and state [B, H]. A cell of H units multiplies the rows
``[x, h]`` by weights [D + H, 4 H], adds a bias and splits the result into four parts; `gates` says which of
them are the input gate, the forget gate, the candidate and the output gate:

    c' = sigmoid(forget + forget_bias) c + sigmoid(input) tanh(candidate),   h' = sigmoid(output) tanh(c')

oneDNN has the weights the other way round, by x and by h apart, the parts in the order above: a copy of them
is arranged in each step. ATen makes what oneDNN's gradient needs only where gradients are enabled. Where the
processor's profile says so, `lstm_products.py` computes the same without oneDNN.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, Call, Input
from flowstone.framework.declarations.operation import op
from flowstone.framework.machine import machine, onednn
from flowstone.lowering.recurrences import lstm_products
from flowstone.native.networks import lstm_steps

__all__: list[str] = []

_LSTM = 2  # ATen's number of the kind of cell
_WORKSPACE = 15  # numbers a unit and step
_GATES_AND_STATE = 5  # the same, by products
_FORWARD = onednn.lstm_layer
_BACKWARD = onednn.lstm_layer_gradient
_ATTRIBUTES = "gates: list(int) ; forget_bias: float = 0.0"


class Saved(NamedTuple):
    """What the gradient of a layer needs of its forward pass, in oneDNN's arrangement."""

    x: torch.Tensor
    weights: tuple[torch.Tensor, ...]
    outputs: tuple[torch.Tensor, ...]
    workspace: torch.Tensor


def rows_of(node: Any) -> int | None:
    """How many rows a layer multiplies by its weights, in all steps; None if a shape is unknown."""
    x = node.static_shape(0)
    return None if x is None else node.attributes.get("N", 1) * math.prod(x[:-1])


def _by_products(size: int, units: int, training: bool = True) -> bool:
    weights = 4 * units * (size + units)
    return lstm_steps.is_available() and machine.current().runs_layers_by_products(weights, training)


def saved_bytes(node: Any) -> int:
    """About how much memory a layer saves beside its outputs; 0 if a shape is unknown."""
    rows, weights = rows_of(node), node.static_shape(len(node.inputs) - 2)
    if rows is None or weights is None or not node.attributes["training"]:
        return 0
    units = weights[1] // 4
    size = weights[0] - units
    if _by_products(size, units):
        return int(4 * rows * (size + _GATES_AND_STATE * units))
    return int(4 * (rows * (size + _WORKSPACE * units) + math.prod(weights)))


layer_op = op(
    "_LSTMLayer",
    "x: N*T, h: T, c: T, weights: T, bias: T -> y: N*T, last_c: T, saved: resource",
    _ATTRIBUTES + " ; training: bool = false",
    cost=work.recurrent_layer,
    T=None,
)
layer_op.holds(saved_bytes)
layer_op.not_differentiable()


@layer_op.infer
def _(node: Any) -> Any:
    count = node.attributes["N"]
    return [*[node.static_shape(count)] * count, node.static_shape(count + 1), ()]


def _reordered(parts: Any, order: Any) -> Any:
    """The four equal parts of the rows of a matrix or the elements of a vector, in this order."""
    quarters = torch.split(parts, parts.shape[0] // 4)
    return parts if list(order) == [0, 1, 2, 3] else torch.cat([quarters[i] for i in order])


@layer_op.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    count = node.attributes["N"]
    rows, units = node.static_shape(count)
    sequence = _sequence(node, rows, units, node.static_shape(0)[1])

    def layer(inputs: Any, h: Any, c: Any, weights: Any, bias: Any) -> Any:
        y, _, last_c, saved = sequence(torch.stack(inputs), h, c, weights, bias)
        return *torch.unbind(y), last_c, saved

    inputs = [Input(i) for i in range(count)]
    return Call(layer, inputs, *[Input(count + i) for i in range(4)])


def _sequence(node: Any, rows: int, units: int, size: int) -> Any:
    """What computes the outputs of all steps, the last output and state, and what is saved."""
    gates, training = node.attributes["gates"], node.attributes["training"]
    if _by_products(size, units, training):
        return lstm_products.sequence(node, rows, units, size)
    added = torch.zeros(4 * units)
    added[units : 2 * units] = node.attributes["forget_bias"]
    none = torch.zeros(4 * units)

    def sequence(x: Any, h: Any, c: Any, weights: Any, bias: Any) -> Any:
        x = x.contiguous()
        arranged = _reordered(weights.t().contiguous(), gates)
        by_input, by_state = torch.split(arranged, [size, units], 1)
        operands = by_input, by_state, _reordered(bias, gates) + added, none
        with torch.set_grad_enabled(training):
            *outputs, workspace = _FORWARD(
                x, *operands, h, c, False, [], _LSTM, units, 1, True, False, False, training
            )
        return *outputs, Saved(x, operands, tuple(outputs), workspace) if training else None

    return sequence


gradient_op = op(
    "_LSTMLayerGradient",
    "y: N*T, last_c: T, h: T, c: T, saved: resource, weights: T, dy: M*T"
    " -> dx: N*T, dh: T, dc: T, by_weights: T, by_bias: T",
    _ATTRIBUTES + " ; steps: list(int) ; units: int ; size: int",
    cost=work.recurrent_layer_gradient,
    T=None,
)
gradient_op.not_differentiable()


@gradient_op.infer
def _(node: Any) -> Any:
    count, units, size = (node.attributes[key] for key in ("N", "units", "size"))
    state = node.static_shape(0)
    rows = None if state is None else state[0]
    return [*[(rows, size)] * count, state, state, (size + units, 4 * units), (4 * units,)]


@gradient_op.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    """`dy` are gradients with respect to the outputs of `steps`, added up where there are several of one;
    those of step N, after the last, are by the last state. `y` and `last_c` are inputs only so that nobody
    overwrites them before: they are among what is saved."""
    count, steps = node.attributes["N"], node.attributes["steps"]
    by_all = _gradients(node, node.static_shape(0)[0])
    first = {step: i for i, step in reversed(list(enumerate(steps)))}
    places = [first.get(step) for step in range(count)]
    more = [(i, step) for i, step in enumerate(steps) if step < count and first[step] != i]
    by_last_c = [i for i, step in enumerate(steps) if step == count]
    zero = torch.zeros(node.static_shape(0))

    def gradient(h: Any, c: Any, saved: Any, weights: Any, given: Any) -> Any:
        dy = torch.stack([zero if i is None else given[i] for i in places])
        for i, step in more:
            dy[step].add_(given[i])
        dc = sum([given[i] for i in by_last_c[1:]], given[by_last_c[0]]) if by_last_c else None
        dx, *others = by_all(h, c, saved, weights, dy, None, dc)
        return *torch.unbind(dx), *others

    given: Any = [Input(count + 5 + i) for i in range(len(steps))]
    return Call(gradient, *[Input(count + i) for i in range(1, 5)], given)


def _gradients(node: Any, rows: int) -> Any:
    """What computes the gradients with respect to x of all steps, first output and state, weights and bias
    from those by the outputs of all steps and the last output and state."""
    units, order = node.attributes["units"], np.argsort(node.attributes["gates"]).tolist()
    if _by_products(node.attributes["size"], units):
        by_products = lstm_products.gradients(node, rows)
        return lambda h, c, *given: by_products(*given)

    def gradients(h: Any, c: Any, saved: Any, weights: Any, dy: Any, dh: Any, dc: Any) -> Any:
        dx, by_input, by_state, bias, _, dh, dc = _BACKWARD(
            saved.x, *saved.weights, h, c, *saved.outputs, dy, dh, dc,
            False, _LSTM, units, 1, True, True, False, [], False, saved.workspace,
        )  # fmt: skip
        by_weights = _reordered(torch.cat([by_input, by_state], 1), order).t().contiguous()
        return dx, dh, dc, by_weights, _reordered(bias, order)

    return gradients


# ---- stacked steps

sequence_op = op(
    "_LSTMSequence",
    "x: T, h: T, c: T, weights: T, bias: T -> y: T, last_h: T, last_c: T, saved: resource",
    _ATTRIBUTES + " ; training: bool = false",
    cost=work.recurrent_layer,
    T=None,
)
sequence_op.holds(saved_bytes)
sequence_op.not_differentiable()


@sequence_op.infer
def _(node: Any) -> Any:
    x, state = node.static_shape(0), node.static_shape(1)
    steps = None if x is None else x[0]
    return [None if state is None else (steps, *state), state, state, ()]


@sequence_op.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    rows, units = node.static_shape(1)
    return Call(_sequence(node, rows, units, node.static_shape(0)[2]), *map(Input, range(5)))


sequence_gradient_op = op(
    "_LSTMSequenceGradient",
    "x: T, y: T, last_h: T, last_c: T, h: T, c: T, saved: resource, dh: T, dc: T, weights: T, dy: M*T"
    " -> dx: T, first_dh: T, first_dc: T, by_weights: T, by_bias: T",
    _ATTRIBUTES + " ; units: int ; size: int",
    cost=work.recurrent_layer_gradient,
    T=None,
)
sequence_gradient_op.not_differentiable()


@sequence_gradient_op.infer
def _(node: Any) -> Any:
    units, size = node.attributes["units"], node.attributes["size"]
    x, state = node.static_shape(0), node.static_shape(4)
    return [x, state, state, (size + units, 4 * units), (4 * units,)]


@sequence_gradient_op.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    """`dy`, of which there may be several or none, are stacked; `x`, `y`, `last_h` and `last_c` are inputs
    only so that nobody overwrites what is saved."""
    count, state = node.attributes["M"], node.static_shape(1)
    by_all = _gradients(node, state[1])

    def gradient(h: Any, c: Any, saved: Any, dh: Any, dc: Any, weights: Any, given: Any) -> Any:
        dy = sum(given[1:], given[0]).contiguous() if given else torch.zeros(state)
        return by_all(h, c, saved, weights, dy, dh, dc)

    return Call(gradient, *[Input(4 + i) for i in range(6)], [Input(10 + i) for i in range(count)])
