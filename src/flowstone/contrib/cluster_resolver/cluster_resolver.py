"""`ClusterResolver`, and those of a given ClusterSpec and of several others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import flowstone as tf

__all__ = ["ClusterResolver", "SimpleClusterResolver", "UnionClusterResolver"]


class ClusterResolver(ABC):
    """Says which tasks a cluster has, and which of them this process is."""

    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None

    @abstractmethod
    def cluster_spec(self) -> Any:
        """The cluster, a `tf.train.ClusterSpec`."""

    @abstractmethod
    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The target for sessions, of the task named or else of this one."""

    @property
    def environment(self) -> str:
        """Where the cluster runs; "" if that is not known."""
        return ""

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """How many GPUs this machine has: ``{"GPU": n}``, empty without."""
        count = tf.contrib.eager.num_gpus()
        return {"GPU": count} if count else {}

    def _address(self, task_type: str | None, task_id: int | None, rpc_layer: str | None) -> str:
        address = self.cluster_spec().task_address(task_type, task_id)
        return address if not rpc_layer else f"{rpc_layer}://{address}"


class SimpleClusterResolver(ClusterResolver):
    """A cluster that is known.

    `cluster_spec`: a ClusterSpec. `master`: the sessions' target where no task is named. `task_type`,
    `task_id`: which task this is. `num_accelerators`: what `num_accelerators` answers. TypeError for other
    clusters.
    """

    def __init__(
        self,
        cluster_spec: Any,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: Any = None,
        rpc_layer: str | None = None,
    ) -> None:
        if not isinstance(cluster_spec, tf.train.ClusterSpec):
            raise TypeError("cluster_spec must be a ClusterSpec.")
        if not isinstance(master, str):
            raise TypeError("master must be a string.")
        self._cluster_spec, self._master, self._environment = cluster_spec, master, environment
        self._accelerators = num_accelerators
        self.task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer

    def cluster_spec(self) -> Any:
        """The cluster."""
        return self._cluster_spec

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of the task named, else the master."""
        if task_type is not None and task_id is not None:
            return self._address(task_type, task_id, rpc_layer or self.rpc_layer)
        return self._master

    @property
    def environment(self) -> str:
        """Where the cluster runs, as given."""
        return self._environment

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> Any:
        """As given, else how many GPUs this machine has."""
        return super().num_accelerators() if self._accelerators is None else self._accelerators


class UnionClusterResolver(ClusterResolver):
    """The tasks of several resolvers; the first one answers all other questions.

    Tasks of a job that several have are joined: lists follow one another; numbered ones must differ
    (KeyError). `rpc_layer`, `task_type`, `task_id`: instead of the first one's. TypeError for what is no
    resolver, ValueError for none.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not args:
            raise ValueError("At least one ClusterResolver is required.")
        if not all(isinstance(each, ClusterResolver) for each in args):
            raise TypeError("All arguments must be a sub-class of `ClusterResolver.`")
        self._resolvers = args
        for name in ("task_type", "task_id", "rpc_layer"):
            setattr(self, name, kwargs.pop(name, getattr(args[0], name)))

    def cluster_spec(self) -> Any:
        """The cluster of all tasks."""
        jobs: dict[str, Any] = {}
        for resolver in self._resolvers:
            for job, tasks in resolver.cluster_spec().as_dict().items():
                jobs[job] = tasks if job not in jobs else _joined(job, jobs[job], tasks)
        return tf.train.ClusterSpec(jobs)

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The address of the task named, else the first resolver's master."""
        if task_type is not None and task_id is not None:
            return self._address(task_type, task_id, rpc_layer or self.rpc_layer)
        master: str = self._resolvers[0].master(rpc_layer=rpc_layer)
        return master

    @property
    def environment(self) -> str:
        """The first resolver's."""
        environment: str = self._resolvers[0].environment
        return environment

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> Any:
        """The first resolver's."""
        return self._resolvers[0].num_accelerators(task_type, task_id, config_proto)


def _joined(job: str, first: Any, second: Any) -> Any:
    if isinstance(first, list) and isinstance(second, list):
        return first + [each for each in second if each not in first]
    tasks, more = (
        dict(enumerate(each)) if isinstance(each, list) else dict(each) for each in (first, second)
    )
    if any(tasks.get(number, address) != address for number, address in more.items()):
        raise KeyError(f"Duplicate keys detected when merging two ClusterSpecs: job {job}")
    return {**tasks, **more}
