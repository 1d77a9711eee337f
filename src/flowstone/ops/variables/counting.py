"""``CountUpTo``, which counts in a variable up to a limit, and ``DestroyResourceOp``, which forgets one."""

from __future__ import annotations

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.containers import Variable
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import merge
from flowstone.ops.variables.stateful import check_handle_dtype, handle_dims

__all__: list[str] = []


def _counter(node: Node, env: Environment) -> Kernel:
    limit = node.attributes["limit"]

    def count(variable: Variable) -> torch.Tensor:
        with variable.lock:
            before: torch.Tensor = variable.tensor.clone()
            if before.item() >= limit:
                raise errors.OutOfRangeError(None, None, f"Reached limit of {limit}")
            variable.tensor.add_(1)
            return before

    return count


count_up_to_op = op("CountUpTo", "ref: Ref(T) -> output: T", "limit: int", T=dtypes.INDICES, mutates=[0])
resource_count_up_to = op(
    "ResourceCountUpTo",
    "resource: resource -> output: T",
    "limit: int",
    T=dtypes.INDICES,
    stateful=True,
    mutates=[0],
    role="element_access",
)


@count_up_to_op.infer
def _(node: Node) -> Shapes:
    merge(node.dims(0), ())
    return ()


@resource_count_up_to.infer
def _(node: Node) -> Shapes:
    check_handle_dtype(node, attribute="T")
    merge(handle_dims(node), ())
    return ()


for _declaration in (count_up_to_op, resource_count_up_to):
    _declaration.kernel(CPU, GPU)(_counter)
    _declaration.not_differentiable()

destroy_resource = op(
    "DestroyResourceOp",
    "resource: resource ->",
    "ignore_lookup_error: bool = true",
    stateful=True,
    mutates=[0],
)
destroy_resource.infer(lambda node: None)
destroy_resource.not_differentiable()


@destroy_resource.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    ignore = node.attributes["ignore_lookup_error"]

    def destroy(variable: Variable) -> None:
        if variable.is_initialized:
            del variable.tensor
        elif not ignore:
            raise errors.NotFoundError(None, None, f"Resource {variable.name} does not exist.")

    return destroy
