"""Large values of collective operations: exchanged by their members themselves, through torch.distributed.

The leader of the cluster's collective operations (`collective_links.py`) invites the members: to a
*communicator* of these members, each with a rank, and to a turn in it. A communicator is a process group
(`process_groups.py`), which its members form when they are first invited; they find each other at a store in
the leader's process. Operations of one communicator run one after the other, in the order of their turns, on
a thread of its own, so no step's thread waits. In groups of NCCL values stay on their GPUs, to others they go
through the host.

A communicator that fails, since a member is gone, is used no more; the leader then makes another one, of
Gloo if it was one of NCCL.
Where torch has no Gloo, `Exchange.wants` is False for all, and values go to the leader and back.
"""

from __future__ import annotations

import datetime
import hashlib
import heapq
import itertools
import math
import secrets
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed
from torch._C import _InferenceMode

from flowstone.distributed.links.process_groups import (
    GLOO,
    NCCL,
    backend_for,
    finish,
    has_gloo,
    has_nccl,
    process_group,
)
from flowstone.distributed.task_names import task_of
from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.ops.collectives.offers import BROADCAST, EXCHANGE, GATHER, REDUCE, SCATTER, Offer
from flowstone.runtime.steps.collective_values import divided
from flowstone.runtime.steps.collectives import Done

__all__ = ["Exchange", "Invitation", "Inviter", "is_large", "itself"]

dist: Any = torch.distributed  # whose annotations lack much of what it has

_LARGE_BYTES = 1 << 18  # below, the way to the leader and back is shorter
_HOST = torch.device("cpu")
_MEETING = datetime.timedelta(seconds=60)  # for members to form a group


class Invitation(NamedTuple):
    """To take part in an operation: the communicator (its members' name, and a number) and the address of its
    store, this member's rank among `size`, the turn, the rank of a broadcast's source, and the kind of
    its process group."""

    communicator: str
    host: str
    port: int
    rank: int
    size: int
    turn: int
    source: int = 0
    backend: str = GLOO


def is_large(offer: Offer) -> bool:
    """Whether a value of this shape and type is worth a process group."""
    return math.prod(offer.dims) * (dtypes.as_dtype(offer.dtype).size or 0) >= _LARGE_BYTES


def itself(host: str) -> str:
    """The address at which a process can be reached that listens at `host`."""
    return "127.0.0.1" if host in ("localhost", "127.0.0.1", "[::1]", "") else host.strip("[]")


# ---- the leader's side


class Inviter:
    """Who is in which communicator; has the store at which members find each other. `host`: of this task."""

    def __init__(self, host: str) -> None:
        self._host = itself(host)
        self._known: dict[tuple[str, ...], tuple[str, Any]] = {}  # identifiers and turns, by way and members
        self._failed: set[tuple[str, ...]] = set()  # members for whom NCCL has failed
        self._store: Any = None
        self._lock = threading.Lock()

    def invitations(self, offers: Sequence[Offer]) -> list[Invitation]:
        """Those of the members of a complete operation, in the order of their ranks."""
        members = tuple([offer.member for offer in offers])
        backend = GLOO if members in self._failed else backend_for([offer.gpu for offer in offers])
        way = (backend, *members)
        source = next((rank for rank, offer in enumerate(offers) if offer.is_source), 0)
        with self._lock:
            if self._store is None:
                self._store = _listening_store(self._host)
            if way not in self._known:
                named = hashlib.sha256("\n".join(way).encode()).hexdigest()[:16]
                self._known[way] = f"{named}:{secrets.token_hex(8)}", itertools.count()
            name, turns = self._known[way]
            turn, port = next(turns), self._store.port
        return [
            Invitation(name, self._host, port, rank, len(members), turn, source, backend)
            for rank in range(len(members))
        ]

    def lost(self, task: str) -> None:
        """A task is gone, and with it the communicators that it is in."""
        with self._lock:
            for way in [key for key in self._known if any(task_of(each) == task for each in key[1:])]:
                del self._known[way]

    def broke(self, communicator: str) -> None:
        """A communicator is used no more."""
        with self._lock:
            for way in [key for key, (name, _) in self._known.items() if name == communicator]:
                del self._known[way]
                if way[0] == NCCL:
                    self._failed.add(way[1:])


def _listening_store(host: str) -> Any:
    listening = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    port = listening.getsockname()[1]
    return dist.TCPStore(
        host, port, is_master=True, wait_for_workers=False, master_listen_fd=listening.detach()
    )


# ---- each member's side


class Exchange:
    """The communicators that this task is in. `host`: of this task; `broke(communicator)` is called for one
    that failed. `is_usable`: whether values may leave by these ways at all."""

    def __init__(self, host: str, broke: Callable[[str], None], is_usable: bool = True) -> None:
        self._host, self._broke = itself(host), broke
        self._is_usable = is_usable and has_gloo()
        self._communicators: dict[tuple[str, int], _Communicator] = {}
        self._lock = threading.Lock()

    def offered(self, offer: Offer) -> Offer:
        """The offer with what the members must agree on: whether its value stays here, and on which GPU."""
        return offer._replace(stays=self.wants(offer), gpu=offer.gpu if has_nccl() else "")

    def wants(self, offer: Offer) -> bool:
        """Whether the members of this operation should exchange their values themselves."""
        if not self._is_usable:
            return False
        return is_large(offer)

    def run(self, invitation: Invitation, offer: Offer, report: Done) -> None:
        """Takes part in an operation. Later ``report((result,), None)`` or ``report(None, error)``."""
        key = invitation.communicator, invitation.rank
        with self._lock:
            found = self._communicators.get(key)
            replaced: list[_Communicator] = []
            if found is None:
                like = [other for other in self._communicators if _is_like(other, key)]
                replaced = [self._communicators.pop(other) for other in like]
                found = self._communicators[key] = _Communicator(invitation, self._host, self._failed)
        for each in replaced:
            each.end()
        found.add(invitation, offer, report)

    def drop(self, communicator: str) -> None:
        """Another member says that a communicator is used no more."""
        with self._lock:
            found = [
                self._communicators.pop(key) for key in list(self._communicators) if key[0] == communicator
            ]
        for each in found:
            each.end()

    def end(self) -> None:
        """Ends all communicators."""
        with self._lock:
            found, self._communicators = list(self._communicators.values()), {}
        for each in found:
            each.end()

    def _failed(self, communicator: str, rank: int) -> None:
        with self._lock:
            self._communicators.pop((communicator, rank), None)
        self._broke(communicator)


def _is_like(one: tuple[str, int], other: tuple[str, int]) -> bool:
    """Whether two communicators have the same members, of whom this is the same one."""
    return one[1] == other[1] and one[0].partition(":")[0] == other[0].partition(":")[0]


class _Communicator:
    """A process group and the thread that runs its operations."""

    def __init__(self, first: Invitation, host: str, failed: Callable[[str, int], None]) -> None:
        self._first, self._host, self._failed = first, host, failed
        self._waiting: list[tuple[int, int, Invitation, Offer, Done]] = []
        self._changed = threading.Condition()
        self._turn = 0
        self._error: errors.OpError | None = None
        threading.Thread(target=self._run, name="flowstone exchange", daemon=True).start()

    def add(self, invitation: Invitation, offer: Offer, report: Done) -> None:
        """An operation that is to be run when its turn comes."""
        with self._changed:
            error = self._error
            if error is None:
                heapq.heappush(self._waiting, (invitation.turn, id(report), invitation, offer, report))
                self._changed.notify()
        if error is not None:
            report(None, error)

    def end(self) -> None:
        """Runs no more."""
        self._end(errors.UnavailableError(None, None, "The exchange of values has ended"))

    def _end(self, error: errors.OpError) -> None:
        with self._changed:
            self._error = self._error or error
            waiting, self._waiting = self._waiting, []
            self._changed.notify()
        for _, _, _, _, report in waiting:
            report(None, error)

    def _run(self) -> None:
        group = None
        while True:
            with self._changed:
                self._changed.wait_for(self._is_ready)
                if self._error is not None:
                    break
                _, _, invitation, offer, report = heapq.heappop(self._waiting)
                self._turn += 1
            try:
                with _InferenceMode(True):
                    if group is None:
                        group = _Group(self._first, self._host, self._is_over)
                    result = _exchanged(group, invitation, offer)
            except Exception as fault:
                error = errors.UnavailableError(
                    None, None, f"An exchange of values among {invitation.size} members failed: {fault}"
                )
                self._end(error)
                self._failed(self._first.communicator, self._first.rank)
                report(None, error)
            else:
                report((result,), None)
                del result
            del invitation, offer, report

    def _is_over(self) -> bool:
        return self._error is not None

    def _is_ready(self) -> bool:
        return self._error is not None or bool(self._waiting and self._waiting[0][0] == self._turn)


class _Group:
    """A process group, and where the values that it exchanges are."""

    def __init__(self, first: Invitation, host: str, is_over: Callable[[], bool]) -> None:
        store = dist.TCPStore(first.host, first.port, is_master=False, timeout=_MEETING)
        prefixed = dist.PrefixStore(first.communicator, store)
        self._backend, self._is_over = first.backend, is_over
        self._processes = process_group(first.backend, prefixed, first.rank, first.size, host)

    def run(self, operation: str, *arguments: Any) -> None:
        """Runs an operation of torch's process groups to its end."""
        work = getattr(self._processes, operation)(*arguments)
        finish(self._processes, self._backend, work, self._is_over)

    def place(self, offer: Offer) -> torch.device:
        """Where the values of an operation are exchanged."""
        device: torch.device = offer.device if self._backend == NCCL else _HOST
        return device

    def own(self, offer: Offer) -> torch.Tensor:
        """The offered value there, in memory of its own."""
        value: torch.Tensor = offer.value.to(self.place(offer), copy=True).contiguous()
        return value


# ---- operations


def _exchanged(group: _Group, invitation: Invitation, offer: Offer) -> torch.Tensor:
    result: torch.Tensor = _EXCHANGES[offer.kind](group, invitation, offer)
    return result


def _reduced(group: _Group, invitation: Invitation, offer: Offer) -> torch.Tensor:
    total = group.own(offer)
    options = dist.AllreduceOptions()
    options.reduceOp = getattr(dist.ReduceOp, offer.merge.upper())
    group.run("allreduce", [total], options)
    return divided(total, offer)


def _scattered(group: _Group, invitation: Invitation, offer: Offer) -> torch.Tensor:
    parts: Sequence[torch.Tensor] = _reduced(group, invitation, offer).chunk(invitation.size)
    return parts[invitation.rank].clone()


def _gathered(group: _Group, invitation: Invitation, offer: Offer) -> torch.Tensor:
    own = offer.value.to(group.place(offer)).contiguous()
    whole: torch.Tensor = own.new_empty((own.shape[0] * invitation.size, *own.shape[1:]))
    group.run("allgather", [list(whole.chunk(invitation.size))], [own])
    return whole


def _broadcast(group: _Group, invitation: Invitation, offer: Offer) -> torch.Tensor:
    if offer.is_source:
        value = group.own(offer)
    else:
        dtype = dtypes.as_dtype(offer.dtype).torch
        value = torch.empty(offer.dims, dtype=dtype, device=group.place(offer))
    options = dist.BroadcastOptions()
    options.rootRank, options.rootTensor = invitation.source, 0
    sent = value.view(torch.uint8) if value.dtype == torch.bool else value  # Gloo has no bool
    group.run("broadcast", [sent], options)
    return value


def _swapped(group: _Group, invitation: Invitation, offer: Offer) -> torch.Tensor:
    own = offer.value.to(group.place(offer)).contiguous()
    given: torch.Tensor = torch.empty_like(own)
    group.run("alltoall_base", given, own, [], [], dist.AllToAllOptions())
    return given


_EXCHANGES: dict[str, Callable[[_Group, Invitation, Offer], torch.Tensor]] = {
    REDUCE: _reduced,
    SCATTER: _scattered,
    GATHER: _gathered,
    BROADCAST: _broadcast,
    EXCHANGE: _swapped,
}
