"""Made-up clusters and tasks: the same for the same seed, and what is asked for."""

from __future__ import annotations

import doctest
from dataclasses import asdict

import pytest

from flowstone.placement import synthetic_graphs
from flowstone.placement.synthetic_graphs import random_cluster, random_tasks


def test_examples() -> None:
    assert doctest.testmod(synthetic_graphs).failed == 0


def test_a_seed_decides_all() -> None:
    cluster = random_cluster(3, seed=4, memory_limit=100)
    assert cluster == random_cluster(3, seed=4, memory_limit=100)
    assert {each.memory_limit for each in cluster} == {100}
    assert asdict(random_tasks(9, cluster, 5)) == asdict(random_tasks(9, cluster, 5))
    assert random_tasks(9, cluster, 5).size != random_tasks(9, cluster, 6).size


@pytest.mark.parametrize("seed", range(5))
def test_tasks_take_what_is_made_before_them(seed: int) -> None:
    cluster = random_cluster(2, seed)
    tasks = random_tasks(40, cluster, seed)
    for i, inputs in enumerate(tasks.inputs):
        assert len(inputs) <= 3 and all(tasks.producer[t] < i for t in inputs)
    for device, times in zip(cluster, tasks.times):
        assert all(1 <= us * device.relative_speed <= 100 for us in times)
    assert all(1 <= tasks.size[2 * i] <= 100_000 and tasks.size[2 * i + 1] == 0 for i in range(40))


def test_some_are_pinned_and_some_share_a_device() -> None:
    cluster = random_cluster(3, 1)
    free = random_tasks(20, cluster, 1)
    assert free.group == list(range(20)) and set(free.feasible) == {(0, 1, 2)}
    pinned = random_tasks(20, cluster, 1, pinned=1.0)
    assert all(len(each) == 1 for each in pinned.feasible)
    together = random_tasks(20, cluster, 1, colocated=1.0)
    assert set(together.group) == {0} and len(together.feasible) == 1
