"""The second pass: the weights and the outputs of a graph's layers pass fake quantisations.

A layer is a convolution, a depthwise convolution or a product with weights, then a bias or a folded batch
normalisation, then perhaps the sum with a bypass, then perhaps an activation:

    Relu(Add(BiasAdd(Conv2D(inputs, weights), biases), bypass))

Its weights are quantised in `SCOPE/weights_quant`, its activation in `SCOPE/act_quant`, what is added to a
bypass in `SCOPE/conv_quant`; a sum of its activation in `post_activation_bypass_quant`. Sums and products of
what is quantised are, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import flowstone as tf
from flowstone.contrib.quantize.common import LAYER_TYPES, quantization_step, reroute, scope_of
from flowstone.contrib.quantize.quant_ops import LastValueQuantize, MovingAvgQuantize, Range

__all__ = ["Settings", "quantize"]

_ACTIVATIONS = ("Relu", "Relu6", "Identity")
_SUMS = ("Add", "AddV2")


@dataclass(frozen=True)
class Settings:
    """How a graph is quantised: the arguments of the public functions."""

    is_training: bool
    weight_bits: int
    activation_bits: int
    symmetric: bool
    quant_delay: int | None


@dataclass(frozen=True)
class _Match:
    """A layer and what follows it: each an operation, the weights a tensor."""

    layer: Any
    weights: Any
    output: Any
    activation: Any
    bypass: Any = None
    after: Any = None


def _is_weights(op: Any) -> bool:
    """Whether an operation gives weights: what reads a variable, or the product of weights."""
    if op.type == "Mul":
        return True
    if op.type == "ReadVariableOp":
        return op.inputs[0].op.type in ("VarHandleOp", "Placeholder")
    if op.type != "Identity":
        return False
    source = op.inputs[0].op
    if source.type == "Identity":
        source = source.inputs[0].op
    if source.type == "ConcatV2":
        return all(_is_weights(tensor.op) for tensor in source.inputs[:-1])
    return source.type in ("Variable", "VariableV2")


def _layer(op: Any) -> Any:
    """The layer that an operation is or, dilated, rearranges."""
    if op.type == "BatchToSpaceND":
        op = op.inputs[0].op
    return op if op.type in LAYER_TYPES and _is_weights(op.inputs[1].op) else None


def _folded_layer(op: Any) -> Any:
    """The layer below the sum of the correction of a folded batch normalisation's output."""
    if op.type not in _SUMS or op.inputs[0].op.type != "Mul":
        return None
    return _layer(op.inputs[0].op.inputs[1].op)


def _biased(op: Any) -> _Match | None:
    """A layer with its bias or folded batch normalisation."""
    found = None
    if op.type == "BiasAdd":
        found = _layer(op.inputs[0].op)
    elif op.type in _SUMS:
        first, second = op.inputs[0].op, op.inputs[1].op
        found = _layer(first) or _folded_layer(first) or _layer(second)
    return None if found is None else _Match(found, found.inputs[1], op, op)


def _activated(op: Any) -> _Match | None:
    """A layer with its activation."""
    if op.type not in _ACTIVATIONS:
        return None
    below = op.inputs[0].op
    match = _biased(below)
    if match is not None:
        return replace(match, activation=op)
    layer = _layer(below)
    if layer is not None:
        return _Match(layer, layer.inputs[1], layer, op)
    if below.type in _SUMS:
        for tensor in below.inputs:
            match = _biased(tensor.op)
            if match is not None:
                return replace(match, activation=op, bypass=below)
    return None


def _activated_and_added(op: Any) -> _Match | None:
    """A layer whose activation is one of two summands."""
    if op.type in _SUMS:
        for tensor in reversed(op.inputs):
            match = _activated(tensor.op)
            if match is not None:
                return replace(match, after=op)
    return None


def _separable(op: Any) -> _Match | None:
    """The depthwise half of a separable convolution."""
    below = op.inputs[0].op if op.type == "Conv2D" else op
    if below is op or below.type != "DepthwiseConv2dNative":
        return None
    layer = _layer(below)
    return None if layer is None else _Match(layer, layer.inputs[1], layer, layer)


def _find_layers(graph: Any) -> list[_Match]:
    """The layers, each once, as the first of the forms that fits."""
    found: dict[Any, _Match] = {}
    ops = graph.get_operations()
    for form in (_activated_and_added, _activated, _biased, _separable):
        for op in ops:
            match = form(op)
            if match is not None:
                found.setdefault(match.layer, match)
    return list(found.values())


class _Rewriting:
    """One pass over a graph; `done` are the tensors that came out of a quantisation."""

    def __init__(self, graph: Any, settings: Settings, scope: str | None) -> None:
        self._graph = graph
        self._settings = settings
        self._scope = f"{scope.rstrip('/')}/" if scope else ""
        self._quantized: set[Any] = set()
        self.done: set[Any] = set()

    def insert(self, tensor: Any, scope: str, name: str, within: str | None = None) -> None:
        """Has the consumers of a tensor take it quantised in `scope/name`, if `within` is to be rewritten."""
        covered = f"{scope if within is None else within}/".startswith(self._scope)
        if tensor in self._quantized or not covered:
            return
        consumers = tensor.consumers()
        settings, weights = self._settings, name == "weights_quant"
        bits = settings.weight_bits if weights else settings.activation_bits
        free = name.startswith("activation_")
        kind = Range(bits, weights, settings.symmetric and not free, settings.is_training)
        make = LastValueQuantize if weights else MovingAvgQuantize
        prefix = f"{scope}/{name}" if scope else name
        quantized = make(tensor, kind, name_prefix=prefix, init_min=0.0 if name == "act_quant" else -6.0)
        if settings.quant_delay and settings.quant_delay > 0:
            quantized = self._delayed(tensor, quantized, settings.quant_delay)
        reroute(tensor, quantized, consumers)
        self._quantized.add(tensor)
        self.done.add(quantized)

    def _delayed(self, tensor: Any, quantized: Any, delay: int) -> Any:
        scope = scope_of(quantized.op)
        step = quantization_step(self._graph)
        with tf.name_scope(f"{scope}/"):
            active = tf.greater_equal(
                step, tf.constant(delay, tf.int64, name="activate_quant/y"), "activate_quant"
            )
            return tf.cond(active, lambda: quantized, lambda: tensor, name="delayed_quant")

    def layer(self, match: _Match) -> None:
        """Quantises a layer's weights and what it gives."""
        scope = scope_of(match.layer)
        self.insert(match.weights, scope, "weights_quant")
        outer = scope if match.bypass is None else scope.rpartition("/")[0]
        self.insert(match.activation.outputs[0], outer, "act_quant")
        if match.bypass is not None:
            self.insert(match.output.outputs[0], scope, "conv_quant", within=outer)
        if match.after is not None and not _feeds_activation(match.after):
            self.insert(match.after.outputs[0], scope_of(match.after), "post_activation_bypass_quant")


def _feeds_activation(op: Any) -> bool:
    return any(user.type in ("Relu", "Relu6") for user in op.outputs[0].consumers())


def quantize(graph: Any, settings: Settings, scope: str | None = None) -> None:
    """Rewrites `graph`; with `scope`, only what is below that name scope."""
    rewriting = _Rewriting(graph, settings, scope)
    for match in _find_layers(graph):
        rewriting.layer(match)
    for op in graph.get_operations():
        if op.type in ("Mul", *_SUMS) and any(tensor in rewriting.done for tensor in op.inputs):
            if not _feeds_activation(op):
                rewriting.insert(op.outputs[0], op.name, f"activation_{op.type}_quant", within=scope_of(op))
