"""What placement asks of devices: which come first, and the ways between them."""

from __future__ import annotations

import doctest

import pytest

from flowstone.placement import devices
from flowstone.placement.devices import Link, SimulatedDevice, by_priority, default_link


def device(kind: str, number: int = 0, task: str = "/job:w/replica:0/task:0") -> SimulatedDevice:
    return SimulatedDevice(f"{task}/device:{kind}:{number}", kind)


def test_examples() -> None:
    assert doctest.testmod(devices).failed == 0


def test_gpus_come_first_and_cpus_last_in_their_order() -> None:
    given = [device("CPU"), device("CPU", 1), device("ARENA"), device("GPU", 1), device("GPU")]
    assert by_priority(given) == [3, 4, 2, 0, 1]


def test_a_link_is_its_latency_and_its_bytes() -> None:
    assert Link(10.0, 0.5).time_us(4) == 12.0 and Link(10.0, 0.5).time_us(0) == 10.0


@pytest.mark.parametrize(
    ("source", "target", "rank"),
    [
        (device("CPU"), device("CPU", 1), 0),
        (device("CPU"), device("GPU"), 1),
        (device("GPU"), device("GPU", 1), 1),
        (device("CPU"), device("CPU", 0, "/job:w/replica:0/task:1"), 2),
        (device("CPU"), device("CPU", 0, "/job:v/replica:0/task:0"), 2),
    ],
)
def test_memory_is_shared_in_a_process_and_tasks_have_a_network(source, target, rank) -> None:
    size = 10_000_000
    ways = [(device("CPU"), device("CPU", 1)), (device("CPU"), device("GPU"))]
    ways.append((device("CPU"), device("CPU", 0, "/job:w/replica:0/task:1")))
    times = [default_link(*way).time_us(size) for way in ways]
    assert times == sorted(set(times))
    assert (
        default_link(source, target).time_us(size)
        == times[rank]
        == default_link(target, source).time_us(size)
    )
