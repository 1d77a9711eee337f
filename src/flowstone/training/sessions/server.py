"""`tf.train.Server`: a task of a cluster, in this process."""

from __future__ import annotations

from typing import Any

from flowstone.distributed.links.group_transfers import PROTOCOLS
from flowstone.distributed.servers.server import TaskServer
from flowstone.framework.errors import NotFoundError
from flowstone.io.proto import tensorflow_server_pb2
from flowstone.training.sessions.cluster_spec import ClusterSpec

__all__ = ["Server"]

_PROTOCOLS = ("grpc", *PROTOCOLS)


class Server:
    """One task of a cluster: sessions of this and other processes use its devices and keep their state in it.

        cluster = tf.train.ClusterSpec({"ps": ["host0:2222"], "worker": ["host1:2222", "host2:2222"]})
        server = tf.train.Server(cluster, job_name="worker", task_index=1)
        with tf.Session(server.target) as session: ...

    A cluster whose address for this task is on ``localhost`` is listened for on loopback alone; any other
    address on all interfaces.

    Args:
        server_or_cluster_def: a ServerDef, a ClusterDef, a ClusterSpec or a dict of jobs.
        job_name, task_index: this task; needed unless the ServerDef says it, or the cluster (for the index:
        the job) has one task alone. protocol: "grpc" (the default); with "grpc+gdr", "grpc+verbs" or
        "grpc+mpi" large values go from a GPU of one task to a GPU of another through torch.distributed
        (NCCL), if both tasks say so.
        config: the ConfigProto of sessions that have none, and of this task's devices.
        start: whether it answers at once; else from `start` on.

    Raises ValueError for a task that is not named, InternalError for one that the cluster does not have,
    UnknownError for an address that is in use, NotFoundError for another protocol, TypeError for what is no
    cluster.
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
    ) -> None:
        self._server_def = _server_def(server_or_cluster_def, job_name, task_index, protocol, config)
        self._server = TaskServer(self._server_def)
        if start:
            self.start()

    def start(self) -> None:
        """Begins to answer; more calls do nothing."""
        self._server.start()

    def join(self) -> None:
        """Waits until the server ends, which is when the process does."""
        self._server.join()

    @property
    def server_def(self) -> Any:
        """The ServerDef message."""
        return self._server_def

    @property
    def target(self) -> str:
        """What a `tf.Session` connects to."""
        return self._server.target

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """A cluster of one task (job "local") on a free port of this machine."""
        return Server({"local": ["localhost:0"]}, protocol="grpc", config=config, start=start)


def _server_def(
    given: Any, job_name: str | None, task_index: int | None, protocol: str | None, config: Any
) -> Any:
    """The ServerDef of a constructor's arguments."""
    message = tensorflow_server_pb2.ServerDef()
    if getattr(getattr(given, "DESCRIPTOR", None), "name", "") == "ServerDef":
        message.MergeFromString(given.SerializeToString())
    else:
        try:
            message.cluster.CopyFrom(ClusterSpec(given).as_cluster_def())
        except TypeError:
            raise TypeError(
                "Could not convert `server_or_cluster_def` to a `tf.train.ServerDef` or "
                "`tf.train.ClusterSpec`."
            ) from None
    tasks = [(job.name, index) for job in message.cluster.job for index in job.tasks]
    message.job_name = job_name or message.job_name or (tasks[0][0] if len(tasks) == 1 else "")
    if not message.job_name:
        raise ValueError("Must specify an explicit `job_name`.")
    if task_index is not None:
        message.task_index = task_index
    elif not hasattr(given, "task_index"):
        of_job = [index for name, index in tasks if name == message.job_name]
        if len(of_job) != 1:
            raise ValueError("Must specify an explicit `task_index`.")
        message.task_index = of_job[0]
    message.protocol = protocol or message.protocol or "grpc"
    if message.protocol not in _PROTOCOLS:
        raise NotFoundError(
            None, None, f"No server factory registered for the protocol {message.protocol!r}; use 'grpc'."
        )
    if config is not None:
        message.default_session_config.MergeFrom(config)
    return message
