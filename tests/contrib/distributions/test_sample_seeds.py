"""Samples that take several random ops give these the seeds that TensorFlow 1.15.5 gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf

own, contrib = tf.distributions, tf.contrib.distributions
CASES: dict[str, tuple[Callable[[], Any], list[int]]] = {
    "Beta": (lambda: own.Beta(2.0, 3.0), [5, 1539300293]),
    "StudentT": (lambda: own.StudentT(3.0, 0.0, 1.0), [5, 739551145]),
    "DirichletMultinomial": (lambda: own.DirichletMultinomial(5.0, [1.0, 2.0]), [5, 888257754]),
    "NegativeBinomial": (lambda: contrib.NegativeBinomial(3.0, probs=0.4), [5, 1608640055]),
    "WishartCholesky": (lambda: contrib.WishartCholesky(5.0, np.eye(2, dtype=np.float32)), [5, 288626126]),
    "PoissonLogNormal": (lambda: contrib.PoissonLogNormalQuadratureCompound(0.0, 1.0), [375602132, 5]),
    "Mixture": (
        lambda: contrib.Mixture(
            contrib.Categorical(probs=[0.3, 0.4, 0.3]), [own.Normal(k, 1.0) for k in (0.0, 5.0, 6.0)]
        ),
        [5, 388272362, 653913853, 176901438],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_seeds_of_samples(name: str) -> None:
    make, seeds = CASES[name]
    with tf.Graph().as_default() as graph:
        make().sample(3, seed=5)
        attributes = [op.node_def.attr for op in graph.get_operations()]
    assert [each["seed2"].i for each in attributes if "seed2" in each] == seeds


def test_streams_of_seeds() -> None:
    stream, none = contrib.SeedStream(5, "abc"), contrib.SeedStream(None, "abc")
    first, second = stream(), stream()
    assert (first % 10**9, second % 10**9) == (335680217, 244019642)
    assert first.bit_length() == second.bit_length() == 511
    assert none() is None
