"""A hundred workers under faults, for some hundred seeds; `python tests/distributed/simulation.py 10000` runs
more."""

from __future__ import annotations

import pytest
import simulation


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_a_step_commits_once_or_not_at_all(first: int) -> None:
    for seed in range(first, first + 20):
        simulation.Network(seed, workers=12).run()


@pytest.mark.parametrize("seed", range(1000, 1006))
def test_a_hundred_workers(seed: int) -> None:
    simulation.Network(seed, workers=100, steps=2).run()


def test_the_simulation_meets_every_fault() -> None:
    networks = [simulation.Network(seed, workers=12) for seed in range(60)]
    for network in networks:
        network.run()
    outcomes = {type(error).__name__ for network in networks for error in network.finished.values()}
    assert {"NoneType", "InvalidArgumentError", "UnavailableError"} <= outcomes
    assert any(network.pulls for network in networks) and any(network.duplicates for network in networks)
