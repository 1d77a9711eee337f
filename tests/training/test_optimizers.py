"""Every optimiser follows TensorFlow's trajectory, with the same names of variables, slots and nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flowstone as tf
import flowstone.train
from tests.training import trajectories

GOLDEN = Path(__file__).parents[1] / "golden" / "training"
VALUES = np.load(GOLDEN / "optimizers.npz")
TOLERANCE = {"float32": 3e-6, "float64": 1e-13}


def golden_nodes(name: str) -> dict[str, list[str]]:
    """Lines by case of a text file of nodes."""
    text = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    sections = [section.strip().split("\n") for section in text.split("# ")[1:]]
    return {lines[0]: lines[1:] for lines in sections}


NODES = golden_nodes("optimizers")


def golden_trajectory(case: str) -> dict[str, np.ndarray]:
    """The values by variable, step by step."""
    prefix = case.replace("/", "\\") + "|"
    return {
        key.removeprefix(prefix).replace("\\", "/"): VALUES[key]
        for key in VALUES.files
        if key.startswith(prefix)
    }


@pytest.mark.parametrize("case", trajectories.cases(), ids="/".join)
def test_trajectory(case: tuple[str, str, str, str]) -> None:
    expected = golden_trajectory("/".join(case))
    found = trajectories.run(tf, case)
    tolerance = TOLERANCE[case[-1]]
    assert set(found[0]) == set(expected)
    for name, golden in expected.items():
        values = np.stack([step[name] for step in found])
        assert values.dtype == golden.dtype
        np.testing.assert_allclose(values, golden, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("case", sorted(NODES))
def test_nodes(case: str) -> None:
    assert trajectories.node_lines(tf, tuple(case.split("/"))) == NODES[case]
