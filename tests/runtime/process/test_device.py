"""Devices of this process: which there are, what is known of them, and which requests can be had."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.process.device import (
    Device,
    check_requested,
    default_device,
    local_devices,
    needs_placement,
)

TASK = "/job:localhost/replica:0/task:0"


def test_as_many_cpus_as_asked_for():
    names = [device.name for device in local_devices({"CPU": 3}) if device.device_type == "CPU"]
    assert names == [f"{TASK}/device:CPU:{i}" for i in range(3)]
    assert default_device(local_devices()).device_type in ("CPU", "GPU")


def test_what_is_known_of_a_cpu():
    cpu = local_devices()[0]
    held = cpu.statistics()
    assert cpu.memory_limit is None, "nobody counts a CPU's memory"
    assert 0 < held.bytes_in_use <= held.peak_bytes <= cpu.memory_limit_bytes == held.limit_bytes
    assert held.allocations is None
    assert cpu.incarnation == local_devices()[0].incarnation > 0


def cpus(count: int) -> list[Device]:
    host = torch.device("cpu")
    return [Device(f"{TASK}/device:CPU:{i}", "CPU", host, number=i) for i in range(count)]


GPU = Device(f"{TASK}/device:GPU:0", "GPU", torch.device("meta"), memory_limit=1 << 20)


def negated(device: str = "") -> list:
    with tf.Graph().as_default(), tf.device(device):
        return prune([tf.negative(tf.constant(np.float32(1.0)))], [], []).nodes


def test_a_gpu_is_the_default() -> None:
    assert default_device([*cpus(2), GPU]) is GPU
    assert default_device(cpus(2)).number == 0


@pytest.mark.parametrize(
    ("devices", "requested", "expected"),
    [
        (cpus(1), "/cpu:0", False),
        (cpus(2), "", True),
        ([*cpus(1), GPU], "", False),
        ([*cpus(1), GPU], "/cpu:0", True),
        ([*cpus(1), Device(f"{TASK}/device:ARENA:0", "ARENA", torch.device("cpu"))], "", True),
    ],
)
def test_where_there_is_something_to_place(devices, requested, expected) -> None:
    assert needs_placement(negated(requested), devices) is expected


def test_requests_for_devices_that_there_are_not() -> None:
    check_requested(negated("/cpu:1"), cpus(2), soft_placement=False)
    check_requested(negated("/gpu:0"), cpus(1), soft_placement=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="explicitly assigned to /device:CPU:2"):
        check_requested(negated("/cpu:2"), cpus(2), soft_placement=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="available devices are"):
        check_requested(negated("/job:other/cpu:0"), cpus(2), soft_placement=True)


def test_a_limit_is_what_may_be_held() -> None:
    assert GPU.memory_limit_bytes == 1 << 20
    environment = GPU.environment(ResourceStore(), {})
    assert (environment.device_type, environment.device, environment.memory) == ("GPU", GPU.torch, None)
