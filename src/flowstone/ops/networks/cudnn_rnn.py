"""Recurrent layers with the parameters in one vector, in cuDNN's order: CudnnRNN and its gradient.

ATen's own layers compute them, so that such models also run where there is no cuDNN. For layers one above the
other, each in one or two directions, the vector has

- for each layer, and each direction of it, the weights of the input [gates · units, inputs], then those of
  the state [gates · units, units];
- then in the same order the biases of the input, [gates · units], and of the state.

An LSTM's gates are input, forget, new value, output; a GRU's are reset, update, new value, whose reset gate
is applied after the state's product. `skip_input` leaves the first layer's input weights out: its inputs go
to every gate as they are. Dropout falls between layers; `reserve_space` keeps which values it left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, Environment
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.windows import require_rank
from flowstone.ops.randomness.op_seeds import fresh_seed

__all__: list[str] = []

_GATES = {"lstm": 4, "gru": 3, "rnn_relu": 1, "rnn_tanh": 1}
_LAYERS = {"gru": torch.gru, "rnn_relu": torch.rnn_relu, "rnn_tanh": torch.rnn_tanh}
_FORM = (
    "rnn_mode: string in ['rnn_relu', 'rnn_tanh', 'lstm', 'gru'] = 'lstm' ; "
    "input_mode: string in ['linear_input', 'skip_input', 'auto_select'] = 'linear_input' ; "
    "direction: string in ['unidirectional', 'bidirectional'] = 'unidirectional' ; dropout: float = 0 ; "
    "seed: int = 0 ; seed2: int = 0"
)
_INPUTS = "input: T, input_h: T, input_c: T, params: T"
_RESULTS = "output: T, output_h: T, output_c: T"


class _Form(NamedTuple):
    """What the attributes and the inputs' shapes say."""

    mode: str
    directions: int
    skips: bool
    dropout: float
    layers: int
    units: int
    inputs: int

    @staticmethod
    def of(node: Node, x: torch.Tensor, h: torch.Tensor) -> _Form:
        attributes = node.attributes
        if x.dim() != 3 or h.dim() != 3:
            raise invalid(
                f"input and input_h must have 3 dimensions, got {list(x.shape)} and {list(h.shape)}"
            )
        directions = 2 if attributes["direction"] == "bidirectional" else 1
        units, inputs = h.shape[2], x.shape[2]
        kind = attributes["input_mode"]
        skips = kind == "skip_input" or (kind == "auto_select" and units == inputs)
        if skips and units != inputs:
            raise invalid(f"skip_input needs as many units as inputs, but has {units} and {inputs}")
        if h.shape[0] % directions or h.shape[1] != x.shape[1]:
            raise invalid(f"input_h has shape {list(h.shape)}, which does not fit input of {list(x.shape)}")
        layers = h.shape[0] // directions
        return _Form(attributes["rnn_mode"], directions, skips, attributes["dropout"], layers, units, inputs)

    def sizes(self) -> list[tuple[int, ...]]:
        """The shapes of the weights and biases, in the vector's order."""
        rows = _GATES[self.mode] * self.units
        weights: list[tuple[int, ...]] = []
        for layer in range(self.layers):
            width = self.inputs if layer == 0 else self.units * self.directions
            for _ in range(self.directions):
                weights += [(0 if self.skips and layer == 0 else rows, width), (rows, self.units)]
        return weights + [(rows,)] * len(weights)

    def split(self, params: torch.Tensor) -> list[list[torch.Tensor]]:
        """For each layer and direction the input's weights, the state's, and their biases."""
        sizes = self.sizes()
        counts = [torch.Size(size).numel() for size in sizes]
        if params.dim() != 1 or params.numel() != sum(counts):
            raise invalid(f"params must be a vector of {sum(counts)} elements, got {list(params.shape)}")
        parts = [part.view(size) for part, size in zip(params.split(counts), sizes)]
        half, found = len(parts) // 2, []
        for i in range(0, half, 2):
            weights = [parts[i], parts[i + 1], parts[half + i], parts[half + i + 1]]
            if not weights[0].numel():
                weights[0] = torch.eye(self.units, dtype=params.dtype, device=params.device).repeat(
                    _GATES[self.mode], 1
                )
            found.append(weights)
        return found


def _run(
    form: _Form, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, params: torch.Tensor, kept: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(output, output_h, output_c). `kept`: what each value between layers is multiplied by, or empty."""
    weights, both = form.split(params), form.directions == 2
    masks = kept.view(form.layers - 1, *x.shape[:2], -1) if kept.numel() else None
    last_h, last_c = [], []
    for layer in range(form.layers):
        rows = slice(layer * form.directions, (layer + 1) * form.directions)
        own = [each for parts in weights[rows] for each in parts]
        if layer and masks is not None:
            x = x * masks[layer - 1]
        rest = (own, True, 1, 0.0, False, both, False)
        if form.mode == "lstm":
            x, hidden, cell = torch.lstm(x, (h[rows], c[rows]), *rest)
            last_c.append(cell)
        else:
            x, hidden = _LAYERS[form.mode](x, h[rows], *rest)
        last_h.append(hidden)
    return x, torch.cat(last_h), torch.cat(last_c) if last_c else h.new_zeros(0)


def _masks(form: _Form, x: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
    """What dropout multiplies the values between layers by: 0, or more than 1."""
    count = (form.layers - 1) * x.shape[0] * x.shape[1] * form.units * form.directions
    if not form.dropout or not count:
        return x.new_zeros(0)
    chances = torch.rand(count, generator=generator, dtype=x.dtype if x.dtype.itemsize > 2 else torch.float32)
    return ((chances >= form.dropout) / max(1.0 - form.dropout, 1e-12)).to(x.dtype).to(x.device)


def _cost(node: Node) -> float:
    """The products of all steps with the weights."""
    positions = node.inputs[0].dims or ()
    return 2.0 * work.count(node.inputs[3]) * math.prod([n or 1 for n in positions[:2]])


rnn_op = op(
    "CudnnRNN",
    f"{_INPUTS} -> {_RESULTS}, reserve_space: T",
    f"{_FORM} ; is_training: bool = true",
    T=dtypes.FLOATS_WITH_BFLOAT16,
    cost=_cost,
    stateful=True,
    capturable=False,
)


@rnn_op.infer
def _(node: Node) -> Shapes:
    x, h = require_rank(node.dims(0), 3), require_rank(node.dims(1), 3)
    require_rank(node.dims(3), 1)
    directions = 2 if node.attributes["direction"] == "bidirectional" else 1
    width = None if h[2] is None else h[2] * directions
    cells = node.dims(2) if node.attributes["rnn_mode"] == "lstm" else (None,)
    return [(x[0], x[1], width), h, cells, (None,)]


@rnn_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    attributes = node.attributes
    seeds = attributes["seed"], attributes["seed2"]
    generator = torch.Generator()
    generator.manual_seed((seeds[0] << 32 ^ seeds[1]) % (1 << 63) if any(seeds) else fresh_seed())

    def run(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, params: torch.Tensor) -> Any:
        form = _Form.of(node, x, h)
        kept = _masks(form, x, generator) if attributes["is_training"] else x.new_zeros(0)
        return (*_run(form, x, h, c, params, kept), kept)

    return run


rnn_gradient_op = op(
    "CudnnRNNBackprop",
    f"{_INPUTS}, {_RESULTS}, output_backprop: T, output_h_backprop: T, output_c_backprop: T, "
    "reserve_space: T -> input_backprop: T, input_h_backprop: T, input_c_backprop: T, params_backprop: T",
    _FORM,
    T=dtypes.FLOATS_WITH_BFLOAT16,
    cost=_cost,
    stateful=True,
    capturable=False,
)
rnn_gradient_op.infer(lambda node: [node.dims(i) for i in range(4)])
rnn_gradient_op.no_gradient()


@rnn_gradient_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Callable[..., Any]:
    def run(*inputs: torch.Tensor) -> list[torch.Tensor]:
        form, kept = _Form.of(node, inputs[0], inputs[1]), inputs[10]
        slopes = inputs[7:10] if form.mode == "lstm" else inputs[7:9]
        with torch.inference_mode(False), torch.enable_grad():
            given = [each.clone().requires_grad_() for each in inputs[:4]]
            x, h, c, params = given
            results = _run(form, x, h, c, params, kept.clone())[: len(slopes)]
            found: Sequence[torch.Tensor | None] = torch.autograd.grad(
                results, given, [each.clone() for each in slopes], allow_unused=True
            )
        return [torch.zeros_like(x) if g is None else g for g, x in zip(found, inputs)]

    return run


@rnn_op.gradient
def _(op: Operation, dy: Tensor, dh: Tensor, dc: Tensor, reserve: Tensor) -> Gradients:
    if not op.attributes["is_training"]:
        raise ValueError(
            f"The gradient of {op.name} needs is_training: without it, what dropout did is not known"
        )
    *results, reserve_space = op.outputs
    attributes = {key: value for key, value in op.attributes.items() if key not in ("T", "is_training")}
    found: Gradients = F.CudnnRNNBackprop(*op.inputs, *results, dy, dh, dc, reserve_space, **attributes)
    return found
