"""Resolvers that ask a cloud's interface, which are refused."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.cluster_resolver.cluster_resolver import ClusterResolver
from flowstone.framework.names.refusals import refuse

__all__ = ["GCEClusterResolver", "GceClusterResolver", "KubernetesClusterResolver", "TPUClusterResolver"]

_SPEC = "SimpleClusterResolver with a tf.train.ClusterSpec of the machines' addresses"


def _refuse(resolver: Any, instead: str = _SPEC) -> None:
    refuse(f"tf.contrib.cluster_resolver.{type(resolver).__name__}", instead)


class _CloudResolver(ClusterResolver):
    """A resolver without instances."""

    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None

    def cluster_spec(self) -> Any:
        """No cluster."""
        return tf.train.ClusterSpec({})

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """No target."""
        return ""


class GCEClusterResolver(_CloudResolver):
    """An instance group of Google's Compute Engine: refused."""

    def __init__(
        self,
        project: str,
        zone: str,
        instance_group: str,
        port: int,
        task_type: str = "worker",
        task_id: int = 0,
        rpc_layer: str = "grpc",
        credentials: Any = "default",
        service: Any = None,
    ) -> None:
        _refuse(self)


class GceClusterResolver(_CloudResolver):
    """The same, as TensorFlow 1.4 has it: refused."""

    def __init__(
        self,
        project: str,
        zone: str,
        instance_group: str,
        port: int,
        job_name: str = "worker",
        credentials: Any = "default",
        service: Any = None,
    ) -> None:
        _refuse(self)


class KubernetesClusterResolver(_CloudResolver):
    """The pods of a Kubernetes cluster: refused."""

    def __init__(
        self,
        job_to_label_mapping: Any = None,
        tf_server_port: int = 8470,
        rpc_layer: str = "grpc",
        override_client: Any = None,
    ) -> None:
        _refuse(self)


class TPUClusterResolver(_CloudResolver):
    """The workers of a TPU: refused."""

    def __init__(
        self,
        tpu: Any = None,
        zone: str | None = None,
        project: str | None = None,
        job_name: str = "worker",
        coordinator_name: str | None = None,
        coordinator_address: str | None = None,
        credentials: Any = "default",
        service: Any = None,
        discovery_url: str | None = None,
    ) -> None:
        _refuse(self, "a GPU or this machine's processor")

    def get_job_name(self) -> str | None:
        """No job."""
        return self.task_type

    def get_master(self) -> str:
        """No target."""
        return self.master()
