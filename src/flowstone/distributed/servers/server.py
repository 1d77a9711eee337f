"""`Server`: one task of a cluster, with its master and its worker, behind one address."""

from __future__ import annotations

import contextlib
import ipaddress
import threading
import time
from collections import defaultdict, deque
from typing import Any

import torch

from flowstone.distributed.links.collective_links import TaskCollectives
from flowstone.distributed.links.group_transfers import PROTOCOLS, GroupTransfers, identities
from flowstone.distributed.links.neighbours import ADDRESS, CLOCK, Neighbour, error_of_text, error_text
from flowstone.distributed.links.process_groups import has_gloo
from flowstone.distributed.links.worker_links import LocalLink, RemoteLink, WorkerLink
from flowstone.distributed.masters.master import Master
from flowstone.distributed.masters.own_servers import masters
from flowstone.distributed.servers.explaining import ExplainService
from flowstone.distributed.servers.services import MasterService, WorkerService, threads
from flowstone.distributed.servers.task_threads import share_of_cores
from flowstone.distributed.task_names import task_name
from flowstone.distributed.wire import frames
from flowstone.distributed.wire.cluster_security import ClusterSecurity, cluster_security
from flowstone.distributed.wire.direct_connections import DirectConnection, DirectListener
from flowstone.distributed.wire.tensor_codec import pack, unpack
from flowstone.distributed.wire.transport import Listener
from flowstone.distributed.workers.step_rendezvous import StepRendezvous
from flowstone.distributed.workers.worker import Worker
from flowstone.framework import errors, flags
from flowstone.io.proto import tensorflow_server_pb2
from flowstone.runtime.plans.session_options import session_devices

__all__ = ["TaskServer"]

_LATE_S = 0.1  # after which a value that was not pushed is asked for


class TaskServer:
    """The server that a ServerDef describes; it answers from `start` on. `security`: who may speak to it; by
    default what the environment says (`cluster_security`).

    InternalError for a job or task that the cluster does not have, UnknownError for an address at which it
    cannot listen, InvalidArgumentError for secrets that cannot be used.
    """

    def __init__(self, server_def: Any, security: ClusterSecurity | None = None) -> None:
        self.server_def = tensorflow_server_pb2.ServerDef.FromString(server_def.SerializeToString())
        addresses = _addresses(self.server_def)
        self.task = task_name(self.server_def.job_name, self.server_def.task_index)
        _check_task(self.server_def)
        security = cluster_security() if security is None else security
        security.check_server()
        self._ended = threading.Event()
        config = self.server_def.default_session_config
        devices = session_devices(config, self.task)
        self._neighbours = {
            task: Neighbour(task, address, self.task, self._lost, security)
            for task, address in addresses.items()
            if task != self.task
        }
        host = addresses[self.task].rpartition(":")[0]
        is_open = not (security.token or security.has_tls)
        self._collectives = TaskCollectives(self.task, host, self._neighbours, config, is_usable=is_open)
        self._worker = Worker(
            self.task,
            devices,
            lambda step: _Others(self, step),
            self._collectives.of,
            _threads(config, addresses, self.task),
        )
        links: dict[str, WorkerLink] = {task: RemoteLink(each) for task, each in self._neighbours.items()}
        links[self.task] = LocalLink(self._worker)
        self.master = Master(self.task, links, config)
        self._transfers = (
            GroupTransfers(host, devices, self._worker.pushed, self._worker.fail)
            if self.server_def.protocol in PROTOCOLS and is_open and has_gloo()
            else None
        )
        where = _listening_address(addresses[self.task], self.server_def.port)
        host = where.rpartition(":")[0].strip("[]")
        gpus = {} if self._transfers is None else identities(devices)
        self._direct = DirectListener(host, self._on_frame, self._on_closed, security, gpus)
        handlers = {
            **MasterService(self.master, self.task).handlers(),
            **WorkerService(self._worker).handlers(),
            **ExplainService(self.master, self._worker).handlers(),
            ADDRESS: self._direct_address,
            CLOCK: self._clock,
        }
        self._listener = Listener(handlers, where, security)
        self._late: deque[tuple[float, str, int, str, StepRendezvous]] = deque()
        self._has_late = threading.Event()
        self._begun: defaultdict[DirectConnection, set[int]] = defaultdict(set)  # steps by their masters
        self._has_started = False

    @property
    def target(self) -> str:
        """What sessions connect to: "grpc://host:port"."""
        host = _addresses(self.server_def)[self.task].rpartition(":")[0] or "localhost"
        return f"grpc://{host}:{self._listener.port}"

    def start(self) -> None:
        """Begins to answer; once more does nothing."""
        if not self._has_started:
            self._has_started = True
            self._direct.start()
            self._listener.start()
            masters[self.target] = self.master
            threading.Thread(target=self._ask_for_late_values, name="flowstone late", daemon=True).start()

    def join(self) -> None:
        """Waits until the server is stopped."""
        while not self._ended.wait(3600.0):
            pass

    def stop(self) -> None:
        """Ends sessions and steps, and answers no more."""
        if self._ended.is_set():
            return
        self._ended.set()
        masters.pop(self.target, None)
        self.master.end()
        self._worker.end()
        self._collectives.end()
        if self._transfers is not None:
            self._transfers.end()
        self._listener.stop()
        self._direct.stop()
        self._has_late.set()
        for neighbour in self._neighbours.values():
            neighbour.close()

    # ---- direct connections

    async def _direct_address(self, request: bytes) -> bytes:
        return self._direct.address()

    async def _clock(self, request: bytes) -> bytes:
        return time.time_ns().to_bytes(8, "little")

    def _on_frame(self, connection: DirectConnection, kind: int, step: int, text: str, payload: Any) -> None:
        if kind == frames.PUSH:
            self._worker.pushed(step, text, unpack(payload)[0])
        elif kind == frames.RUN:
            session, _, graph = text.partition(" ")
            self._begun[connection].add(step)
            if self._worker.is_quick(session, graph):
                self._run(connection, session, graph, step, payload)
            else:
                threads.submit(self._run, connection, session, graph, step, payload)
        elif kind == frames.CLEAN:
            self._begun[connection].discard(step)
            self._worker.clean_up(step)
        elif kind == frames.ABORT:
            self._worker.fail(step, error_of_text(text))
        elif kind == frames.COLLECT:
            self._collectives.asked(connection, step, text, payload)
        elif kind == frames.INVITE and self._transfers is not None:
            self._transfers.invited(self._neighbours[connection.task], step, text)

    def _run(self, connection: DirectConnection, session: str, graph: str, step: int, payload: Any) -> None:
        try:
            values = self._worker.run(session, graph, step, unpack(payload))
            answer = self._packed(session, graph, values)
        except Exception as error:
            kind, text, answer = frames.FAILED, error_text(error), []
        else:
            kind, text = frames.DONE, ""
        if not self._worker.knows(step):
            self._begun[connection].discard(step)
        with contextlib.suppress(errors.UnavailableError):  # the master is gone
            connection.send(kind, step, text, answer)

    def _packed(self, session: str, graph: str, values: Any) -> Any:
        """What a part gives, as parts of a frame. InvalidArgumentError, with the node, for a handle."""
        try:
            return pack(values)
        except errors.InvalidArgumentError:
            for name, value in zip(self._worker.fetched_nodes(session, graph), values):
                try:
                    pack([value])
                except errors.InvalidArgumentError as error:
                    error.node_name = name
                    raise
            raise

    def _on_closed(self, connection: DirectConnection) -> None:
        """A task that connected here is gone: the steps that it was the master of end."""
        self._lost(connection.task)
        error = errors.UnavailableError(None, None, f"The connection to {connection.task}, the master, broke")
        for step in self._begun.pop(connection, ()):
            self._worker.fail(step, error)
            self._worker.clean_up(step)

    def _lost(self, task: str) -> None:
        self._collectives.lost(task)
        if self._transfers is not None:
            self._transfers.lost(task)
        self._worker.lost(task, errors.UnavailableError(None, None, f"The connection to {task} broke"))

    # ---- values of other tasks

    def push(self, task: str, step: int, key: str, value: Any) -> bool:
        """Gives another task a value; False if it has to ask."""
        neighbour = self._neighbours.get(task)
        if neighbour is None:
            return False
        is_sent = (
            self._transfers is not None
            and neighbour.direct() is not None
            and self._transfers.send(neighbour, step, key, value)
        )
        return is_sent or neighbour.push(step, key, value)

    def expect(self, task: str, step: int, key: str, meeting: StepRendezvous) -> None:
        """Sees to it that a value of another task arrives at `meeting`, or its failure."""
        neighbour = self._neighbours.get(task)
        if neighbour is None:
            meeting.failed(key, errors.InternalError(None, None, f"No worker is known for {task}"))
            return
        try:
            is_direct = neighbour.direct() is not None
        except errors.OpError as error:
            meeting.failed(key, error)
            return
        if is_direct:
            self._late.append((time.monotonic() + _LATE_S, task, step, key, meeting))
            self._has_late.set()
        else:
            neighbour.ask(step, key, meeting)

    def _ask_for_late_values(self) -> None:
        """Asks for what was not pushed within a while: the other task may not be able to connect to this
        one."""
        late = self._late
        while not self._ended.is_set():
            self._has_late.wait()
            while late:
                due, task, step, key, meeting = late.popleft()
                if meeting.is_expected(key):
                    time.sleep(max(0.0, due - time.monotonic()))
                    if meeting.is_expected(key):
                        self._neighbours[task].ask(step, key, meeting)
                del meeting
            self._has_late.clear()


class _Others:
    """The other tasks as one step sees them (`Neighbourhood`)."""

    def __init__(self, server: TaskServer, step: int) -> None:
        self._server, self._step = server, step

    def push(self, task: str, key: str, value: Any) -> bool:
        return self._server.push(task, self._step, key, value)

    def expect(self, task: str, key: str, meeting: StepRendezvous) -> None:
        self._server.expect(task, self._step, key, meeting)


def _threads(config: Any, addresses: dict[str, str], task: str) -> int:
    """The intra-op threads of steps here: as the server's ConfigProto or the environment says, else the
    task's share of its host's cores; 0 for as many as torch has."""
    wanted = max(0, int(config.intra_op_parallelism_threads))
    if wanted or flags.threads_are_set():
        return wanted
    return share_of_cores(addresses, task, torch.get_num_threads())


def _addresses(server_def: Any) -> dict[str, str]:
    """The tasks' addresses by their names."""
    return {
        task_name(job.name, index): address
        for job in server_def.cluster.job
        for index, address in sorted(job.tasks.items())
    }


def _check_task(server_def: Any) -> None:
    """InternalError for a job that the cluster does not have, InvalidArgumentError for a task."""
    jobs = {job.name: job.tasks for job in server_def.cluster.job}
    name, task = server_def.job_name, server_def.task_index
    if name not in jobs:
        known = ", ".join(f"{job} ({len(tasks)} tasks)" for job, tasks in jobs.items()) or "no job"
        raise errors.InternalError(None, None, f'Job "{name}" was not defined in cluster, which has {known}')
    if task not in jobs[name]:
        known = ", ".join(map(str, sorted(jobs[name])))
        raise errors.InvalidArgumentError(
            None, None, f'Task {task} was not defined in job "{name}", which has the tasks {known}'
        )


def _listening_address(address: str, port: int) -> str:
    """Where to listen for requests to this address: on loopback alone, if that is what the cluster names."""
    host, _, own_port = address.rpartition(":")
    if host in ("localhost", ""):
        host = "127.0.0.1"
    try:
        is_loopback = ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:  # a name
        is_loopback = False
    return f"{host if is_loopback else '[::]'}:{port or own_port}"
