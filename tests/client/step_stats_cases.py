"""Steps as StepStats, made by hand, for both TensorFlow's `Timeline` and ours.

`steps(StepStats)` makes the messages with the given class; `OPTIONS` are the ways to show each.
"""

from __future__ import annotations

from typing import Any

TASK = "/job:localhost/replica:0/task:0"
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "devices": [
        {},
        {"show_memory": True},
        {"show_dataflow": False},
        {"op_time": "gpu"},
        {"op_time": "all"},
        {"op_time": "all", "show_memory": True},
        {"op_time": "unheard-of"},
    ],
    "loop": [{}],
    "empty": [{}, {"show_memory": True}],
}


def node(device: Any, name: str, start: int, duration: int, label: str, sizes: tuple[int, ...] = ()) -> None:
    """A run of a node, in microseconds, with outputs of these bytes."""
    stats = device.node_stats.add(
        node_name=name,
        timeline_label=label,
        all_start_micros=start,
        op_end_rel_micros=duration,
        all_end_rel_micros=duration,
    )
    for slot, size in enumerate(sizes):
        description = stats.output.add(slot=slot).tensor_description
        description.dtype = 1
        allocation = description.allocation_description
        allocation.requested_bytes = allocation.allocated_bytes = size
        allocation.allocator_name = "gpu_bfc" if "GPU" in device.device else "cpu"


def devices(step: Any) -> None:
    """A host and a GPU with its streams; labels of all kinds; tensors from device to device."""
    cpu = step.dev_stats.add(device=f"{TASK}/device:CPU:0")
    node(cpu, "x", 100, 2, "x = _Arg()", (48,))
    node(cpu, "b", 101, 0, "b = Const()", (8,))
    node(cpu, "s", 105, 10, "s = Split(b, x)", (24, 24))
    node(cpu, "unlabelled", 116, 3, "")
    node(cpu, "colon:Op", 120, 3, "colon:Op")
    node(cpu, "weird", 124, 3, "weird label")
    node(cpu, "open", 127, 3, "open = MatMul")
    node(cpu, "control", 130, 3, "control = NoOp(^s, ^x)")
    node(cpu, "instant", 134, 0, "instant = Foo()")
    node(cpu, "received", 140, 20, "received = _Recv()")
    node(cpu, "RecvTensor", 165, 20, "[12B] [2.5MB/s] s from /job:a/replica:0/task:0 to /job:b")
    node(cpu, "taker", 190, 3, "taker = Neg(s/_12)", (24,))
    gpu = step.dev_stats.add(device=f"{TASK}/device:GPU:0")
    node(gpu, "m", 300, 5, "m = MatMul(s, s:1)", (100,))
    node(gpu, "n", 306, 5, "n = Relu(m)", (100,))
    node(gpu, "shape", 312, 5, "shape = Shape(n)", (8,))
    for stream in ("stream:all", "stream:13"):
        kernels = step.dev_stats.add(device=f"{TASK}/device:GPU:0/{stream}")
        node(kernels, "m:MatMul", 310, 30, "m:MatMul")
        node(kernels, "m:MatMul", 345, 5, "m:MatMul")
        node(kernels, "n:Relu", 350, 10, "n:Relu")
    node(step.dev_stats.add(device=f"{TASK}/device:GPU:0/memcpy"), "MEMCPYHtoD", 290, 10, "MEMCPYHtoD")
    node(step.dev_stats.add(device="/host:CPU"), "h", 1000, 10, "h = Foo(m)")


def loop(step: Any) -> None:
    """Nodes that run several times, and overlap."""
    cpu = step.dev_stats.add(device=f"{TASK}/device:CPU:0")
    node(cpu, "s", 100, 5, "s = Split(b, x)", (4, 4))
    for start in (110, 111, 113, 117):
        node(cpu, "body", start, 2, "body = Add(s:1, s)", (4,))


def steps(kind: type) -> dict[str, Any]:
    """The steps by name, as messages of this class."""
    found = {"devices": kind(), "loop": kind(), "empty": kind()}
    devices(found["devices"])
    loop(found["loop"])
    return found
