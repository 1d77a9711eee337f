"""Metrics give TensorFlow 1.15's values batch by batch, variables, nodes, collections and errors."""

from __future__ import annotations

import numpy as np
import pytest
from tests.layers import metric_programs
from tests.layers.test_losses import GOLDEN, golden_lines

import flowstone as tf

VALUES = np.load(GOLDEN / "metrics.npz")
LINES = golden_lines("metrics.txt")


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_every_program_has_its_goldens() -> None:
    assert list(VALUES.files) == list(LINES) == list(metric_programs.PROGRAMS)


def test_every_metric_has_a_program() -> None:
    public = {name for name in dir(tf.metrics) if not name.startswith("_")}
    assert public <= set(metric_programs.PROGRAMS)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", metric_programs.PROGRAMS)
def test_values(name: str, known: bool) -> None:
    np.testing.assert_allclose(metric_programs.values(tf, name, known), VALUES[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", metric_programs.PROGRAMS)
def test_nodes_and_collections(name: str) -> None:
    assert metric_programs.node_lines(tf, name) == LINES[name]
