"""What operators that are made of one other operator share with it: conditions, checks and hints."""

from __future__ import annotations

from typing import Any

from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.linear_operators.linear_operator import Hint, LinearOperator


def inherited(hint: Hint, of_operator: Hint, what: str) -> Hint:
    """A hint that holds for an operator exactly if it holds for what it is made of. ValueError otherwise."""
    if hint is None or of_operator is None or hint == of_operator:
        return of_operator if hint is None else hint
    negation = " not" if of_operator else ""
    raise ValueError(f"The hint that it is{negation} {what} contradicts the operator that it is made of.")


class DerivedOperator(LinearOperator):
    """An operator with the condition number of another one, and its properties: non-singular and so on."""

    _operator: LinearOperator

    @property
    def operator(self) -> LinearOperator:
        """The operator that it is made of."""
        return self._operator

    def _cond(self) -> Tensor:
        return self._operator._cond()

    def _assert_non_singular(self) -> Any:
        return self._operator._assert_non_singular()

    def _assert_positive_definite(self) -> Any:
        return self._operator._assert_positive_definite()

    def _assert_self_adjoint(self) -> Any:
        return self._operator._assert_self_adjoint()
