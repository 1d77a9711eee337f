"""`tf.contrib.linalg`: linear operators, most of which `tf.linalg` has, and their sums."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.linalg": "LinearOperator LinearOperatorBlockDiag LinearOperatorCirculant"
        " LinearOperatorCirculant2D LinearOperatorCirculant3D LinearOperatorComposition LinearOperatorDiag"
        " LinearOperatorFullMatrix LinearOperatorIdentity LinearOperatorKronecker"
        " LinearOperatorLowRankUpdate LinearOperatorLowerTriangular LinearOperatorScaledIdentity"
        " LinearOperatorTriL=LinearOperatorLowerTriangular"
        " LinearOperatorUDVHUpdate=LinearOperatorLowRankUpdate LinearOperatorZeros",
        "flowstone.contrib.linalg.linear_operator_addition": "add_operators",
    },
)
