"""`tf.contrib.factorization`: clusters, mixtures of Gaussians, and factors of a sparse matrix."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.factorization.clustering_ops": "COSINE_DISTANCE KMEANS_PLUS_PLUS_INIT KMeans"
        " RANDOM_INIT SQUARED_EUCLIDEAN_DISTANCE",
        "flowstone.contrib.factorization.mixture": "GMM",
        "flowstone.contrib.factorization.gmm_ops": "GmmAlgorithm gmm",
        "flowstone.contrib.factorization.kmeans": "KMeansClustering",
        "flowstone.contrib.factorization.wals_estimator": "WALSMatrixFactorization",
        "flowstone.contrib.factorization.wals_model": "WALSModel",
    },
)
