"""How far numbers spread over axes: variance, standard deviation, Euclidean norm; and polynomials.

Public names here belong to ``tf.math``.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.building import operand
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.numbers.reductions import euclidean_norm_op, reduce_mean, reducer

__all__ = ["polyval", "reduce_euclidean_norm", "reduce_std", "reduce_variance"]

reduce_euclidean_norm = reducer(euclidean_norm_op, "The square root of the sum of squares")
reduce_euclidean_norm.__name__ = reduce_euclidean_norm.__qualname__ = "reduce_euclidean_norm"


def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean of the squared distances from the mean over `axis`: an int, a list of them, or None for all.

    The variance of complex numbers is real. TypeError for integers.
    """
    with get_default_graph().name_scope(name or "reduce_variance"):
        x = convert_to_tensor(input_tensor)
        if x.dtype.is_integer:
            raise TypeError(f"Input must be either real or complex. Received integer type {x.dtype}.")
        distances = F.Sub(x, reduce_mean(x, axis, True), name="sub")
        if x.dtype.is_complex:
            squares = F.Square(F.ComplexAbs(distances, Tout=x.dtype.real_dtype))
        else:
            squares = F.Square(distances)
        return reduce_mean(squares, axis, keepdims)


def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of `reduce_variance`, which has the same arguments and errors."""
    with get_default_graph().name_scope(name or "reduce_std"):
        return F.Sqrt(reduce_variance(convert_to_tensor(input_tensor), axis, keepdims))


def polyval(coeffs: Any, x: Any, name: str | None = None) -> Tensor:
    """The polynomial with these coefficients, that of the highest power first, at each element of `x`.

    `coeffs`: a list of tensors or numbers that broadcast with `x`; without any the polynomial is 0.
    ValueError if it is no list.
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    with get_default_graph().name_scope(name or "polyval") as scope:
        x = convert_to_tensor(x, name="x")
        if not coeffs:
            return F.ZerosLike(x, name=scope)
        terms = [operand(each, x.dtype, f"coeff_{i}") for i, each in enumerate(coeffs)]
        value = terms[0]
        for term in terms[1:]:
            value = F.AddV2(term, F.Mul(value, x))
        return value
