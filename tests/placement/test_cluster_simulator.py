"""The simulated cluster: times and memory worked out by hand, and bounds that hold for any graph."""

from __future__ import annotations

import itertools

import pytest

from flowstone.placement.cluster_simulator import (
    best_single_device,
    cost,
    excess_bytes,
    exhaustive,
    on_device,
    random_placement,
    round_robin,
    simulate,
)
from flowstone.placement.devices import Link, SimulatedDevice
from flowstone.placement.synthetic_graphs import random_cluster, random_tasks
from flowstone.placement.task_graph import TaskGraph, link_table


def tasks_of(times, edges, *, speeds=(1.0, 1.0), sizes=None, limit=None, **fields):
    """A graph of tasks with these times (us), each edge a tensor of its source's size (bytes)."""
    devices = [SimulatedDevice(f"/device:CPU:{i}", "CPU", limit, speed) for i, speed in enumerate(speeds)]
    count = len(times)
    sizes = sizes or [100] * count
    inputs = [tuple(2 * source for source, target in edges if target == i) for i in range(count)]
    given = {
        "group": list(range(count)),
        "feasible": [tuple(range(len(devices)))] * count,
        "resident": [0] * count,
        "storage": list(range(2 * count)),
        "buffer": [s for size in sizes for s in (size, 0)],
        **fields,
    }
    return TaskGraph(
        devices=devices,
        links=link_table(devices, lambda a, b: Link(5.0, 0.1)),
        times=[[t / speed for t in times] for speed in speeds],
        inputs=inputs,
        outputs=[range(2 * i, 2 * i + 2) for i in range(count)],
        producer=[i for i in range(count) for _ in range(2)],
        size=[s for size in sizes for s in (size, 0)],
        **given,
    )


DIAMOND = ([10, 20, 30, 10], [(0, 1), (0, 2), (1, 3), (2, 3)])


def test_one_device_runs_task_after_task():
    step = simulate(tasks_of(*DIAMOND), [0, 0, 0, 0])
    assert step.makespan_us == 70 and step.busy_us == [70, 0]
    assert step.start_us == [0, 10, 30, 60] and step.transfers == 0 and step.moved_bytes == 0


def test_branches_on_two_devices_overlap_and_pay_for_the_transfers():
    step = simulate(tasks_of(*DIAMOND), [0, 0, 1, 0])
    # 10, then 15 on the way (5 + 100 x 0.1), 30 there, 15 back, 10
    assert step.start_us == [0, 10, 25, 70] and step.makespan_us == 80
    assert step.busy_us == [40, 30]
    assert (step.transfers, step.moved_bytes) == (2, 200)


def test_a_tensor_travels_to_a_device_once():
    step = simulate(tasks_of([1, 1, 1], [(0, 1), (0, 2)]), [0, 1, 1])
    assert step.transfers == 1 and step.start_us == [0, 16, 17]


def test_a_link_carries_one_tensor_at_a_time():
    step = simulate(tasks_of([1, 1, 1], [(0, 2), (1, 2)]), [0, 0, 1])
    # made at 1 and 2; the second waits until 11 for the link, occupies it for 10, and needs 5 more
    assert step.start_us[2] == 26


def test_a_faster_device_takes_less_time():
    assert simulate(tasks_of(*DIAMOND, speeds=(1.0, 2.0)), [1, 1, 1, 1]).makespan_us == 35


def test_memory_is_held_from_a_task_to_the_last_that_uses_its_tensor():
    chain = tasks_of([1, 1, 1, 1], [(0, 1), (1, 2), (2, 3)], sizes=[10, 20, 40, 5])
    assert simulate(chain, [0, 0, 0, 0]).peak_bytes == [60, 0]
    assert simulate(chain, [0, 0, 1, 1]).peak_bytes == [30, 60]  # tensor 1 is copied to the other device
    kept = tasks_of([1, 1, 1, 1], [(0, 1), (1, 2), (2, 3)], sizes=[10, 20, 40, 5], kept=frozenset([0]))
    assert simulate(kept, [0, 0, 0, 0]).peak_bytes == [70, 0]


def test_state_counts_all_the_time_and_a_view_not_at_all():
    state = tasks_of(
        [0, 1, 1], [(0, 1), (1, 2)], sizes=[100, 100, 8],
        resident=[100, 0, 0], storage=[0, 1, 0, 3, 4, 5], buffer=[0, 0, 0, 0, 8, 0],
    )  # fmt: skip
    assert simulate(state, [0, 0, 0]).peak_bytes == [108, 0]
    assert simulate(state, [0, 0, 1]).peak_bytes == [100, 108]


def test_excess_is_what_does_not_fit():
    tasks = tasks_of([1, 1], [(0, 1)], sizes=[60, 60], limit=100)
    assert simulate(tasks, [0, 0]).peak_bytes == [120, 0]
    assert cost(tasks, [0, 0]) == (20, 2.0, 0)
    assert cost(tasks, [0, 1]) == (20, 13.0, 60)  # the second device holds the copy and its own
    assert excess_bytes(tasks, [100, 130]) == 30


# ---- placements to compare with


def test_the_best_single_device_is_the_fastest_that_has_the_memory():
    tasks = tasks_of(*DIAMOND, speeds=(1.0, 4.0, 2.0))
    assert best_single_device(tasks) == [1, 1, 1, 1]
    devices = [d._replace(memory_limit=50 if i == 1 else None) for i, d in enumerate(tasks.devices)]
    tasks.devices = devices
    assert best_single_device(tasks) == [2, 2, 2, 2]


def test_what_may_not_be_on_the_device_stays_off_it():
    tasks = tasks_of([1, 1, 1], [(0, 1), (1, 2)], feasible=[(0,), (0, 1), (1, 0)])
    assert on_device(tasks, 1) == [0, 1, 1]
    assert round_robin(tasks) == [0, 0, 1]
    assert {tuple(random_placement(tasks, seed)) for seed in range(40)} == {
        (0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)
    }  # fmt: skip
    assert random_placement(tasks, 3) == random_placement(tasks, 3)


def test_the_exhaustive_search_finds_the_best_and_refuses_large_graphs():
    two = tasks_of([100, 100], [])
    assert sorted(exhaustive(two)) == [0, 1]
    chain = tasks_of([10, 10, 10], [(0, 1), (1, 2)], speeds=(1.0, 2.0))
    assert exhaustive(chain) == [1, 1, 1]
    with pytest.raises(ValueError, match="too many to try all"):
        exhaustive(tasks_of([1.0] * 30, []))


@pytest.mark.parametrize("seed", range(20))
def test_bounds_that_any_step_keeps(seed):
    devices = random_cluster(4, seed)
    tasks = random_tasks(40, devices, seed, pinned=0.2, colocated=0.2)
    groups = random_placement(tasks, seed)
    step = simulate(tasks, groups)
    device = tasks.expand(groups)
    for i, inputs in enumerate(tasks.inputs):
        assert step.finish_us[i] == pytest.approx(step.start_us[i] + tasks.times[device[i]][i])
        for t in inputs:
            source = tasks.producer[t]
            over = tasks.links[device[source]][device[i]].time_us(tasks.size[t])
            assert (
                step.start_us[i]
                >= step.finish_us[source] + (over if device[source] != device[i] else 0) - 1e-6
            )
    for d in range(4):
        own = sorted((step.start_us[i], step.finish_us[i]) for i in range(40) if device[i] == d)
        assert all(a[1] <= b[0] + 1e-6 for a, b in itertools.pairwise(own)), "two tasks at a time"
        assert sum(b - a for a, b in own) == pytest.approx(step.busy_us[d])
    assert max(step.busy_us) <= step.makespan_us == max(step.finish_us)
    assert cost(tasks, groups) == (0, pytest.approx(step.makespan_us), step.moved_bytes)
