"""What a debugger puts between two nodes: copies, and looks at a tensor on its way.

`DebugIdentity` hands the tensor on, `DebugNanCount` counts its NaNs, `DebugNumericSummary` describes it. Each
sends its result to the targets of `debug_urls`. ``file://DIRECTORY`` writes an Event message to a file below
that directory, ``_tfdbg_device_DEVICE/NODE_SLOT_OP_MICROSECONDS``. A ``grpc://`` target needs a server of
TensorFlow's debugger, which steps do not speak to, so it is refused; a gated one is closed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tensorboard.compat.proto.event_pb2 import Event

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.tensor_proto import make_tensor_proto
from flowstone.framework.types.values import to_numpy
from flowstone.ops.arrays.arrays import invalid

_TARGETS = "device_name: string = '' ; tensor_name: string = '' ; debug_urls: list(string) = []"
_GATE = "gated_grpc: bool = false"

# ---- copies


def _copy_kernel(node: Node, env: Environment) -> Kernel:
    return torch.clone if node.dtype(0).torch is not None else lambda x: x.copy()


for _name in ("Copy", "CopyHost"):
    _copy = op(
        _name, "input: T -> output: T", "tensor_name: string = '' ; debug_ops_spec: list(string) = []", T=None
    )
    _copy.infer(lambda node: node.dims(0))
    _copy.kernel(CPU, GPU)(_copy_kernel)
    _copy.no_gradient()

# ---- where results go


def _split_name(tensor_name: str) -> tuple[str, int]:
    """The node and the slot that a tensor's name tells. InvalidArgumentError for none."""
    node, separator, slot = tensor_name.partition(":")
    if not tensor_name or ":" in slot:
        raise invalid(f'Failed to parse tensor name: "{tensor_name}"')
    if separator and not slot.isdecimal():
        raise invalid(f'Invalid string value for output_slot: "{slot}"')
    return node, int(slot or 0)


def _directories(node: Node) -> list[str]:
    """The directories of the file targets. UnimplementedError for other targets, InternalError for none
    that is known.
    """
    found = []
    for url in node.attributes["debug_urls"]:
        if url.startswith("file://"):
            found.append(url.removeprefix("file://"))
        elif not url.startswith("grpc://"):
            raise errors.InternalError(None, None, f"Invalid debug target URL: {url}")
        elif not node.attributes["gated_grpc"]:
            raise errors.UnimplementedError(
                None, None, f"Debug target {url} needs a debugger's server; use file:// with a directory."
            )
    return found


def _write(node: Node, directory: str, value: np.ndarray[Any, Any]) -> None:
    """Writes `value` as the Event that debuggers read."""
    name, slot = _split_name(node.attributes["tensor_name"])
    device, microseconds = node.attributes["device_name"], time.time_ns() // 1000
    folder = f"_tfdbg_device_{device.replace('/', ',').replace(':', '_')}"
    path = os.path.join(directory, folder, f"{name}_{slot}_{node.type}_{microseconds}")
    event = Event(wall_time=microseconds)
    summary = event.summary.value.add(tag=name, node_name=f"{name}:{slot}:{node.type}")
    summary.tensor.CopyFrom(make_tensor_proto(value))
    summary.metadata.plugin_data.plugin_name = "debugger"
    place = {"device": device, "outputSlot": slot, "numChunks": 1, "chunkIndex": 0}
    summary.metadata.plugin_data.content = json.dumps(place, separators=(",", ":")).encode()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(event.SerializeToString())


# ---- looks


def _declare(name: str, output: str, attributes: str, make: Callable[[Node], Callable[..., Any]]) -> None:
    declaration: OpDeclaration = op(
        name,
        f"input: T -> output: {output}",
        attributes,
        T=None,
        aliases=[0] if output == "T" else [],
        stateful=True,
    )
    declaration.no_gradient()
    dtype = {"T": None, "int64": dtypes.int64, "float64": dtypes.float64}[output]

    def kernel(node: Node, env: Environment) -> Kernel:
        look, is_muted = make(node), node.attributes.get("mute_if_healthy", False)
        _split_name(node.attributes["tensor_name"])
        directories, urls = _directories(node), node.attributes["debug_urls"]
        is_closed = bool(urls) and not directories  # all that is asked for is a closed gate

        def run(x: Any) -> Any:
            if is_closed:
                return (
                    x.reshape(-1)[:0] if dtype is None else torch.empty(0, dtype=dtype.torch, device=x.device)
                )
            result = look(x)
            if directories and not (is_muted and _is_healthy(result)):
                host = result.cpu() if isinstance(result, torch.Tensor) else result
                value = np.asarray(to_numpy(host, dtype or node.dtype(0)))
                for directory in directories:
                    _write(node, directory, value)
            return result

        return run

    declaration.kernel(CPU, GPU)(kernel)
    if output == "T":
        declaration.infer(lambda node: None if node.attributes["gated_grpc"] else node.dims(0))
    else:
        declaration.infer(lambda node: None)


def _is_healthy(summary: torch.Tensor) -> bool:
    """Whether a summary counts no NaN and nothing at or beyond a bound."""
    return not bool(summary[[2, 3, 7]].any())


def _numeric(node: Node, *others: dtypes.DType) -> dtypes.DType:
    dtype = node.dtype(0)
    if dtype.torch is None or dtype.is_complex or dtype.is_quantized or dtype in others:
        raise invalid(f"{node.type} is of real numbers, not of {dtype.name}")
    return dtype


def _nan_count(node: Node) -> Callable[..., Any]:
    _numeric(node, dtypes.bool)
    return lambda x: torch.isnan(x).sum().reshape(1)


def _summary(node: Node) -> Callable[..., Any]:
    dtype = _numeric(node)
    low, high = node.attributes["lower_bound"], node.attributes["upper_bound"]
    number = dtype.as_datatype_enum

    def describe(x: torch.Tensor) -> torch.Tensor:
        values = x.to(torch.float64)
        numbers = values[~torch.isnan(values)]
        beyond = numbers[~(numbers <= low)]
        within = beyond[~(beyond >= high)]
        finite = numbers[torch.isfinite(numbers)]
        counts = [1, x.numel(), x.numel() - numbers.numel(), numbers.numel() - beyond.numel()]
        counts += [int((within < 0).sum()), int((within == 0).sum()), int((within > 0).sum())]
        counts.append(beyond.numel() - within.numel())
        moments = [np.inf, -np.inf, np.nan, np.nan]
        if finite.numel():
            variance, mean = torch.var_mean(finite, correction=0)
            moments = [float(finite.min()), float(finite.max()), float(mean), float(variance)]
        return torch.tensor(
            [*counts, *moments, number, x.ndim, *x.shape], dtype=torch.float64, device=x.device
        )

    return describe


_declare("DebugIdentity", "T", f"{_TARGETS} ; {_GATE}", lambda node: lambda x: x)
_declare("DebugNanCount", "int64", f"{_TARGETS} ; {_GATE}", _nan_count)
_declare(
    "DebugNumericSummary",
    "float64",
    f"{_TARGETS} ; lower_bound: float = -inf ; upper_bound: float = inf ; mute_if_healthy: bool = false"
    f" ; {_GATE}",
    _summary,
)
