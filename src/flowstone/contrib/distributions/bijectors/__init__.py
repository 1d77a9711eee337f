"""`tf.contrib.distributions.bijectors`: invertible functions with the logarithms of their Jacobians."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

_HERE = "flowstone.contrib.distributions.bijectors"

__getattr__, __dir__ = package_names(
    globals(),
    {
        f"{_HERE}.absolute_value": "AbsoluteValue",
        f"{_HERE}.affine": "Affine",
        f"{_HERE}.affine_linear_operator": "AffineLinearOperator",
        f"{_HERE}.affine_scalar": "AffineScalar",
        f"{_HERE}.batch_normalization": "BatchNormalization",
        f"{_HERE}.bijector": "Bijector",
        f"{_HERE}.chain": "Chain",
        f"{_HERE}.cholesky_outer_product": "CholeskyOuterProduct",
        f"{_HERE}.conditional_bijector": "ConditionalBijector",
        f"{_HERE}.exp": "Exp",
        f"{_HERE}.fill_triangular": "FillTriangular",
        f"{_HERE}.gumbel": "Gumbel",
        f"{_HERE}.identity": "Identity",
        f"{_HERE}.inline": "Inline",
        f"{_HERE}.invert": "Invert",
        f"{_HERE}.kumaraswamy": "Kumaraswamy",
        f"{_HERE}.masked_autoregressive": "MaskedAutoregressiveFlow masked_autoregressive_default_template"
        " masked_dense",
        f"{_HERE}.matrix_inverse_tril": "MatrixInverseTriL",
        f"{_HERE}.ordered": "Ordered",
        f"{_HERE}.permute": "Permute",
        f"{_HERE}.power_transform": "PowerTransform",
        f"{_HERE}.real_nvp": "RealNVP real_nvp_default_template",
        f"{_HERE}.reshape": "Reshape",
        f"{_HERE}.scale_tril": "ScaleTriL",
        f"{_HERE}.sigmoid": "Sigmoid",
        f"{_HERE}.sinh_arcsinh": "SinhArcsinh",
        f"{_HERE}.softmax_centered": "SigmoidCentered SoftmaxCentered",
        f"{_HERE}.softplus": "Softplus",
        f"{_HERE}.softsign": "Softsign",
        f"{_HERE}.square": "Square",
        f"{_HERE}.transform_diagonal": "TransformDiagonal",
    },
)
