"""Devices for between-graph replication: variables on parameter servers, all else on the worker.

`replica_device_setter` gives a device function for `tf.device`. Which server a variable goes to is decided by
a strategy, a function of the operation: round robin, or `GreedyLoadBalancingStrategy`, which takes the server
with the least load so far.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from flowstone.framework.graphs.device_name import DeviceSpec
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.process.logging import warning
from flowstone.framework.types.shape import fully_known

__all__ = ["GreedyLoadBalancingStrategy", "RandomStrategy", "byte_size_load_fn", "replica_device_setter"]

STANDARD_PS_OPS = (
    "Variable",
    "VariableV2",
    "AutoReloadVariable",
    "MutableHashTable",
    "MutableHashTableV2",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "VarHandleOp",
    "ResourceConditionalAccumulator",
)


class _RoundRobinStrategy:
    """The servers in turn."""

    def __init__(self, tasks: int) -> None:
        self._tasks, self._next = tasks, 0

    def __call__(self, op: Any) -> int:
        task = self._next
        self._next = (task + 1) % self._tasks
        return task


class GreedyLoadBalancingStrategy:
    """A strategy that gives each operation to the server with the least load, the first of several.

    `num_tasks`: how many servers there are; `load_fn(op)` gives the load of an operation as a number.
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[Any], float]) -> None:
        self._num_tasks, self._load_fn = num_tasks, load_fn
        self._loads = np.zeros(num_tasks)

    def __call__(self, op: Any) -> int:
        task = int(np.argmin(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


class RandomStrategy:
    """A strategy that gives each operation to a random server; the same for the same `seed`."""

    def __init__(self, num_ps: int, seed: int = 0) -> None:
        self._num_tasks, self._random = num_ps, random.Random(seed)

    def __call__(self, op: Any) -> int:
        return self._random.randrange(self._num_tasks)


def byte_size_load_fn(op: Operation) -> int:
    """The bytes of a variable, as the load of its operation; one element's where the shape is not known."""
    output = op.outputs[0]
    dtype, dims = output.dtype.base_dtype, output.dims
    if op.declaration.role == "variable":
        dtype, dims = op.attributes["dtype"], op.attributes["shape"]
    sizes = fully_known(dims)
    count = 1 if sizes is None else math.prod(sizes)
    return count * int(dtype.size)


def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str | None = "/job:ps",
    worker_device: str | None = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Iterable[str] | None = None,
    ps_strategy: Callable[[Any], int] | None = None,
) -> Callable[[Any], str] | None:
    """A device function: operations of the types `ps_ops` on parameter servers, others on the worker.

    Args:
        ps_tasks: the number of servers; without any the result is None.
        ps_device: the servers' device; the task is added. None or "": variables are with the worker.
        worker_device: the worker's device.
        merge_devices: whether what an operation says of its device completes that; otherwise it replaces it.
        cluster: names the servers instead: a dict of a job's addresses, a ClusterDef, or what has `as_dict`.
        ps_ops: types of operations; by default those that hold variables and tables.
        ps_strategy: gives the number of the server for an operation; by default they take turns.

    Raises:
        TypeError: `cluster` or `ps_strategy` is of another type.
    """
    if cluster is not None:
        job = DeviceSpec.from_string(ps_device).job if ps_device else None
        ps_tasks = len(_jobs(cluster).get(job, ()))
    if ps_tasks == 0:
        return None
    strategy = _RoundRobinStrategy(ps_tasks) if ps_strategy is None else ps_strategy
    if not callable(strategy):
        raise TypeError("ps_strategy must be callable")
    if not merge_devices:
        warning("DEPRECATION: It is recommended to set merge_devices=true in replica_device_setter")
    kinds = frozenset(STANDARD_PS_OPS if ps_ops is None else ps_ops)
    return _Chooser(ps_device or "", worker_device or "", merge_devices, kinds, strategy)


class _Chooser:
    def __init__(
        self,
        ps_device: str,
        worker_device: str,
        merges: bool,
        ps_ops: frozenset[str],
        strategy: Callable[[Any], int],
    ) -> None:
        self._server, self._worker = DeviceSpec.from_string(ps_device), DeviceSpec.from_string(worker_device)
        self._merges, self._ps_ops, self._strategy = merges, ps_ops, strategy
        self._has_server = bool(ps_device)

    def __call__(self, op: Any) -> str:
        if not self._merges and op.device:
            return str(op.device)
        current = DeviceSpec.from_string(op.device)
        if not (self._has_server and op.type in self._ps_ops):
            return self._worker.make_merged_spec(current).to_string()
        server = self._server
        if server.job and current.job in (None, server.job):
            server = server.replace(task=self._strategy(op))
        return server.make_merged_spec(current).to_string()


def _jobs(cluster: Any) -> dict[Any, Any]:
    """job -> its tasks, of any description of a cluster."""
    if isinstance(cluster, dict):
        return cluster
    if hasattr(cluster, "as_dict"):
        return dict(cluster.as_dict())
    if type(cluster).__name__ == "ClusterDef":
        return {job.name: list(job.tasks) for job in cluster.job}
    raise TypeError(
        "`cluster` must be a dictionary mapping one or more job names to lists of network addresses, or a "
        "`ClusterDef` protocol buffer"
    )
