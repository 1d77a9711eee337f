"""`tf.contrib.kernel_methods`: linear models of features whose products approximate a kernel."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.kernel_methods.kernel_estimators": "KernelLinearClassifier",
        "flowstone.contrib.kernel_methods.losses": "sparse_multiclass_hinge_loss",
        "flowstone.contrib.kernel_methods.random_fourier_features": "RandomFourierFeatureMapper",
    },
)
