"""Resolvers that ask a cloud's interface, which are refused."""

from __future__ import annotations

from flowstone.framework.refusals import refused_class

__all__ = ["GCEClusterResolver", "GceClusterResolver", "KubernetesClusterResolver", "TPUClusterResolver"]

_NAME = "tf.contrib.cluster_resolver."
_SPEC = "SimpleClusterResolver with a tf.train.ClusterSpec of the machines' addresses"

GCEClusterResolver = refused_class(_NAME + "GCEClusterResolver", _SPEC)
GceClusterResolver = refused_class(_NAME + "GceClusterResolver", _SPEC)
KubernetesClusterResolver = refused_class(_NAME + "KubernetesClusterResolver", _SPEC)
TPUClusterResolver = refused_class(_NAME + "TPUClusterResolver", "a GPU or this machine's processor")
