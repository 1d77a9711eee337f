"""Losses of graphs with stochastic tensors."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.bayesflow.stochastic_tensor import STOCHASTIC_TENSOR_COLLECTION

__all__ = ["sources", "surrogate_loss"]


def surrogate_loss(sample_losses: Any, stochastic_tensors: Any = None, name: str = "SurrogateLoss") -> Any:
    """The sum of losses, whose gradient is that of their expectation also by parameters of draws.

    Args:
        sample_losses: a list of losses, each of at least one dimension.
        stochastic_tensors: the graph's by default.
        name: the scope of its operations.

    TypeError unless it is a list, ValueError for scalars (Schulman et al., "Gradient estimation using
    stochastic computation graphs", 2015).
    """
    if not isinstance(sample_losses, (list, tuple)):
        raise TypeError("sample_losses must be a list or tuple")
    for loss in sample_losses:
        if loss.shape.ndims is not None and loss.shape.ndims < 1:
            raise ValueError(f"loss must have dimensionality 1 or greater: {loss}")
    if stochastic_tensors is None:
        stochastic_tensors = tf.get_collection(STOCHASTIC_TENSOR_COLLECTION)
    with tf.name_scope(name):
        terms = list(sample_losses)
        above = [sources(loss) for loss in sample_losses]
        for each in stochastic_tensors:
            influenced = [loss for loss, names in zip(sample_losses, above) if each.value().op.name in names]
            term = each.loss(tf.add_n(influenced)) if influenced else None
            if term is not None:
                terms.append(term)
        return tf.add_n(terms)


def sources(tensor: Any) -> set[str]:
    """The names of the operations that a tensor depends on."""
    found: set[str] = set()
    rest = [tensor.op]
    while rest:
        operation = rest.pop()
        if operation.name not in found:
            found.add(operation.name)
            rest.extend(each.op for each in operation.inputs)
    return found
