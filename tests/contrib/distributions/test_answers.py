"""Contrib's distributions and bijectors answer as TensorFlow 1.15's: values, shapes, gradients, errors."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf

sys.path.insert(0, str(Path(__file__).parent))

import distribution_expressions as cases

GOLDEN = Path(__file__).parents[2] / "golden" / "contrib_distributions" / "answers.json"
ANSWERS: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))

# Answers of TensorFlow's that are not taken over, and why.
_BATCH = "TensorFlow's pairs the members of the batch with columns"
OTHERWISE: dict[tuple[str, str], str] = {
    ("one_hot-float", "gradient"): "TensorFlow's fails for floats",
    ("relaxed_one_hot", "sample 3"): "TensorFlow's fails for a batch of temperatures",
    ("relaxed_one_hot", "sample [2, 3]"): "TensorFlow's fails for a batch of temperatures",
    ("relaxed_one_hot", "static sample"): "TensorFlow's fails for a batch of temperatures",
    ("kumaraswamy", "entropy"): "TensorFlow's is not the expectation of -log_prob; tested by a sum below",
    ("batch_reshape-rest", "static"): "more is known here",
    ("quantized", "log_prob"): "what is impossible is -inf, not NaN",
    ("quantized-exponential", "log_prob"): "what is impossible is -inf, not NaN",
    ("wishart", "stddev"): "TensorFlow's is the root of the matrix, not of its elements",
    ("wishart-batch", "mean"): _BATCH,
    ("wishart-batch", "mode"): _BATCH,
    ("wishart-batch", "stddev"): _BATCH,
    ("wishart-batch", "variance"): _BATCH,
    ("masked_flow", "forward_log_det 1"): "TensorFlow's sign is wrong the first time",
    ("masked_flow-template", "forward_log_det 1"): "TensorFlow's sign is wrong the first time",
    ("real_nvp-template", "forward_log_det 1"): "TensorFlow's sign is wrong the first time",
    ("matrix_inverse_tril", "forward_log_det 2"): "TensorFlow's is of matrices that are not triangular",
    ("matrix_inverse_tril", "forward_log_det 3"): "TensorFlow's is of matrices that are not triangular",
    ("matrix_inverse_tril", "inverse_log_det 2"): "TensorFlow's is of matrices that are not triangular",
    ("matrix_inverse_tril", "inverse_log_det 3"): "TensorFlow's is of matrices that are not triangular",
    ("reshape", "facts"): "the least ranks are the shapes' here",
    ("reshape-rest", "facts"): "the least ranks are the shapes' here",
}


def compare(found: Any, expected: Any, where: str) -> None:
    if not isinstance(expected, dict):
        assert found == expected, where
        return
    if "error" in expected:
        assert found.get("error") == expected["error"], f"{where}: {found} {expected}"
        return
    assert "error" not in found, f"{where}: {found}"
    same = {key: (found.get(key), expected.get(key)) for key in ("dtype", "shape")}
    assert all(ours == theirs for ours, theirs in same.values()), f"{where}: {same}"
    tolerance = {"rtol": 2e-4, "atol": 2e-5}
    np.testing.assert_allclose(found["value"], expected["value"], err_msg=where, **tolerance)


@pytest.mark.parametrize("case", cases.CASES, ids=[case[0] for case in cases.CASES])
def test_answers_of_distributions(case: Any) -> None:
    found, expected = cases.answers(tf, *case), ANSWERS["cases"][case[0]]
    assert found.keys() == expected.keys()
    for what, answer in expected.items():
        if (case[0], what) not in OTHERWISE:
            compare(found[what], answer, f"{case[0]}: {what}")


@pytest.mark.parametrize("case", cases.BIJECTORS, ids=[case[0] for case in cases.BIJECTORS])
def test_answers_of_bijectors(case: Any) -> None:
    name, *rest = case
    found, expected = cases.bijection(tf, *rest), ANSWERS["bijectors"][name]
    assert found.keys() == expected.keys()
    for what, answer in expected.items():
        if (name, what) not in OTHERWISE:
            compare(found[what], answer, f"{name}: {what}")


@pytest.mark.parametrize("text", cases.FUNCTIONS)
def test_values_of_functions(text: str) -> None:
    compare(cases.value_of(tf, text), ANSWERS["functions"][text], text)


@pytest.mark.parametrize("text", cases.FAULTS)
def test_errors(text: str) -> None:
    assert cases.fault(tf, text) == ANSWERS["faults"][text]
