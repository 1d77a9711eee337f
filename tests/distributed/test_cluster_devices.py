"""Devices in messages."""

from __future__ import annotations

import torch

from flowstone.distributed.cluster_devices import ClusterDevice, attributes_of, device_of
from flowstone.io.proto import worker_pb2
from flowstone.runtime.process.device import local_devices


def message_of(device: ClusterDevice) -> worker_pb2.GetStatusResponse:
    found = worker_pb2.GetStatusResponse()
    attributes_of(device, found.device_attributes.add())
    return found.device_attributes[0]


def test_a_device_comes_out_as_it_went_in() -> None:
    gpu = ClusterDevice("/job:w/replica:0/task:0/device:GPU:0", "GPU", 1 << 30, (1 << 64) - 1, 1 << 30)
    assert device_of(message_of(gpu)) == gpu


def test_memory_of_cpus_does_not_limit_placement() -> None:
    cpu = ClusterDevice("/job:w/replica:0/task:0/device:CPU:0", "CPU", None, 7, 1 << 28)
    assert device_of(message_of(cpu)) == cpu
    unlimited = ClusterDevice("/job:w/replica:0/task:0/device:GPU:0", "GPU", None, 7, 0)
    assert device_of(message_of(unlimited)).memory_limit is None


def test_devices_of_this_process() -> None:
    (device,) = local_devices({"CPU": 1, "GPU": 0})
    found = device_of(message_of(device))  # type: ignore[arg-type]
    assert (found.name, found.device_type, found.incarnation) == (device.name, "CPU", device.incarnation)
    assert found.torch == torch.device("cpu")
