"""MaskedMatmul and WALSComputePartialLhsAndRhs, with TensorFlow 1.15.5's answers to these inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

A, B = np.arange(6, dtype=np.float32).reshape(3, 2), np.arange(8, dtype=np.float32).reshape(2, 4)
PLACES = np.array([[0, 1], [2, 3], [0, 1]])
FACTORS, VALUES = A / 3, np.float32([1, 2, 3])
WEIGHTS, ROW_WEIGHTS, NONE = np.float32([1, 2, 3]), np.float32([1, 2]), np.zeros(0, np.float32)
ENTRIES = np.array([[0, 0], [1, 2], [1, 0]])


def masked(a: Any, b: Any, places: Any, transpose_a: Any = False, transpose_b: Any = False) -> Any:
    product = tf.raw_ops.MaskedMatmul(
        a=a, b=b, mask_indices=np.array(places, np.int64), transpose_a=transpose_a, transpose_b=transpose_b
    )
    with tf.Session() as session:
        return session.run(product)


def partial(**changed: Any) -> Any:
    arguments = {
        "factors": FACTORS,
        "factor_weights": WEIGHTS,
        "unobserved_weights": 0.1,
        "input_weights": ROW_WEIGHTS,
        "input_indices": ENTRIES,
        "input_values": VALUES,
        "entry_weights": NONE,
        "input_block_size": 2,
        "input_is_transpose": False,
    }
    with tf.Session() as session:
        return session.run(tf.raw_ops.WALSComputePartialLhsAndRhs(**{**arguments, **changed}))


def test_products_at_some_places() -> None:
    np.testing.assert_array_equal(masked(A, B, PLACES), [5, 47, 5])
    np.testing.assert_array_equal(masked(A.T, B.T, PLACES, True, True), [5, 47, 5])
    assert masked(A, B, np.zeros((0, 2))).shape == (0,)


def test_sums_of_rows() -> None:
    left = [[[0, 0], [0, 1 / 9]], [[10.666667, 13.333334], [13.333334, 16.888887]]]
    right = [[0, 0.36666667], [16.266666, 22.433332]]
    for changed in ({}, {"input_indices": ENTRIES[:, ::-1].copy(), "input_is_transpose": True}):
        found = partial(**changed)
        np.testing.assert_allclose(found[0], left, 1e-5)
        np.testing.assert_allclose(found[1], right, 1e-5)


def test_weights_of_entries() -> None:
    found = partial(factor_weights=NONE, input_weights=NONE, entry_weights=VALUES)
    np.testing.assert_allclose(found[0][1], [[3.5555556, 4.444444], [4.444444, 5.888889]], 1e-5)
    np.testing.assert_allclose(found[1], [[0, 0.36666667], [5.6, 10.099999]], 1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((A, B[:1], PLACES), "cannot be multiplied"),
        ((A[0], B, PLACES), "a must be a matrix"),
        ((A, B, [0, 1]), "mask_indices must be a matrix"),
        ((A, B, [[0, 1, 2]]), r"must be \[entries, 2\]"),
        ((A, B, [[3, 0]]), "rows of mask_indices must be between 0 and 3"),
        ((A, B, [[0, -1]]), "columns of mask_indices must be between 0 and 4"),
    ],
)
def test_products_that_cannot_be(arguments: Any, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        masked(*arguments)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"entry_weights": VALUES}, "either entry_weights or both"),
        ({"input_weights": NONE}, "either entry_weights or both"),
        ({"input_indices": ENTRIES[:2]}, "2 input_indices, but 3 input_values"),
        ({"input_block_size": 1}, "rows of input_indices must be between 0 and 1"),
        ({"factors": FACTORS[:2]}, "columns of input_indices must be between 0 and 2"),
        ({"factor_weights": WEIGHTS[:2]}, "columns of input_indices must be between 0 and 2"),
        ({"unobserved_weights": [0.1]}, "unobserved_weights must be a scalar"),
        (
            {"factor_weights": NONE, "input_weights": NONE, "entry_weights": VALUES[:2]},
            "3 entries, but 2 entry_weights",
        ),
    ],
)
def test_sums_that_cannot_be(changed: Any, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        partial(**changed)
