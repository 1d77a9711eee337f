"""Transfers values from one device of this process to another (white paper 3.2.2).

A transfer has two halves: `leave` runs where the Send is, on its part's thread, `enter` where the Receive is.
Neither waits for a GPU, except when a host kernel is about to read a value from there:

- between CPU devices nothing is copied: they share memory;
- from the host to a GPU, `enter` copies from pinned memory on a stream of its own; the GPU's other work waits
  for it, the thread does not;
- from a GPU to the host, `leave` starts the copy into pinned memory; `enter` waits for its event;
- between GPUs, `enter` copies directly;
- devices of registered types copy both out and in where the Receive is, so that a delayed Receive
  (`partition/receive_scheduling.py`) does not occupy the receiver's memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment
from flowstone.runtime.process.device import Device

Move = Callable[[Any], Any]


class Transfer(NamedTuple):
    """The two halves of a transfer; None where there is nothing to do."""

    leave: Move | None
    enter: Move | None


def transfer(
    source: Device, target: Device, environments: Mapping[str, Environment], to_host: bool = False
) -> Transfer:
    """The transfer from one device to another; `to_host`: only to host memory, for the target's part."""
    leave: Move | None = None
    moves: list[Move] = []
    if source.device_type == GPU and (target.device_type != GPU or to_host):
        leave = _start_copy_from_gpu
        moves.append(_finish_copy)
    elif source.device_type not in (CPU, GPU):
        moves.append(functools.partial(_copy_out, environments[source.name].memory))
    if target.device_type == GPU and not to_host:
        moves.append(functools.partial(_copy_to_gpu, target.torch))
    elif target.device_type != CPU and not to_host:
        moves.append(environments[target.name].memory.copy_in)
    if not moves:
        return Transfer(leave, None)
    return Transfer(leave, moves[0] if len(moves) == 1 else functools.partial(_in_turn, moves))


def to_device(device: torch.device) -> Move:
    """A function that moves a value from the host to torch's `device`, without waiting if that is a GPU."""
    if device.type == "cuda":
        return functools.partial(_copy_to_gpu, device)
    return functools.partial(_move, device)


def _move(device: torch.device, value: Any) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


def _in_turn(moves: list[Move], value: Any) -> Any:
    for move in moves:
        value = move(value)
    return value


def _copy_out(memory: Any, value: Any) -> Any:
    """A host tensor with the buffer's contents; control values of loops are on the host already."""
    return value if isinstance(value, torch.Tensor) else memory.copy_out(value)


class _Parcel(NamedTuple):
    """Pinned memory that a GPU writes to, and the event that marks the end of writing."""

    value: torch.Tensor
    event: Any


@functools.cache
def _copy_stream(device: torch.device) -> Any:
    return torch.cuda.Stream(device)


def _start_copy_from_gpu(value: Any) -> Any:
    if not (isinstance(value, torch.Tensor) and value.is_cuda):
        return value
    stream = _copy_stream(value.device)
    stream.wait_stream(torch.cuda.current_stream(value.device))
    with torch.cuda.stream(stream):
        pinned = torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
        pinned.copy_(value, non_blocking=True)
        value.record_stream(stream)
        event = torch.cuda.Event()
        event.record(stream)
    return _Parcel(pinned, event)


def _finish_copy(parcel: Any) -> Any:
    if type(parcel) is not _Parcel:
        return parcel
    parcel.event.synchronize()
    return parcel.value


def _copy_to_gpu(device: torch.device, value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or value.device == device:
        return value
    stream = _copy_stream(device)
    with torch.cuda.stream(stream):
        pinned = value if value.is_cuda else value.pin_memory()
        if value.is_cuda:
            stream.wait_stream(torch.cuda.current_stream(value.device))
        moved = pinned.to(device, non_blocking=True)
    current = torch.cuda.current_stream(device)
    current.wait_stream(stream)
    moved.record_stream(current)
    return moved
