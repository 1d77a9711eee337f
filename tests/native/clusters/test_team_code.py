"""Who runs a cluster's loops: one thread or a team, by rows or columns; slots and bounds."""

from __future__ import annotations

from flowstone.native.clusters.clusters import Array, Cluster, Step
from flowstone.native.clusters.team_code import loop_code, within_code


def code(*dims: int, other: tuple[int, ...] = (), team_work: float = 1e9) -> str:
    inputs = (Array("float32", dims), Array("float32", other))
    return loop_code(Cluster(dims, inputs, (Step("AddV2", (0, 1), "float32"),), (2,)), team_work, {})


def total(*dims: int, over: str, team_work: float) -> str:
    steps = (Step("Sum", (0,), "float32", (("over", over),)),)
    return loop_code(Cluster(dims, (Array("float32", dims),), steps, (1,), 1), team_work, {})


def test_a_team_shares_rows_or_columns() -> None:
    assert "GOMP_parallel" not in code(64, 64, other=(64,))
    rows, columns = code(64, 64, other=(64,), team_work=1), code(2, 5000, other=(5000,), team_work=1)
    assert "call void @rows(ptr %data, i64 %u0, i64 %u1, i64 0, i64 64, ptr null)" in rows
    assert "call void @rows(ptr %data, i64 0, i64 %rows, i64 %c0, i64 %end, ptr null)" in columns


def test_rows_that_are_reduced_are_not_shared_by_columns() -> None:
    assert "i64 %u0, i64 %u1, i64 0, i64 5000" in total(2, 5000, over="row", team_work=1)
    assert "i64 0, i64 %rows, i64 %c0, i64 %end" in total(2, 5000, over="columns", team_work=1)


def test_slots_of_a_team_are_joined() -> None:
    assert "@join" in total(64, 64, over="all", team_work=1)
    assert "@join" not in total(64, 64, over="all", team_work=1e9)
    assert "slot" not in total(64, 64, over="row", team_work=1e9).replace("ptr %slot)", "")


def test_indices_have_bounds() -> None:
    cluster = Cluster((3, 4), (Array("int32", (3, 1)),), (), (), 1, (), ((0, 4),))
    assert "icmp ult i32 %x0, 4" in within_code(cluster)
