"""`tf.contrib.cluster_resolver`: which machines a cluster has, asked of what started the program."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

_CLOUD = "GCEClusterResolver GceClusterResolver KubernetesClusterResolver TPUClusterResolver"
__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.cluster_resolver.cluster_resolver": "ClusterResolver SimpleClusterResolver"
        " UnionClusterResolver",
        "flowstone.contrib.cluster_resolver.cloud_resolvers": _CLOUD,
        "flowstone.contrib.cluster_resolver.slurm_cluster_resolver": "SlurmClusterResolver",
        "flowstone.contrib.cluster_resolver.tfconfig_cluster_resolver": "TFConfigClusterResolver",
        "flowstone.train": "ClusterSpec",
    },
)
