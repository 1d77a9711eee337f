"""The machine model: what each number bounds, and that it is measured once."""

from __future__ import annotations

import pytest
import torch

from flowstone.runtime.explaining.floors import Floors, measured_floors

MACHINE = Floors("cpu", 1, 100e9, 50e9, ((1000, 10e9), (100_000, 1e9)), 1e-6)


@pytest.mark.parametrize(
    ("operations", "size", "convolves", "seconds", "bound"),
    [
        (0.0, 0, False, 1e-6, "call"),
        (1e6, 0, False, 1e-5, "compute"),
        (1e6, 0, True, 2e-5, "compute"),
        (0.0, 1000, False, 1e-6, "call"),  # 0.1 us in the cache
        (0.0, 1001, False, 1.001e-6, "memory"),
        (1e5, 10_000_000, False, 1e-2, "memory"),  # larger than all that was measured
    ],
)
def test_the_slowest_resource_is_the_floor(operations, size, convolves, seconds, bound):
    floor = MACHINE.floor(operations, size, convolves)
    assert floor.seconds == pytest.approx(seconds)
    assert floor.bound == bound


def test_it_is_measured_once_and_gives_rates_that_a_machine_can_have():
    before = torch.get_num_threads()
    machine = measured_floors("cpu", 1)
    assert measured_floors("cpu", 1) is machine
    assert torch.get_num_threads() == before
    assert (machine.device, machine.threads) == ("cpu", 1)
    rates = [machine.product, machine.convolution, *(rate for _, rate in machine.bandwidths)]
    assert all(1e6 < rate < 1e15 for rate in rates)
    assert 1e-9 < machine.call < 1e-2
    sizes = [size for size, _ in machine.bandwidths]
    assert sizes == sorted(sizes)


def test_more_threads_are_never_a_slower_machine():
    one, two = measured_floors("cpu", 1), measured_floors("cpu", 2)
    assert two.threads == 2
    assert two.product >= one.product and two.convolution >= one.convolution
    assert all(b >= a for (_, a), (_, b) in zip(one.bandwidths, two.bandwidths))
    assert two.call <= one.call
