"""Large values from a GPU of one task to a GPU of another: through torch.distributed, not through the host.

A server whose protocol promises it (``grpc+gdr``, ``grpc+verbs``, ``grpc+mpi``) sends them so. Sender and
receiver are the two members of a communicator (`collective_exchange.py`) in which the sender broadcasts; a
frame `INVITE` tells the receiver its turn. If the communicator fails, so does the step (UnavailableError);
later values go through another one, of Gloo if it was one of NCCL.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

import torch

from flowstone.distributed.links.collective_exchange import Exchange, Invitation, Inviter, is_large
from flowstone.distributed.wire import frames
from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.ops.collectives.offers import BROADCAST, Offer, gpu_identity
from flowstone.runtime.process.device import Device

__all__ = ["PROTOCOLS", "GroupTransfers", "between_gpus", "identities"]

PROTOCOLS = ("grpc+gdr", "grpc+verbs", "grpc+mpi")  # whose large values go from GPU to GPU
Fail = Callable[[int, errors.OpError], None]


class Receiver(Protocol):
    """The task that a value goes to (`Neighbour`)."""

    gpus: dict[str, str]

    def tell(self, kind: int, step: int, text: str = "") -> None:
        """Sends it a frame, if there is a connection."""


def identities(devices: list[Device]) -> dict[str, str]:
    """Which GPUs of all machines' these devices are, by their names."""
    return {each.name: gpu_identity(each.torch) for each in devices if each.torch.type == "cuda"}


def between_gpus(value: torch.Tensor, own: str, other: str) -> bool:
    """Whether a value lies on a GPU and goes to another one, by their identities ("": no GPU). NCCL refuses
    members on the same one."""
    return bool(value.is_cuda and own and other and own != other)


class GroupTransfers:
    """Those of a task. `host`: where it listens; `devices`: its own; `arrived(step, key, value)` is called
    with what comes, `fail(step, error)` for a step whose value does not come or cannot leave."""

    def __init__(
        self, host: str, devices: list[Device], arrived: Callable[[int, str, Any], None], fail: Fail
    ) -> None:
        self._devices = {each.name: each.torch for each in devices}
        self._gpus = identities(devices)
        self._arrived, self._fail = arrived, fail
        self._receivers: dict[str, Receiver] = {}  # and senders, by communicators
        self._broken: set[str] = set()  # communicators in which an exchange failed here
        self._inviter = Inviter(host)
        self._exchange = Exchange(host, self._broke)

    def send(self, receiver: Receiver, step: int, key: str, value: Any) -> bool:
        """Sends a value, of which nothing is needed afterwards; False if it is to go through the host."""
        if not isinstance(value, torch.Tensor):
            return False
        source, _, target, *_ = key.split(";")
        gpus = self._gpus.get(source, ""), receiver.gpus.get(target, "")
        if not between_gpus(value, *gpus):
            return False
        dtype = dtypes.from_torch(value.dtype).name
        offers = [
            Offer(BROADCAST, "", 2, key, device, key, dtype, tuple(value.shape), gpu=gpu)
            for device, gpu in zip((source, target), gpus)
        ]
        if not is_large(offers[0]):
            return False
        own = offers[0]._replace(is_source=True, value=value.clone(), device=value.device)
        try:
            invitations = self._inviter.invitations([own, offers[1]])
        except (OSError, RuntimeError):  # no store can listen here
            return False
        self._receivers[invitations[0].communicator] = receiver
        words = {"key": key, "dtype": dtype, "dims": own.dims, "invitation": invitations[1]._asdict()}

        def report(_: Any, error: errors.OpError | None) -> None:
            if error is not None:
                self._fail(step, error)

        self._exchange.run(invitations[0], own, report)
        receiver.tell(frames.INVITE, step, json.dumps(words))
        return True

    def invited(self, sender: Receiver, step: int, text: str) -> None:
        """Another task sends a value to a step, or says (step 0) that a communicator is used no more.

        ValueError, KeyError, TypeError for a malformed text.
        """
        words = json.loads(text)
        if not step:
            self._forget(str(words["broke"]))
            return
        invitation, key = Invitation(**words["invitation"]), str(words["key"])
        dims, dtype = tuple(int(n) for n in words["dims"]), dtypes.as_dtype(str(words["dtype"]))
        device = self._devices[key.split(";")[2]]
        offer = Offer(BROADCAST, "", 2, key, "", key, dtype.name, dims, device=device)
        if min(dims, default=0) < 0 or not is_large(offer):
            raise ValueError(f"a value of the shape {dims} does not go through a group")
        self._receivers[invitation.communicator] = sender
        if invitation.communicator in self._broken:  # the sender did not know yet
            self._broke(invitation.communicator)
            self._fail(step, errors.UnavailableError(None, None, f"The way of {key} is broken"))
            return

        def report(outputs: Any, error: errors.OpError | None) -> None:
            if error is None:
                self._arrived(step, key, outputs[0])
            else:
                self._fail(step, error)

        self._exchange.run(invitation, offer, report)

    def lost(self, task: str) -> None:
        """The connection to a task broke."""
        self._inviter.lost(task)

    def end(self) -> None:
        """Ends all that waits."""
        self._exchange.end()

    def _broke(self, communicator: str) -> None:
        """An exchange failed here: the other member stops to wait for it."""
        other = self._receivers.get(communicator)
        self._broken.add(communicator)
        self._forget(communicator)
        if other is not None:
            other.tell(frames.INVITE, 0, json.dumps({"broke": communicator}))

    def _forget(self, communicator: str) -> None:
        self._receivers.pop(communicator, None)
        self._inviter.broke(communicator)
        self._exchange.drop(communicator)
