"""The operators of contrib are the core's, and sums of operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

linalg = tf.contrib.linalg
DENSE = np.float32([[1, 2], [3, 4]])


def test_operators_are_the_cores() -> None:
    for name in (
        "LinearOperator",
        "LinearOperatorDiag",
        "LinearOperatorComposition",
        "LinearOperatorIdentity",
    ):
        assert getattr(linalg, name) is getattr(tf.linalg, name)
    assert linalg.LinearOperatorTriL is tf.linalg.LinearOperatorLowerTriangular
    assert linalg.LinearOperatorUDVHUpdate is tf.linalg.LinearOperatorLowRankUpdate


def summed(operators: Any, **arguments: Any) -> Any:
    """The operators of the sum, and the sum's matrix."""
    result = linalg.add_operators(operators, **arguments)
    with tf.Session() as session:
        return result, sum(session.run([each.to_dense() for each in result]))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "[l.LinearOperatorIdentity(2), l.LinearOperatorScaledIdentity(2, 3.0)]",
            "LinearOperatorScaledIdentity",
        ),
        ("[l.LinearOperatorIdentity(2), l.LinearOperatorDiag([1.0, 2.0])]", "LinearOperatorDiag"),
        ("[l.LinearOperatorTriL(DENSE), l.LinearOperatorDiag([1.0, 2.0])]", "LinearOperatorLowerTriangular"),
        ("[l.LinearOperatorTriL(DENSE), l.LinearOperatorFullMatrix(DENSE)]", "LinearOperatorFullMatrix"),
    ],
)
def test_sums_are_of_the_denser_kind(text: str, kind: str) -> None:
    with tf.Graph().as_default():
        operators = eval(text, {"l": linalg, "DENSE": DENSE})
        with tf.Session() as session:
            expected = sum(session.run([each.to_dense() for each in operators]))
        result, found = summed(operators, operator_name="total")
    assert [type(each).__name__ for each in result] == [kind] and result[0].name == "total"
    np.testing.assert_allclose(found, expected)


def test_what_is_known_of_a_sum() -> None:
    with tf.Graph().as_default():
        known = {"is_positive_definite": True, "is_self_adjoint": True}
        operators = [
            linalg.LinearOperatorDiag([1.0, 2.0], **known),
            linalg.LinearOperatorFullMatrix(DENSE, **known),
        ]
        (total,) = linalg.add_operators(operators)
        assert total.is_positive_definite and total.is_self_adjoint and total.is_non_singular
        low = linalg.LinearOperatorUDVHUpdate(linalg.LinearOperatorIdentity(2), [[1.0], [2.0]])
        assert linalg.add_operators([low, *operators])[1] is low


def test_bad_input() -> None:
    with tf.Graph().as_default():
        one, other = linalg.LinearOperatorIdentity(2), linalg.LinearOperatorIdentity(3)
        with pytest.raises(ValueError, match="at least one"):
            linalg.add_operators([])
        with pytest.raises(TypeError, match="LinearOperators"):
            linalg.add_operators([one, 3])
        with pytest.raises(ValueError, match="cannot be added"):
            linalg.add_operators([one, other])
        with pytest.raises(ValueError, match="addition_tiers"):
            linalg.add_operators([one], addition_tiers=[])
