"""The greedy walk's order: the longest way to the end of a step."""

from __future__ import annotations

import pytest

from flowstone.placement.greedy_walk import ranks
from flowstone.placement.synthetic_graphs import random_cluster, random_tasks


@pytest.mark.parametrize("seed", range(5))
def test_ranks_fall_along_edges_by_at_least_the_tasks_time(seed: int) -> None:
    cluster = random_cluster(3, seed)
    tasks = random_tasks(30, cluster, seed)
    found = ranks(tasks)
    mean = [sum(times) / 3 for times in zip(*tasks.times)]
    for i, inputs in enumerate(tasks.inputs):
        for t in inputs:
            producer = tasks.producer[t]
            assert found[producer] >= mean[producer] + found[i]
    last = [i for i in range(30) if not any(tasks.consumers[t] for t in tasks.outputs[i])]
    assert last and all(found[i] == mean[i] for i in last)
