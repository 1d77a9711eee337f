"""Layers of LSTM cells, unrolled over time, as one kernel and one for all their gradients: oneDNN's.

Plans only: `rewriting/lstm_layers.py` makes these of the cells. A cell of H units multiplies the rows
``[x, h]`` by weights [D + H, 4 H], adds a bias and splits the result into four parts; `gates` says which of
them are the input gate, the forget gate, the candidate and the output gate:

    c' = sigmoid(forget + forget_bias) c + sigmoid(input) tanh(candidate),   h' = sigmoid(output) tanh(c')

oneDNN has the weights the other way round, by x and by h apart, the parts in the order above: a copy of them
is arranged in each step. ATen makes what oneDNN's gradient needs only where gradients are enabled.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from flowstone.framework.kernel import CPU, Call, Input
from flowstone.framework.operation import op

__all__: list[str] = []

_LSTM = 2  # ATen's number of the kind of cell
_FORWARD = torch.ops.aten.mkldnn_rnn_layer.default
_BACKWARD = torch.ops.aten.mkldnn_rnn_layer_backward.default
_ATTRIBUTES = "gates: list(int) ; forget_bias: float = 0.0"


class Saved(NamedTuple):
    """What the gradient of a layer needs of its forward pass, in oneDNN's arrangement."""

    x: torch.Tensor
    weights: tuple[torch.Tensor, ...]
    outputs: tuple[torch.Tensor, ...]
    workspace: torch.Tensor


layer_op = op(
    "_LSTMLayer",
    "x: N*T, h: T, c: T, weights: T, bias: T -> y: N*T, last_c: T, saved: resource",
    _ATTRIBUTES + " ; training: bool = false",
    T=None,
)
layer_op.not_differentiable()


@layer_op.infer
def _(node):
    count = node.attributes["N"]
    return [*[node.static_shape(count)] * count, node.static_shape(count + 1), ()]


def _reordered(parts, order):
    """The four equal parts of the rows of a matrix or the elements of a vector, in this order."""
    quarters = torch.split(parts, parts.shape[0] // 4)
    return parts if list(order) == [0, 1, 2, 3] else torch.cat([quarters[i] for i in order])


@layer_op.kernel(CPU)
def _(node, env):
    count, gates, training = node.attributes["N"], node.attributes["gates"], node.attributes["training"]
    units, size = node.static_shape(count)[1], node.static_shape(0)[1]
    added = torch.zeros(4 * units)
    added[units : 2 * units] = node.attributes["forget_bias"]
    none = torch.zeros(4 * units)

    def layer(inputs, h, c, weights, bias):
        x = torch.stack(inputs)
        arranged = _reordered(weights.t().contiguous(), gates)
        by_input, by_state = torch.split(arranged, [size, units], 1)
        operands = by_input, by_state, _reordered(bias, gates) + added, none
        with torch.set_grad_enabled(training):
            *outputs, workspace = _FORWARD(
                x, *operands, h, c, False, [], _LSTM, units, 1, True, False, False, training
            )
        saved = Saved(x, operands, tuple(outputs), workspace) if training else None
        return *torch.unbind(outputs[0]), outputs[2], saved

    inputs = [Input(i) for i in range(count)]
    return Call(layer, inputs, *[Input(count + i) for i in range(4)])


gradient_op = op(
    "_LSTMLayerGradient",
    "y: N*T, last_c: T, h: T, c: T, saved: resource, dy: M*T -> dx: N*T, dh: T, dc: T, weights: T, bias: T",
    _ATTRIBUTES + " ; steps: list(int) ; units: int ; size: int",
    T=None,
)
gradient_op.not_differentiable()


@gradient_op.infer
def _(node):
    count, units, size = (node.attributes[key] for key in ("N", "units", "size"))
    state = node.static_shape(0)
    rows = None if state is None else state[0]
    return [*[(rows, size)] * count, state, state, (size + units, 4 * units), (4 * units,)]


@gradient_op.kernel(CPU)
def _(node, env):
    """`dy` are gradients by the outputs of `steps`, added up where there are several of one; those of step N,
    after the last, are by the last state. `y` and `last_c` are inputs only so that nobody overwrites them
    before: they are among what is saved."""
    count, units = node.attributes["N"], node.attributes["units"]
    steps, order = node.attributes["steps"], np.argsort(node.attributes["gates"]).tolist()
    first = {step: i for i, step in reversed(list(enumerate(steps)))}
    places = [first.get(step) for step in range(count)]
    more = [(i, step) for i, step in enumerate(steps) if step < count and first[step] != i]
    by_last_c = [i for i, step in enumerate(steps) if step == count]
    zero = torch.zeros(node.static_shape(0))

    def gradient(h, c, saved, given):
        dy = torch.stack([zero if i is None else given[i] for i in places])
        for i, step in more:
            dy[step].add_(given[i])
        dc = sum([given[i] for i in by_last_c[1:]], given[by_last_c[0]]) if by_last_c else None
        dx, by_input, by_state, bias, _, dh, dc = _BACKWARD(
            saved.x, *saved.weights, h, c, *saved.outputs, dy, None, dc,
            False, _LSTM, units, 1, True, True, False, [], False, saved.workspace,
        )  # fmt: skip
        weights = _reordered(torch.cat([by_input, by_state], 1), order).t().contiguous()
        return *torch.unbind(dx), dh, dc, weights, _reordered(bias, order)

    given: Any = [Input(count + 4 + i) for i in range(len(steps))]
    return Call(gradient, *[Input(count + i) for i in range(1, 4)], given)
