"""`tf.contrib.opt`: trainings as TensorFlow 1.15.5 does them, and the wrappers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.contrib.opt.opt_programs import cases, trajectory

import flowstone as tf

ANSWERS = json.loads((Path(__file__).parents[2] / "golden" / "contrib" / "opt.json").read_text())


@pytest.mark.parametrize(("name", "resource", "sparse"), cases())
def test_trajectories(name: str, resource: bool, sparse: bool) -> None:
    expected = ANSWERS[f"{name} {resource} {sparse}"]
    found = trajectory(tf, name, resource, sparse)
    assert sorted(found) == sorted(expected)
    for key, values in expected.items():
        np.testing.assert_allclose(found[key], values, rtol=2e-5, atol=2e-6, err_msg=key)
