"""Layers of LSTM cells by BLAS's products and machine code between them, and their gradients.

As `lstm_kernels.py` has them by oneDNN, which arranges the weights anew, keeps three times as much for the
gradient and on some processors multiplies more slowly. Here the inputs of all steps are one product and so
are the gradients by inputs, weights and bias; a step is a product by the state's half of the weights, as they
are, and a pass over its gates. What is saved are the gates, in whose place the gradient puts its own, and the
states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from flowstone.native.networks import lstm_steps

__all__ = ["Saved", "gradients", "sequence"]

_NUMBER = 4  # bytes


class Saved(NamedTuple):
    """What the gradient of a layer needs of its forward pass: x, the gates [T, B, 4 H], and outputs and
    states [1 + T, B, H], those before the first step included."""

    x: torch.Tensor
    gates: torch.Tensor
    outputs: torch.Tensor
    states: torch.Tensor


def _addresses(x: torch.Tensor) -> range:
    """Where each of the outermost parts of a contiguous tensor begins, and where they end."""
    size = x.stride(0) * _NUMBER
    return range(x.data_ptr(), x.data_ptr() + (len(x) + 1) * size, size)


def sequence(node: Any, rows: int, units: int, size: int) -> Callable[..., Any]:
    """What computes the outputs of all steps, the last output and state, and what is saved."""
    training, forget_bias = node.attributes["training"], node.attributes["forget_bias"]
    gates_order = node.attributes["gates"]
    added = torch.zeros(4 * units)
    added[gates_order[1] * units : (gates_order[1] + 1) * units] = forget_bias
    advance = lstm_steps.bound("advance", rows, units, gates_order)

    def layer(x: Any, h: Any, c: Any, weights: Any, bias: Any) -> Any:
        steps, x = len(x), x.contiguous()
        by_input, by_state = torch.split(weights, [size, units])
        gates = torch.mm(x.view(-1, size), by_input).view(steps, rows, 4 * units)
        outputs = torch.empty(1 + steps, rows, units)
        states = torch.empty(1 + steps if training else 1, rows, units)
        outputs[0], states[0] = h, c
        bias = bias + added if forget_bias else bias.contiguous()
        first_bias, by_step, results = bias.data_ptr(), _addresses(gates), _addresses(outputs)
        at = _addresses(states) if training else [states.data_ptr()] * (1 + steps)
        before = outputs.unbind()
        for step, now in enumerate(gates.unbind()):
            torch.addmm(now, before[step], by_state, out=now)
            advance(first_bias, by_step[step], at[step], at[step + 1], results[step + 1])
        saved = Saved(x, gates, outputs, states) if training else None
        return outputs[1:], outputs[-1].clone(), states[-1], saved

    return layer


def gradients(node: Any, rows: int) -> Callable[..., Any]:
    """What computes the gradients with respect to x of all steps, first output and state, weights and bias
    from those by the outputs of all steps and the last output and state."""
    units, size = node.attributes["units"], node.attributes["size"]
    differentiate = lstm_steps.bound("differentiate", rows, units, node.attributes["gates"])

    def layer(saved: Saved, weights: Any, dy: Any, dh: Any, dc: Any) -> Any:
        by_input, by_state = torch.split(weights, [size, units])
        by_state = by_state.t().contiguous()
        dh = torch.zeros(rows, units) if dh is None else dh.clone(memory_format=torch.contiguous_format)
        dc = torch.zeros(rows, units) if dc is None else dc.clone(memory_format=torch.contiguous_format)
        each = saved.gates.unbind()
        gates, states, by_y = _addresses(saved.gates), _addresses(saved.states), _addresses(dy)
        others = dh.data_ptr(), dc.data_ptr(), dc.data_ptr()
        for step in reversed(range(len(each))):
            differentiate(gates[step], states[step], states[step + 1], by_y[step], *others)
            torch.mm(each[step], by_state, out=dh)
        flat = saved.gates.view(-1, 4 * units)
        dx = torch.mm(flat, by_input.t()).view(saved.x.shape)
        by_weights = torch.empty(size + units, 4 * units)
        torch.mm(saved.x.view(-1, size).t(), flat, out=by_weights[:size])
        torch.mm(saved.outputs[:-1].view(-1, units).t(), flat, out=by_weights[size:])
        return dx, dh, dc, by_weights, flat.sum(0)

    return layer
