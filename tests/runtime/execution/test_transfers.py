"""The ways between devices: which halves they have, and what crosses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from flowstone.runtime.execution.transfers import to_device, transfer
from flowstone.runtime.process.device import Device

PREFIX = "/job:localhost/replica:0/task:0/device:"
HOST = torch.device("cpu")


def device(kind: str, number: int = 0) -> Device:
    return Device(f"{PREFIX}{kind}:{number}", kind, HOST if kind != "GPU" else torch.device("cuda", number))


ARENA = SimpleNamespace(
    memory=SimpleNamespace(copy_in=lambda x: ("buffer", x.clone()), copy_out=lambda buffer: buffer[1])
)
ENVIRONMENTS: Any = {device("ARENA", i).name: ARENA for i in range(2)}


def test_cpu_devices_share_memory() -> None:
    assert transfer(device("CPU"), device("CPU", 1), {}) == (None, None)


def test_who_leaves_a_gpu_starts_the_copy_and_who_enters_ends_it() -> None:
    to_host = transfer(device("GPU"), device("CPU"), {})
    assert to_host.leave is not None and to_host.enter is not None
    from_host = transfer(device("CPU"), device("GPU"), {})
    assert from_host.leave is None and from_host.enter is not None
    assert transfer(device("GPU"), device("GPU", 1), {}).leave is None, "directly"
    assert transfer(device("GPU"), device("GPU", 1), {}, to_host=True).leave is not None
    assert transfer(device("CPU"), device("GPU"), {}, to_host=True) == (None, None)


def test_control_values_pass_through_a_gpus_halves_as_they_are() -> None:
    way = transfer(device("GPU"), device("CPU"), {})
    assert way.leave("dead") == "dead" and way.enter("dead") == "dead"
    assert transfer(device("CPU"), device("GPU"), {}).enter(3) == 3


def test_registered_types_copy_where_the_receive_is() -> None:
    x = torch.ones(2)
    into = transfer(device("CPU"), device("ARENA"), ENVIRONMENTS)
    assert into.leave is None
    buffer = into.enter(x)
    assert buffer[0] == "buffer" and buffer[1] is not x
    assert torch.equal(transfer(device("ARENA"), device("CPU"), ENVIRONMENTS).enter(buffer), x)
    between = transfer(device("ARENA"), device("ARENA", 1), ENVIRONMENTS)
    assert between.leave is None and torch.equal(between.enter(buffer)[1], x)
    beside = transfer(device("ARENA"), device("ARENA", 1), ENVIRONMENTS, to_host=True)
    assert torch.equal(beside.enter(buffer), x)


def test_feeds_are_brought_to_their_device() -> None:
    move = to_device(torch.device("meta"))
    assert move(torch.ones(2)).device.type == "meta" and move("text") == "text"
