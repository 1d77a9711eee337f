"""Collective operations of the tasks of a cluster: one task, the *leader*, says who meets whom.

All offers go to the leader (`Collectives` of its server), over the direct connections; small values go with
them, and the leader sends the results back. Large ones stay where they are: the leader tells their members
only that they meet, and they exchange the values themselves (`collective_exchange.py`).

A step that fails is told to the leader, and so to the steps that have met it; a task whose connection breaks
has all its steps failed. A leader that is not there yet is waited for, as long as the step does.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from flowstone.distributed.links.collective_exchange import Exchange, Invitation, Inviter
from flowstone.distributed.links.neighbours import error_of_text, error_text
from flowstone.distributed.task_names import task_name
from flowstone.distributed.wire.frames import COLLECT
from flowstone.distributed.wire.tensor_codec import pack, unpack
from flowstone.framework import errors
from flowstone.framework.graphs.device_name import DeviceSpec
from flowstone.framework.process import logging as log
from flowstone.ops.collectives.offers import Offer
from flowstone.runtime.steps.collective_groups import Meet
from flowstone.runtime.steps.collectives import Collectives, Done

__all__ = ["ClusterCollectives", "LeaderLink", "LeadingCollectives", "TaskCollectives", "leader_of"]

_PATIENCE_S = 0.2  # between attempts to reach the leader
_FIELDS = ("kind", "group", "size", "instance", "member", "node", "dtype", "dims", "merge", "gpu")


class LeaderLink(Protocol):
    """The leader, as another task reaches it (`Neighbour`)."""

    def connect(self) -> bool:
        """Whether there is a direct connection, made if it can be."""

    def collect(self, text: str, parts: Sequence[Any], done: Callable[..., None]) -> None:
        """Asks the leader; later calls ``done((text, payload), None)``, or ``done(None, error)`` if the
        connection breaks."""

    def tell_leader(self, text: str) -> None:
        """Tells the leader something that has no answer, if there is a connection."""


class LeadingCollectives(Collectives):
    """The collective operations that this task leads, for itself and for others."""

    def __init__(self, task: str, exchange: Exchange, inviter: Inviter) -> None:
        super().__init__(task)
        self._exchange, self._inviter = exchange, inviter

    def asked(self, connection: Any, text: str, payload: Any, answer: Callable[..., None]) -> None:
        """Does what another task wants; ``answer(text, parts)`` replies to its request."""
        try:
            wanted = json.loads(text)
            ended = [(connection, int(each)) for each in wanted.get("ended", ())]
            step = connection, int(wanted["step"])
            offer = None if "failed" in wanted or "broke" in wanted else _read_offer(wanted, payload)
        except (ValueError, KeyError, TypeError, AttributeError, errors.OpError) as error:
            log.warning(
                "A request of %s about collective operations is malformed: %s", connection.task, error
            )
            answer(json.dumps({"error": error_text(_malformed(error))}), ())
            return
        self._ended.extend(ended)
        if wanted.get("begins"):
            self.begin_program(connection.task)
        if "broke" in wanted:
            self._inviter.broke(str(wanted["broke"]))
        elif offer is None:
            self._fail(step, error_of_text(str(wanted["failed"])))
        else:
            self._offer(step, partial(_answered, answer), offer, connection.task)

    def lost(self, task: str) -> None:
        """The connection to a task broke."""
        self._inviter.lost(task)
        with self._lock:
            found = self._groups.lost(task, errors.UnavailableError(None, None, f"{task} is gone"))
        self._follow(found)

    def _offer(self, number: Any, report: Done, offer: Offer, task: str = "") -> None:
        if not task:
            offer = self._exchange.offered(offer)
        super()._offer(number, report, offer, task)

    def _meet(self, meeting: Meet) -> None:
        is_here = not any(isinstance(ticket, partial) for ticket in meeting.tickets)
        if is_here or not meeting.offers[0].stays:
            super()._meet(meeting)
            return
        try:
            invitations = self._inviter.invitations(meeting.offers)
        except (OSError, RuntimeError) as fault:
            error = errors.UnavailableError(None, None, f"{self.task} cannot have members meet: {fault}")
            for ticket in meeting.tickets:
                self._tell(ticket, None, error)
            return
        for ticket, offer, invitation in zip(meeting.tickets, meeting.offers, invitations):
            if isinstance(ticket, partial):
                ticket(invitation, None)  # to another task
            else:
                self._exchange.run(invitation, offer, ticket)


def _answered(answer: Callable[..., None], found: Any, error: BaseException | None) -> None:
    """Replies with a result, an invitation or an error; the task may be gone."""
    with contextlib.suppress(errors.UnavailableError):
        if error is not None:
            answer(json.dumps({"error": error_text(error)}), ())
        elif isinstance(found, Invitation):
            answer(json.dumps({"invitation": found._asdict()}), ())
        else:
            answer("{}", pack(found))


def _malformed(error: BaseException) -> errors.OpError:
    return errors.InvalidArgumentError(None, None, f"The request is malformed: {error}")


def _read_offer(wanted: Mapping[str, Any], payload: Any) -> Offer:
    """The offer of a request. ValueError, KeyError, TypeError for a malformed one."""
    fields = {name: wanted[name] for name in _FIELDS}
    for name in ("kind", "member", "node", "dtype", "merge", "gpu"):
        if not isinstance(fields[name], str):
            raise TypeError(f"{name} is no text")
    size = int(fields.pop("size"))
    dims = tuple(int(n) for n in fields.pop("dims"))
    group, instance = int(fields.pop("group")), int(fields.pop("instance"))
    value = unpack(payload)[0] if wanted["has_value"] else None
    return Offer(
        group=group, instance=instance, size=size, dims=dims, is_mean=bool(wanted["is_mean"]),
        is_source=bool(wanted["is_source"]),
        stays=bool(wanted["stays"]), value=value, **fields,
    )  # fmt: skip


class ClusterCollectives(Collectives):
    """The collective operations of a task that another one leads. `local`: those of this task alone."""

    def __init__(self, task: str, link: LeaderLink, exchange: Exchange, local: Collectives) -> None:
        super().__init__(task)
        self._link, self._exchange, self.local = link, exchange, local
        self._waiting: dict[int, dict[Done, None]] = {}
        self._unsent: deque[tuple[int, Done, Offer]] = deque()
        self._has_unsent = threading.Event()
        self._sender: threading.Thread | None = None
        self._is_over = False
        self._begins = False  # the leader is still to hear that a session has begun
        self._has_met = False  # an operation has been made since the leader was lost the last time
        self._loss: errors.OpError | None = None  # which the next offer is to hear of

    def begin_program(self, task: str = "") -> None:
        self._begins, self._loss = True, None

    def lost_leader(self) -> None:
        """The connection to the leader broke. Who waits hears of it by the answer; if nobody does, the next
        offer, which would else wait for a leader that has begun anew."""
        if self._has_met:
            self._has_met = False
            self._loss = errors.UnavailableError(
                None, None, f"The leader of {self.task}'s collectives is gone"
            )

    def end(self, error: errors.OpError) -> None:
        self._is_over = True
        self._has_unsent.set()
        for number in list(self._waiting):
            self._fail(number, error)

    def __len__(self) -> int:
        return len(self._waiting)

    def _offer(self, number: Any, report: Done, offer: Offer, task: str = "") -> None:
        with self._lock:
            self._waiting.setdefault(number, {})[report] = None
        loss, self._loss = self._loss, None
        if loss is not None:
            self._settle(number, report, None, loss)
        elif self._unsent or not self._is_reachable():
            self._unsent.append((number, report, offer))
            self._send_later()
        else:
            self._send(number, report, offer)

    def _is_reachable(self) -> bool:
        return self._link.connect()

    def _send(self, number: int, report: Done, offer: Offer) -> None:
        offer = self._exchange.offered(offer)
        has_value = offer.value is not None and not offer.stays
        words = {name: getattr(offer, name) for name in (*_FIELDS, "is_mean", "is_source", "stays")}
        begins, self._begins = self._begins, False
        words.update(step=number, has_value=has_value, ended=self._over(), begins=begins)
        parts = pack([offer.value.cpu()]) if has_value else []
        try:
            self._link.collect(json.dumps(words), parts, partial(self._answered, number, report, offer))
        except errors.OpError as error:
            self._settle(number, report, None, error)

    def _over(self) -> list[int]:
        found = []
        while self._ended:
            found.append(self._ended.popleft())
        with self._lock:
            for number in found:
                self._waiting.pop(number, None)
        return found

    def _answered(self, number: int, report: Done, offer: Offer, found: Any, error: Any) -> None:
        """The leader's answer: a result, an invitation to exchange values, an error."""
        if error is not None:
            self._has_met, self._loss = False, None
            self._settle(number, report, None, error)
            return
        text, payload = found
        self._has_met = True
        try:
            words = json.loads(text)
            if "error" in words:
                self._settle(number, report, None, error_of_text(words["error"]))
            elif "invitation" in words:
                invitation = Invitation(**words["invitation"])
                self._exchange.run(invitation, offer, partial(self._settle, number, report))
            else:
                self._settle(number, report, tuple(unpack(payload)), None)
        except (ValueError, TypeError, KeyError, errors.OpError) as fault:
            self._settle(number, report, None, errors.DataLossError(None, None, f"A damaged answer: {fault}"))

    def _settle(self, number: int, report: Done, outputs: Any, error: BaseException | None) -> None:
        with self._lock:
            self._waiting.get(number, {}).pop(report, None)
        report(outputs, error)

    def _fail(self, number: Any, error: errors.OpError) -> None:
        with self._lock:
            known = self._waiting.get(number)
            reports = [] if known is None else list(known)
            if known is not None:
                known.clear()
        if known is None:
            return
        for report in reports:
            report(None, error)
        self._link.tell_leader(json.dumps({"step": number, "failed": error_text(error)}))

    def tell_broken(self, communicator: str) -> None:
        """Has the leader use a communicator no more, if it is one of its own."""
        self._link.tell_leader(json.dumps({"step": 0, "broke": communicator}))

    # ---- a leader that is not there yet

    def _send_later(self) -> None:
        with self._lock:
            if self._sender is None:
                self._sender = threading.Thread(
                    target=self._keep_sending, name="flowstone collectives", daemon=True
                )
                self._sender.start()
        self._has_unsent.set()

    def _keep_sending(self) -> None:
        pause = threading.Event()
        while not self._is_over:
            self._has_unsent.wait()
            self._has_unsent.clear()
            while self._unsent and not self._is_over:
                if not self._is_reachable():
                    pause.wait(_PATIENCE_S)
                    continue
                number, report, offer = self._unsent.popleft()
                if report in self._waiting.get(number, ()):  # else its step has ended
                    self._send(number, report, offer)
                del report, offer


class TaskCollectives:
    """All collective operations of the task `task` of a cluster: those that it leads, and those that others
    do. `links`: the other tasks; `host`: where this one listens; `default_config`: its server's;
    `is_usable`: whether large values may leave by ways of their own."""

    def __init__(
        self,
        task: str,
        host: str,
        links: Mapping[str, LeaderLink],
        default_config: Any,
        is_usable: bool = True,
    ) -> None:
        self._task, self._links, self._default_config = task, links, default_config
        inviter = Inviter(host)
        self._exchange = Exchange(host, self._broke, is_usable)
        self._own = LeadingCollectives(task, self._exchange, inviter)
        self._inviter = inviter
        self._others: dict[str, ClusterCollectives] = {}
        self._lock = threading.Lock()

    def of(self, config: Any) -> Collectives:
        """Those of a session with this ConfigProto. InvalidArgumentError if its leader is not there."""
        self._own.begin_program()
        default = self._default_config.experimental.collective_group_leader
        leader = leader_of(config, [self._task, *self._links], default)
        if leader == self._task:
            return self._own
        with self._lock:
            if leader not in self._others:
                self._others[leader] = ClusterCollectives(
                    self._task, self._links[leader], self._exchange, self._own
                )
            found = self._others[leader]
        found.begin_program()
        return found

    def asked(self, connection: Any, number: int, text: str, payload: Any) -> None:
        """What another task wants of this one as the leader."""

        def answer(words: str, parts: Sequence[Any]) -> None:
            if number:
                connection.send(COLLECT, number, words, parts)

        self._own.asked(connection, text, payload, answer)

    def lost(self, task: str) -> None:
        """The connection to a task broke."""
        self._own.lost(task)
        if task in self._others:
            self._others[task].lost_leader()

    def end(self) -> None:
        """Ends all that waits."""
        error = errors.CancelledError(None, None, "The server is shutting down.")
        for each in (self._own, *self._others.values()):
            each.end(error)
        self._exchange.end()

    def _broke(self, communicator: str) -> None:
        self._inviter.broke(communicator)
        for each in list(self._others.values()):
            each.tell_broken(communicator)


def leader_of(config: Any, tasks: Iterable[str], default: str = "") -> str:
    """The task that leads: the one that a session's configuration names
    (``experimental.collective_group_leader``), or `default`; else the first of the jobs chief, master, worker
    or any other.

    InvalidArgumentError for one that the cluster does not have.
    """
    tasks = list(tasks)
    named = (config.experimental.collective_group_leader if config is not None else "") or default
    if named:
        spec = DeviceSpec.from_string(named)
        name = task_name(spec.job or "", spec.task or 0)
        if name not in tasks:
            raise errors.InvalidArgumentError(
                None, None, f"collective_group_leader is {named}, but the cluster has {', '.join(tasks)}"
            )
        return name
    for job in ("chief", "master", "worker"):
        if task_name(job, 0) in tasks:
            return task_name(job, 0)
    return min(tasks)
