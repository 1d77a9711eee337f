"""`WALSMatrixFactorization`: what TensorFlow 1.15.5 gives for `wals_programs.py`, and how training ends."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
from tests.contrib.factorization.wals_programs import CASES, COLS, ROWS, batches, factorization

import flowstone as tf

GOLDEN = pathlib.Path(__file__).parents[2] / "golden" / "contrib" / "wals.npz"


@pytest.mark.parametrize("name", CASES)
def test_as_tensorflow(name: str, tmp_path: pathlib.Path) -> None:
    with np.load(GOLDEN) as golden:
        expected = {key.split(": ")[1]: golden[key] for key in golden.files if key.startswith(f"{name}: ")}
    found = factorization(tf, str(tmp_path), *CASES[name])
    assert set(found) == set(expected)
    for key, value in expected.items():
        assert np.asarray(found[key]).dtype == value.dtype
        np.testing.assert_allclose(found[key], value, 1e-4, 1e-5, err_msg=key)


def model(folder: pathlib.Path, **arguments: Any) -> Any:
    return tf.contrib.factorization.WALSMatrixFactorization(ROWS, COLS, 2, model_dir=str(folder), **arguments)


def test_training_ends_after_the_last_sweep(tmp_path: pathlib.Path) -> None:
    made = model(tmp_path, max_sweeps=3)
    made.fit(input_fn=batches(tf, 2))
    assert made.get_variable_value("completed_sweeps") == 3
    assert made.get_variable_value("global_step") == 6
    assert made.get_variable_value("is_row_sweep") and made.get_variable_value("processed_rows").all()


def test_each_sweep_lessens_the_loss(tmp_path: pathlib.Path) -> None:
    losses = []
    for sweeps in (1, 2, 3, 4):
        made = model(tmp_path, max_sweeps=sweeps, unobserved_weight=1.0)
        made.fit(input_fn=batches(tf, 1))
        losses.append(made.get_variable_value("WALS_loss"))
    assert sorted(losses, reverse=True) == losses
    assert losses[-1] < 0.9 * losses[0]


def test_labels_have_no_meaning(tmp_path: pathlib.Path) -> None:
    def with_labels() -> Any:
        return batches(tf, 1)()[0], tf.constant([1])

    with pytest.raises(AssertionError):
        model(tmp_path).fit(input_fn=with_labels, steps=1)
