"""Tensors on their way as rows of a trace."""

from __future__ import annotations

from typing import Any

import pytest

from flowstone.client.timeline import Timeline
from flowstone.distributed.workers.transfers import complete_transfers, seen_transfers, write_arrivals
from flowstone.framework.types.tensor_proto import messages

A, B = "/job:a/replica:0/task:0/device:CPU:0", "/job:b/replica:0/task:0/device:CPU:0"


def graph_with_send() -> Any:
    message = messages("graph_pb2").GraphDef()
    node = message.node.add(name="x/send", op="_Send", device=A)
    for key, text in (("tensor_name", "x:0"), ("send_device", A), ("recv_device", B)):
        node.attr[key].s = text.encode()
    return message


def stats_of(starts: list[int], arrivals: dict[str, tuple[int, int]]) -> Any:
    stats = messages("step_stats_pb2").StepStats()
    own = stats.dev_stats.add(device=A)
    for start in starts:
        own.node_stats.add(node_name="x/send", all_start_nanos=start, all_end_rel_nanos=10)
    write_arrivals(arrivals, 1_000, stats)
    return stats


def key(iteration: str = "0:0") -> str:
    return f"{A};{7:016x};{B};x:0;{iteration}"


def test_a_row_begins_with_its_send() -> None:
    stats = stats_of([50_000], {key(): (89_000, 4000)})
    complete_transfers(stats, [graph_with_send()])
    (seen,) = seen_transfers(stats)
    assert seen == ("x:0", 4000, A, B, 50_000, 90_000)
    row = stats.dev_stats[1].node_stats[0]
    assert row.timeline_label == f"[4000B] [800.0Mb/s] x:0 from {A} to {B}"
    assert (row.all_start_micros, row.all_end_rel_micros) == (50, 40)
    assert f'"name": "{B} Transfers"' in Timeline(stats).generate_chrome_trace_format()


def test_iterations_are_matched_in_their_order() -> None:
    arrivals = {key(f"loop:{i}"): (100_000 + 10_000 * i, 8) for i in (2, 10, 0)}
    stats = stats_of([110_000, 20_000, 30_000], arrivals)
    complete_transfers(stats, [graph_with_send()])
    assert [(seen.start, seen.end) for seen in seen_transfers(stats)] == [
        (20_000, 101_000), (30_000, 121_000), (110_000, 201_000)
    ]  # fmt: skip


@pytest.mark.parametrize("starts", [[], [95_000]])
def test_without_a_send_before_it_a_row_has_no_length(starts: list[int]) -> None:
    """The worker of another implementation tells nothing; clocks may be some microseconds apart."""
    stats = stats_of(starts, {key(): (89_000, 4000)})
    complete_transfers(stats, [graph_with_send()])
    (seen,) = seen_transfers(stats)
    assert seen.start == seen.end == 90_000
