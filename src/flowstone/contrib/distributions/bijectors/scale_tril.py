"""Vectors as triangular matrices with a positive diagonal."""

from __future__ import annotations

from typing import Any

from flowstone.contrib.distributions.bijectors.affine_scalar import AffineScalar
from flowstone.contrib.distributions.bijectors.chain import Chain
from flowstone.contrib.distributions.bijectors.fill_triangular import FillTriangular
from flowstone.contrib.distributions.bijectors.softplus import Softplus
from flowstone.contrib.distributions.bijectors.transform_diagonal import TransformDiagonal

__all__ = ["ScaleTriL"]


class ScaleTriL(Chain):
    """Vectors [..., k (k + 1) / 2] as lower triangular matrices [..., k, k], with a bijector of the diagonal.

    Args:
        diag_bijector: of the diagonal; softplus by default.
        diag_shift: what is added to the diagonal after it; None for nothing.
        validate_args: see `Bijector`.
        name: the scope of its operations.
    """

    def __init__(
        self,
        diag_bijector: Any = None,
        diag_shift: Any = 1e-5,
        validate_args: bool = False,
        name: str = "scale_tril",
    ) -> None:
        if diag_bijector is None:
            diag_bijector = Softplus(validate_args=validate_args)
        if diag_shift is not None:
            diag_bijector = Chain([AffineScalar(shift=diag_shift), diag_bijector])
        super().__init__(
            [TransformDiagonal(diag_bijector=diag_bijector), FillTriangular()],
            validate_args=validate_args,
            name=name,
        )
