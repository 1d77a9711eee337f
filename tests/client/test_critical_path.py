"""What waited for whom, in steps whose times are given."""

from __future__ import annotations

from typing import Any

from flowstone.client.critical_path import critical_path, waiting_text, waits
from flowstone.distributed.workers.transfers import RECV_TENSOR
from flowstone.framework.types.tensor_proto import messages

A, B = "/job:a/replica:0/task:0/device:CPU:0", "/job:b/replica:0/task:0/device:CPU:0"
TASK_A, TASK_B = "/job:a/task:0", "/job:b/task:0"


class Step:
    """A RunMetadata; times in microseconds."""

    def __init__(self) -> None:
        self.metadata = messages("config_pb2").RunMetadata()
        self._stats: dict[str, Any] = {}

    def ran(self, device: str, label: str, start: float, end: float, thread: int = 1) -> None:
        stats = self._stats.get(device)
        if stats is None:
            stats = self._stats[device] = self.metadata.step_stats.dev_stats.add(device=device)
        node = stats.node_stats.add(node_name=label.split(" ")[0], timeline_label=label, thread_id=thread)
        node.all_start_nanos, node.all_end_rel_nanos = int(start * 1e3), int((end - start) * 1e3)

    def sent(self, name: str, source: str, target: str, start: float, came: float, size: int = 4000) -> None:
        """A tensor's way: its Send is called ``name/send``, its Receive ``name/receive``."""
        for op, device, end in (("_Send", source, "send"), ("_Recv", target, "receive")):
            node = self.metadata.partition_graphs.add().node.add(name=f"{name}/{end}", op=op, device=device)
            texts = (("tensor_name", f"{name}:0"), ("send_device", source), ("recv_device", target))
            for key, text in texts:
                node.attr[key].s = text.encode()
        row = self.metadata.step_stats.dev_stats.add(device=target).node_stats.add(node_name=RECV_TENSOR)
        row.timeline_label = f"[{size}B] [1.0Mb/s] {name}:0 from {source} to {target}"
        row.all_start_nanos, row.all_end_rel_nanos = int(start * 1e3), int((came - start) * 1e3)


def two_tasks() -> Step:
    """b waits 80 us for what a computes and 20 us for it to come; then it computes for 30."""
    step = Step()
    step.ran(A, "w = VariableV2()", 100, 100)
    step.ran(A, "p = MatMul(w, w)", 110, 180)
    step.ran(A, "p/send = _Send(p)", 185, 190)
    step.ran(B, "p/receive = _Recv(p/send)", 105, 205)
    step.ran(B, "q = Sum(p/receive, axes)", 210, 240)
    step.ran(B, "other = Exp(z)", 106, 130, thread=2)
    step.sent("p", A, B, 185, 204)
    return step


def test_the_path_leads_over_the_send() -> None:
    first, second, third, fourth = critical_path(two_tasks().metadata)
    assert (first.task, first.ops, round(first.ms, 6)) == (TASK_A, {}, 0.01)  # before p ran
    assert (second.task, list(second.ops)) == (TASK_A, ["MatMul"])
    assert third.wait is not None and (third.wait.tensor, third.wait.size) == ("p:0", 4000)
    assert (third.wait.source, third.wait.target) == (TASK_A, TASK_B)
    assert third.ms == 0.02  # from the beginning of the Send until the Receive ended
    assert (fourth.task, fourth.ops) == (TASK_B, {"Sum": 0.03}) and fourth.idle_ms == 0.005


def test_what_a_receive_waited_for() -> None:
    (wait,) = waits(two_tasks().metadata)
    assert (wait.send, wait.receive) == ("p/send", "p/receive")
    assert (wait.waited_ms, wait.behind_ms, wait.way_ms) == (0.1, 0.08, 0.019)


def test_a_value_that_was_there_before_is_not_waited_for() -> None:
    step = Step()
    step.ran(A, "p/send = _Send(p)", 10, 12)
    step.ran(B, "slow = Exp(x)", 20, 90)
    step.ran(B, "p/receive = _Recv(p/send)", 91, 92)
    step.ran(B, "q = Add(slow, p/receive)", 93, 95)
    step.sent("p", A, B, 10, 30)
    path = critical_path(step.metadata)
    assert [each.wait for each in path] == [None, None]
    assert list(path[-1].ops) == ["Exp", "Add", "_Recv"]


def test_a_tensor_that_goes_there_and_back() -> None:
    step = Step()
    step.ran(A, "x = Exp(v)", 0, 10)
    step.ran(A, "x/send = _Send(x)", 10, 11)
    step.ran(B, "x/receive = _Recv(x/send)", 1, 30)
    step.ran(B, "y = Mul(x/receive)", 30, 50)
    step.ran(B, "y/send = _Send(y)", 50, 51)
    step.ran(A, "y/receive = _Recv(y/send)", 12, 70)
    step.ran(A, "z = Sum(y/receive)", 70, 80)
    step.sent("x", A, B, 10, 30)
    step.sent("y", B, A, 50, 70)
    path = critical_path(step.metadata)
    assert [each.wait.tensor if each.wait else each.task for each in path] == [
        TASK_A, "x:0", TASK_B, "y:0", TASK_A
    ]  # fmt: skip
    assert round(sum(each.ms for each in path), 6) == 0.08  # all of the step


def test_in_a_loop_each_receive_waits_for_the_send_of_its_iteration() -> None:
    step = Step()
    for i in range(3):
        step.ran(A, "x/send = _Send(x)", 100 * i + 50, 100 * i + 51)
        step.ran(B, "x/receive = _Recv(x/send)", 100 * i + 10, 100 * i + 70)
        step.ran(B, "y = Mul(x/receive)", 100 * i + 70, 100 * i + 80)
    step.sent("x", A, B, 50, 70)
    assert [round(wait.behind_ms, 6) for wait in waits(step.metadata)] == [0.04] * 3


def test_a_step_without_a_trace() -> None:
    metadata = messages("config_pb2").RunMetadata()
    assert critical_path(metadata) == [] and waits(metadata) == []
    assert waiting_text([], []) == "what waited for whom (critical path: 0.0 us)"


def test_as_text() -> None:
    step = two_tasks().metadata
    lines = waiting_text(critical_path(step), waits(step)).splitlines()
    assert lines[0] == "what waited for whom (critical path: 140.0 us)"
    assert lines[3] == "    20.0 us   14%  /job:a/task:0 -> /job:b/task:0  p:0, 4.0 kB; waited for 100.0 us"
    row = "p:0 /job:b/task:0 /job:a/task:0 100.0 us 80.0 us 19.0 us 4.0 kB"
    assert " ".join(lines[-1].split()) == row
    assert max(map(len, lines)) <= 100
