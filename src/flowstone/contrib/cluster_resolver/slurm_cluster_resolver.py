"""The cluster of a job that Slurm runs."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.cluster_resolver.cluster_resolver import ClusterResolver
from flowstone.framework import flags

__all__ = ["SlurmClusterResolver"]


class SlurmClusterResolver(ClusterResolver):
    """The tasks of a Slurm allocation as the jobs of a cluster, in the order of the nodes.

    Asks Slurm's variables (SLURM_PROCID, SLURM_NTASKS) and the program ``scontrol`` for the nodes.

    Args:
        jobs: for each job's name how many tasks it has; the allocation's first are those of the first
            job in the alphabet.
        port_base: the port of a node's first task; the next tasks have the next ports.
        gpus_per_node: the number of GPUs of each node.
        gpus_per_task: how many of them a task uses.
        tasks_per_node: by default SLURM_NTASKS_PER_NODE.
        auto_set_gpu: whether `cluster_spec` sets CUDA_VISIBLE_DEVICES to this task's GPUs.
        rpc_layer: the protocol of `master`.

    Raises KeyError outside of a Slurm job, RuntimeError if the tasks or GPUs are more than there are.
    """

    def __init__(
        self,
        jobs: Mapping[str, int],
        port_base: int = 8888,
        gpus_per_node: int = 1,
        gpus_per_task: int = 1,
        tasks_per_node: int | None = None,
        auto_set_gpu: bool = True,
        rpc_layer: str | None = "grpc",
    ) -> None:
        variables = flags.environment()
        self._rank = int(variables["SLURM_PROCID"])
        assigned = int(variables["SLURM_NTASKS"])
        if tasks_per_node is None:
            if "SLURM_NTASKS_PER_NODE" not in variables:
                raise RuntimeError("neither the argument tasks_per_node nor SLURM_NTASKS_PER_NODE is set")
            tasks_per_node = int(variables["SLURM_NTASKS_PER_NODE"])
        if tasks_per_node * gpus_per_task > gpus_per_node:
            raise RuntimeError("the tasks of a node use more GPUs than it has")
        if sum(jobs.values()) != assigned:
            raise RuntimeError("the jobs have other than the assigned number of tasks")
        self._jobs = dict(sorted(jobs.items()))
        self._port_base = port_base
        self._tasks_per_node = tasks_per_node
        self._gpus_per_task = gpus_per_task
        self._auto_set_gpu = auto_set_gpu
        self.task_type: str | None = None
        self.task_id: int | None = None
        self.rpc_layer = rpc_layer

    def cluster_spec(self) -> Any:
        """The ClusterSpec of the jobs; this task's job and number are known from then on."""
        shown = subprocess.run(["scontrol", "show", "hostname"], capture_output=True, check=True, text=True)
        places = [
            (f"{host}:{self._port_base + local}", local)
            for host in shown.stdout.split()
            for local in range(self._tasks_per_node)
        ]
        cluster: dict[str, list[str]] = {}
        first = 0
        for job, count in self._jobs.items():
            cluster[job] = [address for address, _ in places[first : first + count]]
            if first <= self._rank < first + count:
                self.task_type, self.task_id = job, self._rank - first
            first += count
        if self._auto_set_gpu:
            start = places[self._rank][1] * self._gpus_per_task
            flags.show_gpus(range(start, start + self._gpus_per_task))
        return tf.train.ClusterSpec(cluster)

    def get_task_info(self) -> tuple[str | None, int | None]:
        """This task's job and number, once `cluster_spec` was asked; before that None for both."""
        return self.task_type, self.task_id

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The target of a session at a task, by default this one; "" if that is not known yet."""
        job = self.task_type if task_type is None else task_type
        number = self.task_id if task_id is None else task_id
        if job is None or number is None:
            return ""
        return self._address(job, number, rpc_layer or self.rpc_layer)

    @property
    def environment(self) -> str:
        """An empty string."""
        return ""

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """The GPUs of a task."""
        return {"GPU": self._gpus_per_task}
