"""Sums and broadcasts over the devices of one process, as TensorFlow names them after NVIDIA's library.

The nodes of one `all_sum` meet in a step by their ``shared_name``; all of them must be run. A reduction to
one device is one node, whose inputs come to it, and so is a broadcast, whose value goes to those who use it.
They run on any device.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, AsyncCall, Environment
from flowstone.framework.declarations.operation import F, op
from flowstone.framework.graphs.device_name import DeviceSpec
from flowstone.framework.graphs.graph_functions import device
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.collectives.offers import REDUCE, Offer

__all__ = ["all_max", "all_min", "all_prod", "all_sum", "broadcast", "reduce_sum"]

_TYPES = (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64)
_REDUCTION = "reduction: string in ['min', 'max', 'prod', 'sum']"
_MERGES = {"sum": "sum", "prod": "product", "min": "min", "max": "max"}
_MERGE_TWO: dict[str, Any] = {"sum": torch.add, "prod": torch.mul, "min": torch.minimum, "max": torch.maximum}
_numbers = itertools.count(1)

_all_reduce = op(
    "NcclAllReduce",
    "input: T -> data: T",
    f"{_REDUCTION} ; num_devices: int ; shared_name: string",
    T=_TYPES, stateful=True, asynchronous=True, capturable=False, keeps=[0],
)  # fmt: skip
_reduce = op(
    "NcclReduce", "input: num_devices*T -> data: T", _REDUCTION, T=_TYPES, stateful=True, capturable=False
)
_broadcast = op(
    "NcclBroadcast", "input: T -> output: T", "shape: shape", T=_TYPES, stateful=True, capturable=False
)


@_all_reduce.infer
@_broadcast.infer
def _(node: Node) -> Dims:
    return node.dims(0)


@_reduce.infer
def _(node: Node) -> Dims:
    return next((x.dims for x in node.inputs if x.dims is not None), None)


@_all_reduce.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> AsyncCall:
    attributes, collectives = node.attributes, env.collectives.local
    group, size = ("NcclAllReduce", attributes["shared_name"]), attributes["num_devices"]
    merge, dtype, name = _MERGES[attributes["reduction"]], attributes["T"].name, node.name

    def start(step: Any, done: Any, value: Any) -> None:
        offer = Offer(REDUCE, group, size, 0, name, name, dtype, tuple(value.shape), merge, value=value)
        collectives.join(step, done, offer)

    return AsyncCall(start)


@_reduce.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Any:
    merge = _MERGE_TWO[node.attributes["reduction"]]

    def reduce(*values: Any) -> Any:
        total = values[0].clone()
        for value in values[1:]:
            total = merge(total, value)
        return total

    return reduce


@_broadcast.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Any:
    return torch.clone


@_all_reduce.gradient
def _(op: Any, dz: Any) -> Any:
    _check_is_sum(op)
    attributes = op.attributes
    with device(op.device):
        return F.NcclAllReduce(
            dz, reduction="sum", num_devices=attributes["num_devices"],
            shared_name=f"{attributes['shared_name']}_grad",
        )  # fmt: skip


@_reduce.gradient
def _(op: Any, dz: Any) -> Any:
    _check_is_sum(op)
    return [dz] * len(op.inputs)


@_broadcast.gradient
def _(op: Any, dz: Any) -> Any:
    return dz


def _check_is_sum(op: Any) -> None:
    if op.attributes["reduction"] != "sum":
        raise LookupError(f"{op.name} has no gradient: only sums have")


def all_sum(tensors: Sequence[Any]) -> list[Any]:
    """The sum of the tensors, on the device of each; all of them must be run in a step.

    Args:
        tensors: of one type and shape, each on a device.

    Raises ValueError for none, and for one without a device.
    """
    return _all_reduced("sum", tensors)


def all_prod(tensors: Sequence[Any]) -> list[Any]:
    """As `all_sum`, the product."""
    return _all_reduced("prod", tensors)


def all_min(tensors: Sequence[Any]) -> list[Any]:
    """As `all_sum`, the least."""
    return _all_reduced("min", tensors)


def all_max(tensors: Sequence[Any]) -> list[Any]:
    """As `all_sum`, the greatest."""
    return _all_reduced("max", tensors)


def reduce_sum(tensors: Sequence[Any], dst_device: str | None = None) -> Any:
    """The sum of the tensors.

    Args:
        tensors: of one type and shape, each on a device.
        dst_device: the device of the sum, that of one of the tensors, as in TensorFlow 1.4; the result is
            then the pair of the sum and a list of operations to run besides, which is empty.

    Raises ValueError for no tensors, and for one without a device.
    """
    _check(tensors)
    if dst_device is None:
        return _reduce(list(tensors), reduction="sum")
    wanted = DeviceSpec.from_string(dst_device).to_string()
    if all(DeviceSpec.from_string(tensor.device).to_string() != wanted for tensor in tensors):
        raise ValueError(f"None of the tensors is on {dst_device}, where the sum is to be")
    with device(dst_device):
        return _reduce(list(tensors), reduction="sum"), []


def broadcast(tensor: Any, dst_devices: Sequence[str] | None = None) -> Any:
    """The tensor for all devices.

    Args:
        tensor: on a device.
        dst_devices: those that it is to be on, as in TensorFlow 1.4; the result is then the pair of an
            operation and the list of the tensors there.

    Raises ValueError for a tensor without a device.
    """
    _check([tensor])
    with device(tensor.device):
        sent = _broadcast(tensor, shape=tensor.shape)
    if dst_devices is None:
        return sent
    received = []
    for name in dst_devices:
        with device(name):
            received.append(F.Identity(sent))
    return sent.op, received


def _check(tensors: Sequence[Any]) -> None:
    if not tensors:
        raise ValueError("There must be at least one tensor to reduce")
    for tensor in tensors:
        if not tensor.device:
            raise ValueError(f"{tensor.name} is on no device: tf.device has to say where it is")


def _all_reduced(reduction: str, tensors: Sequence[Any]) -> list[Any]:
    _check(tensors)
    name = f"c{next(_numbers)}"
    results = []
    for tensor in tensors:
        with device(tensor.device):
            results.append(
                _all_reduce(tensor, reduction=reduction, num_devices=len(tensors), shared_name=name)
            )
    return results


_all_reduce.check_complete()
