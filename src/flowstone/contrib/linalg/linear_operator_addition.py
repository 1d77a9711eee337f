"""Sums of linear operators, with as few matrices as they take."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["add_operators"]


def _kind(operator: Any) -> int:
    """How dense the operator is: 0 for multiples of the identity to 3 for full matrices; 4 for others."""
    linalg = tf.linalg
    kinds = (
        (linalg.LinearOperatorIdentity, linalg.LinearOperatorScaledIdentity),
        linalg.LinearOperatorDiag,
        linalg.LinearOperatorLowerTriangular,
        linalg.LinearOperatorFullMatrix,
    )
    return next((index for index, kind in enumerate(kinds) if isinstance(operator, kind)), 4)


def _hints(first: Any, second: Any) -> dict[str, Any]:
    """What is known of a sum: sums of symmetric or positive definite operators are."""
    definite = (first.is_positive_definite and second.is_positive_definite) or None
    symmetric = (first.is_self_adjoint and second.is_self_adjoint) or None
    return {"is_positive_definite": definite, "is_self_adjoint": symmetric, "is_non_singular": definite}


def _sum(first: Any, second: Any, name: str) -> Any:
    """The sum of two operators, of the denser one's kind."""
    kind, hints = max(_kind(first), _kind(second)), _hints(first, second)
    if kind == 0:
        multipliers = [getattr(each, "multiplier", None) for each in (first, second)]
        one = tf.ones([], first.dtype)
        total = sum(one if each is None else each for each in multipliers)
        rows = first.range_dimension.value
        rows = first.range_dimension_tensor() if rows is None else rows
        return tf.linalg.LinearOperatorScaledIdentity(rows, total, name=name, **hints)
    if kind == 1:
        return tf.linalg.LinearOperatorDiag(first.diag_part() + second.diag_part(), name=name, **hints)
    dense = first.to_dense() + second.to_dense()
    if kind == 2:
        return tf.linalg.LinearOperatorLowerTriangular(dense, name=name, **hints)
    return tf.linalg.LinearOperatorFullMatrix(dense, name=name, **hints)


def add_operators(
    operators: Any, operator_name: str | None = None, addition_tiers: Any = None, name: str | None = None
) -> list[Any]:
    """Adds operators together as long as a sum is no denser than the densest of them.

    Multiples of the identity, diagonal, triangular and full matrices are added up to one operator. Others
    stay as they are: the sum is that of the list returned.

    Args:
        operators: LinearOperators of one type and one shape.
        operator_name: the name of the sum.
        addition_tiers: only None, for the order above. ValueError for others.
        name: the scope of its operations.

    TypeError unless there are operators only, ValueError for none or unlike shapes.
    """
    operators = list(operators)
    if not operators:
        raise ValueError("Argument 'operators' must contain at least one operator.")
    if not all(isinstance(each, tf.linalg.LinearOperator) for each in operators):
        raise TypeError(f"Argument 'operators' must be a list of LinearOperators. Found: {operators}")
    if addition_tiers is not None:
        raise ValueError("Operators are added in the one order of `add_operators`; leave addition_tiers out.")
    shape = operators[0].shape
    for each in operators[1:]:
        if not each.shape[-2:].is_compatible_with(shape[-2:]):
            raise ValueError(f"Operators of the shapes {shape} and {each.shape} cannot be added.")
    with tf.name_scope(name or "add_operators"):
        added = sorted((each for each in operators if _kind(each) < 4), key=_kind)
        others = [each for each in operators if _kind(each) == 4]
        total: Any = added[0] if added else None
        for each in added[1:]:
            total = _sum(total, each, operator_name or f"Add/{total.name}__{each.name}".replace("/", "_"))
        return others if total is None else [total, *others]
