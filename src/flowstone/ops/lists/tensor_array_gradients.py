"""Which array holds the gradients of an array of tensors: that of its *source*, the name of the gradient
computation.
"""

from __future__ import annotations

from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.lists.tensor_array import TensorArray


def gradient_source(name: str) -> str:
    """The name of the gradient computation that a node of this name belongs to: up to and including its last
    part that begins with "gradients".

    Raises ValueError if it belongs to none.

    >>> gradient_source("tower/gradients_1/while/mul_grad/Mul")
    'tower/gradients_1'
    """
    parts = name.split("/")
    found = [i for i, part in enumerate(parts) if part.startswith("gradients")]
    if not found:
        raise ValueError(
            "Expected op/tensor name to start with gradients (excluding scope)"
            f", got: {name}. This means that a tf.gradients op with this op in its dependency path has a "
            "custom name that does not start with 'gradients'. Please make sure all calls to tf.gradients "
            "that have non-empty `name` arguments use names that start with 'gradients'."
        )
    return "/".join(parts[: found[-1] + 1])


def gradient_array(op: Operation, dy: Tensor, flow: Tensor) -> TensorArray:
    """The array of gradients that belongs to the array that `op` uses; `dy` tells the computation's name."""
    dtype = op.attributes.get("T") or op.attributes["dtype"]
    array = TensorArray(dtype, handle=op.inputs[0], flow=flow, colocate_with_first_write_call=False)
    return array.grad(source=gradient_source(dy.name), flow=flow)
