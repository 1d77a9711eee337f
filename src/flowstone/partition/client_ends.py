"""The client's ends of a step in several calls: feeds as Receives from it, fetches as Sends to it (white
paper 4.2).

Both ends are on the device `host`, under keys that `client_way` gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.framework.tensors.tensor import Tensor


def client_way(kind: str, tensor: Tensor, host: str) -> Any:
    """The key under which a "feed" or "fetch" meets its Receive or Send."""
    return (f"{kind} {tensor.name}", host, host), ()


def connect_client(
    subgraph: Subgraph,
    feeds: Sequence[Tensor],
    fetches: Sequence[Tensor],
    host: Any,
    chosen: dict[PlanNode, Any],
) -> None:
    """Puts Receives in place of the feeds of `subgraph`, and adds Sends of its fetches. `chosen`: the devices
    of its nodes, if they are placed."""

    def transfer(
        kind: str, op: str, tensor: Tensor, inputs: list[Any], like: PlanNode, **types: Any
    ) -> PlanNode:
        attributes = {
            "tensor_name": f"{kind} {tensor.name}",
            "send_device": host.name,
            "send_device_incarnation": 0,
            "recv_device": host.name,
            "client_terminated": True,
            **types,
        }
        node = subgraph.new_node(registry[op], inputs, attributes, like, name=f"{like.name}/{kind}")
        if chosen:
            chosen[node] = host
        return node

    received: dict[Any, PlanNode] = {}
    for tensor, x in zip(feeds, subgraph.feeds):
        node = transfer("feed", "_Recv", tensor, [], x.op, tensor_type=x.dtype.base_dtype)
        node.outputs[0].dims = x.dims
        received[x.op] = node
        chosen.pop(x.op, None)
    subgraph.nodes[:] = [received.get(node, node) for node in subgraph.nodes]
    for node in subgraph.nodes:
        node.inputs[:] = [received[x.op].outputs[0] if x.op in received else x for x in node.inputs]
        node.control_inputs[:] = [received.get(control, control) for control in node.control_inputs]
    for tensor, x in zip(fetches, subgraph.fetches):
        x = received[x.op].outputs[0] if x.op in received else x
        send = transfer("fetch", "_Send", tensor, [x], x.op, T=x.dtype.base_dtype)
        subgraph.nodes.append(send)
        subgraph.targets.append(send)
    subgraph.feeds, subgraph.fetches = [], []
    subgraph.invalidate()
