"""The rewriting of a graph for quantised inference: batch normalisation folded, values fake-quantised.

The algorithm is that of Jacob et al., "Quantization and Training of Neural Networks for Efficient
Integer-Arithmetic-Only Inference" (2017), in two passes over the graph: `fold_batch_norms` moves batch
normalisation into the weights before it, `quantize` has every layer's weights and outputs pass a fake
quantisation. The nodes and variables have the names that TensorFlow 1.15 gives them.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.quantize import fold_batch_norms, quantize

__all__ = [
    "create_eval_graph",
    "create_training_graph",
    "experimental_create_eval_graph",
    "experimental_create_training_graph",
]

# What is applied, without the prefixes Resource and Sparse.
_RULES = (
    "AdaMax Adadelta Adagrad AdagradDA Adam AddSign CenteredRMSProp Ftrl FtrlV2 GradientDescent Momentum"
    " PowerSign ProximalAdagrad ProximalGradientDescent RMSProp"
)
_TRAINING_OPS = frozenset(f"Apply{rule}" for rule in _RULES.split())


def _is_training_op(op_type: str) -> bool:
    plain = op_type.removeprefix("Resource").removeprefix("Sparse")
    return plain in _TRAINING_OPS


def _rewrite(
    graph: Any,
    is_training: bool,
    weight_bits: int = 8,
    activation_bits: int = 8,
    symmetric: bool = False,
    quant_delay: int | None = None,
    freeze_bn_delay: int | None = None,
    scope: str | None = None,
) -> None:
    graph = tf.get_default_graph() if graph is None else graph
    if is_training:
        found = {op.type for op in graph.get_operations() if _is_training_op(op.type)}
        if found:
            raise ValueError(f"A graph is rewritten before its training ops are made; it has {sorted(found)}")
    with graph.as_default():
        fold_batch_norms.fold_batch_norms(graph, is_training, freeze_bn_delay)
        quantize.quantize(
            graph,
            quantize.Settings(is_training, weight_bits, activation_bits, symmetric, quant_delay),
            scope,
        )


def create_training_graph(input_graph: Any = None, quant_delay: int = 0) -> None:
    """Rewrites a training graph in place: weights and activations are quantised to 8 bits and learnt ranges.

    It must be called before gradients are taken. Batch normalisation is folded into the weights; the ranges
    of the weights are those of the step, those of the activations moving averages.

    Args:
        input_graph: the graph; default: the current one.
        quant_delay: the number of steps after which the quantisation begins.

    Raises ValueError if the graph has training ops.
    """
    _rewrite(input_graph, True, quant_delay=quant_delay)


def create_eval_graph(input_graph: Any = None) -> None:
    """Rewrites an evaluation graph in place: as `create_training_graph`, with ranges that stay as loaded.

    Args:
        input_graph: the graph; default: the current one.
    """
    _rewrite(input_graph, False)


def experimental_create_training_graph(
    input_graph: Any = None,
    weight_bits: int = 8,
    activation_bits: int = 8,
    symmetric: bool = False,
    quant_delay: int = 0,
    freeze_bn_delay: int | None = None,
    scope: str | None = None,
) -> None:
    """As `create_training_graph`, with more to choose.

    Args:
        input_graph: the graph; default: the current one.
        weight_bits, activation_bits: the numbers of bits of weights and activations.
        symmetric: whether ranges are symmetric about 0.
        quant_delay: the number of steps after which the quantisation begins.
        freeze_bn_delay: the number of steps after which batch normalisation uses its moving averages, and
            stops updating them; None: never.
        scope: only layers below this name scope are quantised; None: all.

    Raises ValueError if the graph has training ops.
    """
    _rewrite(input_graph, True, weight_bits, activation_bits, symmetric, quant_delay, freeze_bn_delay, scope)


def experimental_create_eval_graph(
    input_graph: Any = None,
    weight_bits: int = 8,
    activation_bits: int = 8,
    symmetric: bool = False,
    quant_delay: int | None = None,
    scope: str | None = None,
) -> None:
    """As `create_eval_graph`, with the arguments of `experimental_create_training_graph`."""
    _rewrite(input_graph, False, weight_bits, activation_bits, symmetric, quant_delay, None, scope)
