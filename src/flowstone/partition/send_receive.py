"""Send and Receive: the two halves of an edge between devices (white paper 3.2.2). A plan's own ops.

A Send leaves its value at the step's rendezvous under a key of its attributes and of the iteration that it
runs in; the Receive with the same key takes it from there. Dead values travel too, so a Send runs even if its
input is dead. The executor runs both (`runtime/execution/executor.py`). A Send that runs exactly once may
also be a line of a segment, on a CPU; then its value is on its way while the segment computes others. So may
the only Receive of a part (`runtime/code/awaiting.py`). The kinds for host memory keep a value that only
steers control flow where Python can read it.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.kernel import CPU, GPU, AsyncCall, StepCall
from flowstone.framework.declarations.operation import op, registry

__all__ = ["HOST_ENDS", "RECEIVES", "SENDS", "crosses_tasks"]

_WAY = (
    "tensor_name: string ; send_device: string ; send_device_incarnation: int = 0 ; recv_device: string ; "
    "client_terminated: bool = false"
)
_SENT: dict[str, Any] = {"T": None, "asynchronous": True, "stateful": True, "keeps": [0]}
_RECEIVED: dict[str, Any] = {"tensor_type": None, "asynchronous": True, "stateful": True}
send = op("_Send", "tensor: T ->", _WAY, role="send", **_SENT)
receive = op("_Recv", "-> tensor: tensor_type", _WAY, role="receive", **_RECEIVED)
host_send = op("_HostSend", "tensor: T ->", _WAY, role="host_send", **_SENT)
host_receive = op("_HostRecv", "-> tensor: tensor_type", _WAY, role="host_receive", **_RECEIVED)
SENDS, RECEIVES = frozenset({"send", "host_send"}), frozenset({"receive", "host_receive"})  # roles
HOST_ENDS = frozenset({"host_send", "host_receive"})


def crosses_tasks(node: Any) -> bool:
    """Whether the other end of a Send or Receive is in another task of the cluster. What is sent there is
    copied before the Send returns: into a message, or by the rendezvous that keeps it."""
    sender, receiver = node.attributes["send_device"], node.attributes["recv_device"]
    return bool(sender.rpartition("/device:")[0] != receiver.rpartition("/device:")[0])


def _no_kernel(node: Any, env: Any) -> Any:
    raise AssertionError(f"{node.name}: the executor sends and receives")


for _declaration in (send, receive, host_send, host_receive):
    _declaration.infer(lambda node: None)
    _declaration.not_differentiable()
for _declaration in (host_send, host_receive):
    _declaration.kernel(CPU, GPU)(_no_kernel)
for _declaration in (send, receive):
    _declaration.kernel(GPU)(_no_kernel)


def _key(node: Any) -> Any:
    """The key of a node outside loops."""
    attributes = node.attributes
    return (attributes["tensor_name"], attributes["send_device"], attributes["recv_device"]), ()


@receive.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    key = _key(node)

    def receive(step: Any, done: Any) -> None:
        step.rendezvous.receive(key, done)

    return AsyncCall(receive)


@send.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    key = _key(node)

    def send(step: Any, value: Any) -> None:
        step.rendezvous.send(key, value)

    return StepCall(send)


SEND_TYPES = registry.with_role("send", "host_send")
RECEIVE_TYPES = registry.with_role("receive", "host_receive")
