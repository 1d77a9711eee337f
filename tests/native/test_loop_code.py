"""The loops of a cluster as text: what is read once, masked, shared by a team."""

from __future__ import annotations

from flowstone.native import host
from flowstone.native.clusters import Array, Cluster, Step
from flowstone.native.loop_code import loop_code


def code(*dims: int, other: tuple[int, ...] = (), team_work: float = 1e9) -> str:
    inputs = (Array("float32", dims), Array("float32", other))
    return loop_code(Cluster(dims, inputs, (Step("AddV2", (0, 1), "float32"),), (2,)), team_work, {})


def test_whole_vectors_need_no_mask() -> None:
    lanes = host.lanes()
    assert "masked" not in code(4 * lanes)
    assert code(4 * lanes + 1).count("@llvm.masked.load") == 1
    assert "column:" not in code(lanes - 1)


def test_what_is_the_same_along_a_row_is_read_outside_of_its_loop() -> None:
    everywhere, by_row = code(3, 64), code(3, 64, other=(3, 1))
    assert everywhere.index("%e1_m = load") < everywhere.index("row:")
    assert by_row.index("inside:") < by_row.index("%w1_m = load") < by_row.index("column:")


def test_a_team_shares_rows_or_columns() -> None:
    assert "GOMP_parallel" not in code(64, 64, other=(64,))
    rows, columns = code(64, 64, other=(64,), team_work=1), code(2, 5000, other=(5000,), team_work=1)
    assert "call void @rows(ptr %a, i64 %u0, i64 %u1, i64 0, i64 64)" in rows
    assert "call void @rows(ptr %a, i64 0, i64 2, i64 %c0, i64 %end)" in columns
